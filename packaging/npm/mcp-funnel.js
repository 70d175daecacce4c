#!/usr/bin/env node
// Starts the program of the platform package with the same arguments, streams and signals, and exits as it does.
"use strict";
const { spawn } = require("node:child_process");

const name = `mcp-funnel-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/mcp-funnel${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  const known = Object.keys(require("./package.json").optionalDependencies);
  process.stderr.write(
    known.includes(name)
      ? `mcp-funnel: the package ${name} is missing: install again without --omit=optional and --no-optional\n`
      : `mcp-funnel: there is no program for ${process.platform}-${process.arch}; there are ${known.join(", ")}.\n` +
          "With Go it can be built: go install github.com/mcp-funnel/mcp-funnel/cmd/mcp-funnel@latest\n",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"];
const pass = (signal) => child.kill(signal);
for (const signal of signals) {
  if (process.platform !== "win32" || signal.startsWith("SIGIN") || signal === "SIGTERM") process.on(signal, pass);
}
child.on("error", (err) => {
  process.stderr.write(`mcp-funnel: ${program} cannot be started: ${err.message}\n`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const s of signals) process.removeListener(s, pass);
  process.kill(process.pid, signal);
});
