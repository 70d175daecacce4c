// Prints how a client starts an unpacked bundle: {command, args, env}. Arguments: its directory, its settings as JSON.
import { readFileSync } from "node:fs";
import { sep } from "node:path";
import { getMcpConfigForManifest } from "@anthropic-ai/mcpb";

const [dir, settings] = process.argv.slice(2);
const config = await getMcpConfigForManifest({
  manifest: JSON.parse(readFileSync(`${dir}/manifest.json`, "utf8")),
  extensionPath: dir,
  systemDirs: {},
  userConfig: JSON.parse(settings),
  pathSeparator: sep,
});
console.log(JSON.stringify(config));
