/** The examples, each run as a person would. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { cleanEnvironment, DONE, HARNESS, Server, stored } from "./server.js";

let server: Server;
let notes: string; // the scripted model of the examples

before(async () => {
  server = await Server.start();
  notes = server.script(readFileSync(resolve("examples/notes.yaml"), "utf8"));
});

after(() => server[Symbol.asyncDispose]());

/** Starts an example, to be typed to. */
function begin(example: string, args: string[], cwd: string): ChildProcess {
  const command = [resolve(`dist/examples/${example}.js`), "--server", server.address, ...args];
  return spawn(process.execPath, command, { cwd, env: cleanEnvironment(), stdio: "pipe" });
}

async function run(example: string, args: string[], cwd: string, typed = ""): Promise<{ code: number; out: string; err: string }> {
  const child = begin(example, args, cwd);
  const said = { out: "", err: "" };
  child.stdout?.on("data", (text: Buffer) => (said.out += text.toString()));
  child.stderr?.on("data", (text: Buffer) => (said.err += text.toString()));
  child.stdin?.end(typed);
  const [code] = await once(child, "close");
  return { code, ...said };
}

test("follow shows the work and asks for approvals", async () => {
  const yes = await run("follow", ["--model", notes, "Count the lines"], server.workspace(), "y\n");
  assert.equal(yes.code, 0, yes.err);
  for (const shown of [
    'Run run_command {"command":"wc -l < notes.md"}? (it runs commands)',
    "I write a note first.",
    "  ✓ run_command",
    "Two lines.",
    "DONE · agent_done",
  ]) {
    assert.ok(yes.out.includes(shown), `${shown} in ${yes.out}`);
  }
  const no = await run("follow", ["--model", notes, "Count the lines"], server.workspace(), "not now\n");
  assert.equal(no.code, 0, no.err);
  assert.ok(no.out.includes("  ✗ run_command  not now") && no.out.includes("Then I count them myself."), no.out);
});

test("follow leaves a run that nobody answers, and comes back", async () => {
  const folder = server.workspace();
  const left = await run("follow", ["--model", notes, "Count the lines"], folder);
  assert.equal(left.code, 4);
  const name = left.err.split(/\s/)[1] ?? "";
  assert.ok(left.err.includes(`${name} waits`));
  const back = await run("follow", ["--attach", name], folder, "a\n");
  assert.equal(back.code, 0, back.err);
  assert.ok(back.out.includes("I write a note first.") && back.out.includes("DONE · agent_done"), back.out);
});

test("watcher copies a run that the command line started, over kill -9, without loss or repeat", async () => {
  const turns = [1, 2, 3, 4].map((n) => `  - {text: Turn ${n}., calls: [{name: run_command, arguments: {command: echo ${n}}}]}\n`);
  const folder = server.workspace();
  const command = ["run", "--server", server.address, "--model", server.script(`turns:\n${turns.join("")}${DONE}`)];
  const agent = join(folder, "agent.yaml");
  writeFileSync(agent, "tools:\n  - {name: run_command, policy: ask}\n"); // confined commands do not ask by default
  command.push("--agent", agent, "--run-id", "watched", "--output", "json", "look around");
  const starting = spawn(HARNESS, command, { cwd: folder, env: cleanEnvironment(), stdio: "ignore" });
  assert.deepEqual(await once(starting, "exit"), [4, null]); // it waits for an approval

  await using client = await server.connect();
  const watched = await client.attach("watched");
  const allow = async (): Promise<string> => watched.approve((await watched.result()).pending[0]?.callId ?? "");
  const into = join(folder, "events.jsonl");
  for (const lines of [1, 3, 5]) {
    const watcher = begin("watcher", ["watched", "--into", into], folder);
    const exit = once(watcher, "exit");
    await allow(); // and so there are more events than the file has
    let seen = 0;
    assert.ok(watcher.stdout);
    for await (const _ of createInterface({ input: watcher.stdout })) {
      if (++seen === lines) {
        watcher.kill("SIGKILL");
      }
    }
    assert.deepEqual(await exit, [null, "SIGKILL"]);
  }
  await allow();
  appendFileSync(into, '{"id":"999-0","na'); // as if the power had failed in the middle of a line
  const last = await run("watcher", ["watched", "--into", into], folder);
  assert.equal(last.code, 0, last.err);
  assert.match(last.err, /watching watched behind \d+-\d+\n[^]*DONE: /);

  const events = readFileSync(into, "utf8").trim().split("\n").map((line) => JSON.parse(line) as { id: string });
  assert.deepEqual(events.map((event) => event.id), await stored(watched));
  const listed = await run("watcher", [], folder);
  assert.match(listed.out, /^watched {2}DONE {2}look around$/m);
});

test("examples say in one line what is wrong", async () => {
  const folder = server.workspace();
  const unknown = await run("follow", ["--attach", "nobody"], folder);
  assert.deepEqual(unknown, { code: 1, out: "", err: "follow: run default/nobody not found\n" });
  const flag = await run("watcher", ["nobody", "--unto", "x"], folder);
  assert.equal(flag.code, 1);
  assert.match(flag.err, /^watcher: Unknown option '--unto'/);
  const file = await run("follow", ["--token-file", "missing", "look"], folder);
  assert.match(file.err, /^follow: ENOENT.*missing/);
  assert.equal((await run("follow", [], folder)).code, 2);
});
