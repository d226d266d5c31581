// Builds dist. npm runs this for `npm install FOLDER` of another project too, and then the packages
// of this folder are missing.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, { stdio: "inherit", shell: process.platform === "win32" });
  if (error || status !== 0) {
    console.error(`prepare: ${command} ${args.join(" ")}: ${error?.message ?? `exit code ${status}`}`);
    process.exit(1);
  }
}

if (!existsSync("node_modules/typescript")) {
  run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", ".");
}
run(process.execPath, "node_modules/typescript/bin/tsc");
