#!/usr/bin/env node
// Starts the program of the platform package with the same arguments, streams and signals, and exits as it does.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const windows = process.platform === "win32";
const name = `mcp-funnel-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/mcp-funnel${windows ? ".exe" : ""}`);
} catch {
  const known = Object.keys(require("./package.json").optionalDependencies);
  process.stderr.write(
    known.includes(name)
      ? `mcp-funnel: the package ${name} is missing: install mcp-funnel again on this system, ` +
          "without --omit=optional and --no-optional\n"
      : `mcp-funnel: there is no program for ${process.platform}-${process.arch}; there are ${known.join(", ")}.\n` +
          "With Go it can be built: go install github.com/mcp-funnel/mcp-funnel/cmd/mcp-funnel@latest\n",
  );
  process.exit(1);
}

// A console of Windows sends its events to the program too, and what is passed on there would kill it. Node would start
// its debugger on SIGUSR1.
const signals = windows
  ? ["SIGINT", "SIGBREAK", "SIGHUP"]
  : ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"];
const pass = (signal) => windows || child.kill(signal);
for (const signal of signals) process.on(signal, pass);
const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
child.on("error", (err) => {
  process.stderr.write(`mcp-funnel: ${program} cannot be started: ${err.message}\n`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const s of signals) process.removeListener(s, pass);
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(128 + constants.signals[signal]), 100); // node ignores SIGPIPE
});
