/** npm install as the README describes it. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const execute = promisify(execFile);

test("npm install of the folder builds the package in a project of a user", async () => {
  const top = await mkdtemp(join(tmpdir(), "harness-install-"));
  try {
    const [folder, project] = [join(top, "typescript"), join(top, "project")];
    // As in a fresh clone: without packages and without built files.
    await cp(".", folder, { recursive: true, filter: (path) => !["node_modules", "dist"].includes(basename(path)) });
    await cp(join(folder, "tsconfig.json"), join(project, "tsconfig.json"));
    await writeFile(join(project, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
    await execute("npm", ["install", "--no-audit", "--no-fund", folder], { cwd: project });
    await writeFile(join(project, "main.js"), 'import { HarnessClient } from "harnessmesh";\nconsole.log(typeof HarnessClient.connect);\n');
    const { stdout } = await execute(process.execPath, ["main.js"], { cwd: project });
    assert.equal(stdout, "function\n");
  } finally {
    await rm(top, { recursive: true, force: true });
  }
});
