/**
 * Start a run, see it work, and answer what it asks.
 *
 *     npm run follow -- --model openai:gpt-5 "Find out why the tests fail"
 *     npm run follow -- --model script:$PWD/examples/notes.yaml "Count the lines"
 *
 * Text appears while the model writes it. A call that needs an approval, and a question of the agent,
 * are put to you; Ctrl-D leaves the run waiting, and you can come back with --attach RUN.
 */

import { readFileSync } from "node:fs";
import { createInterface, type Interface } from "node:readline";
import { parseArgs } from "node:util";
import { HarnessClient, type PendingCall, pb, type Run } from "harnessmesh";

const USAGE = `usage: follow [--server HOST:PORT] [--token-file FILE] [--tls-ca FILE] [--model PROVIDER:NAME]
              [--workspace FOLDER] GOAL | --attach RUN`;

let keyboard: Interface | undefined;
let lines: AsyncIterator<string> | undefined;

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const options = { server: text, "token-file": text, "tls-ca": text, model: text, workspace: text, attach: text };
  const { values: given, positionals } = parseArgs({ options, allowPositionals: true });
  const goal = positionals.join(" ");
  if ((goal === "") === (given.attach === undefined)) {
    console.error(`say what to do, or which run to follow with --attach RUN\n${USAGE}`);
    return 2;
  }
  const file = given["token-file"];
  const token = file === undefined ? undefined : readFileSync(file, "utf8").trim();
  await using client = await HarnessClient.connect(given.server, { token, tls: given["tls-ca"] });
  const { model, workspace } = given;
  // Commands wait for your approval, also those that the sandbox confines.
  const agent = { tools: [{ name: "run_command", policy: pb.ToolDecision.ASK, reason: "it runs commands" }] };
  const run = given.attach === undefined ? await client.start({ goal, model, workspace, agent }) : await client.attach(given.attach);
  console.error(`run ${run.id}`);
  return await follow(run); // the client is closed only then
}

async function follow(run: Run): Promise<number> {
  const asked = new Set<string>();
  for await (const update of run.events()) {
    switch (update.name) {
      case "delta":
        process.stdout.write(update.rewinds ? `\n(once more)\n${update.text}` : update.text);
        break;
      case "model.response":
        console.log();
        break;
      case "tool.call":
        console.log(`  → ${update.data.tool} ${await run.text(update.data.arguments)}`);
        break;
      case "tool.result":
        console.log(`  ✓ ${update.data.tool}  ${firstLine(await run.text(update.data.result))}`);
        break;
      case "tool.error":
        console.log(`  ✗ ${update.data.tool}  ${firstLine(await run.text(update.data.error))}`);
        break;
      case "tool.denied":
        console.log(`  ✗ ${update.data.tool}  ${update.data.reason}`);
        break;
      case "result": {
        if (update.ended) {
          console.log(`${update.status} · ${update.reason}: ${update.message}`);
          return update.accepted ? 0 : 1;
        }
        // The run is parked and uses no process: there is time to think.
        const fresh = update.pending.filter((call) => !asked.has(call.callId)); // else the answer is on its way
        let waits = update.pending.length === 0;
        for (const call of fresh) {
          asked.add(call.callId);
          waits ||= !(await answer(run, call));
        }
        if (waits) {
          console.error(`${run.id} waits: ${update.message}`);
          return 4;
        }
      }
    }
  }
  return 1;
}

/** Puts a call that waits to the person; false when there is no answer. */
async function answer(run: Run, call: PendingCall): Promise<boolean> {
  if (call.kind === "question") {
    const line = await ask(`${call.why}\n> `);
    if (line) {
      await run.answer(call.callId, line);
    }
    return line !== "";
  }
  if (call.kind !== "approval" && call.kind !== "review") {
    return false; // some client's tool: that client answers
  }
  const line = await ask(`Run ${call.tool} ${JSON.stringify(call.arguments)}? (${call.why}) [y]es, [a]lways, or why not: `);
  if (/^y(es)?$/i.test(line)) {
    await run.approve(call.callId, { digest: call.digest });
  } else if (/^a(lways)?$/i.test(line) && call.kind === "approval") {
    await run.approve(call.callId, { always: true, digest: call.digest });
  } else if (line) {
    await run.deny(call.callId, line);
  }
  return line !== "";
}

/** The next line of the person; "" at the end of the input. */
async function ask(prompt: string): Promise<string> {
  process.stdout.write(prompt);
  keyboard ??= createInterface({ input: process.stdin });
  lines ??= keyboard[Symbol.asyncIterator]();
  const line = await lines.next();
  return line.done ? "" : line.value.trim();
}

function firstLine(text: string): string {
  return (text.trim().split("\n", 1)[0] ?? "").slice(0, 100);
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Error && "code" in error)) {
    throw error;
  } // a HarnessError, or a flag or a file that is wrong
  console.error(`follow: ${error.message}`);
  process.exitCode = 1;
} finally {
  keyboard?.close();
}
