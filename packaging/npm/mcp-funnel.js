#!/usr/bin/env node
// Starts the program of the platform package with the same arguments, streams and signals, and exits as it does.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const windows = process.platform === "win32";
const name = `mcp-funnel-${process.platform}-${process.arch}`;
const about = require("./package.json");
// Node also looks in NODE_PATH and below HOME, where the program may be of another installation. Plug'n'Play does not.
const find = (file) =>
  process.versions.pnp
    ? require.resolve(`${name}/${file}`)
    : require.resolve(`./${name}/${file}`, { paths: module.paths });
let program;
let fault = "is missing";
try {
  const { version } = require(find("package.json"));
  if (version !== about.version) fault = `has version ${version}, not ${about.version}`;
  else program = find(`mcp-funnel${windows ? ".exe" : ""}`);
} catch {
  // It is missing.
}
if (program === undefined) {
  const known = Object.keys(about.optionalDependencies);
  process.stderr.write(
    known.includes(name)
      ? `mcp-funnel: the package ${name} ${fault}: install mcp-funnel again on this system, ` +
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
  const advice = err.code === "EACCES" ? "; make it executable: chmod 755, and no mount with noexec" : "";
  process.stderr.write(`mcp-funnel: ${program} cannot be started: ${err.message}${advice}\n`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const s of signals) process.removeListener(s, pass);
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(128 + constants.signals[signal]), 100); // node ignores SIGPIPE
});
