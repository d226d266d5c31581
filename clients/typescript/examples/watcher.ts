/**
 * Copy the events of a run into a file, across crashes. Any client may have started the run.
 *
 *     npm run watcher -- RUN --into events.jsonl
 *
 * The last complete line of the file is also the position in the run: started again, after a kill -9 or
 * a power failure, the program continues after it. The file contains each event once and in order. The
 * run is not affected. Without RUN the program lists the runs.
 */

import { closeSync, existsSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { parseArgs } from "node:util";
import { createRegistry, toJson } from "@bufbuild/protobuf";
import { type Event, HarnessClient, pb } from "harnessmesh";

const types = createRegistry(pb.file_harness_v1_event);

async function main(): Promise<number> {
  const options = {
    server: { type: "string" },
    namespace: { type: "string" },
    into: { type: "string", default: "events.jsonl" },
  } as const;
  const { values: given, positionals } = parseArgs({ options, allowPositionals: true });
  const { namespace } = given;
  await using client = await HarnessClient.connect(given.server, { namespace });
  const [name] = positionals;
  if (name === undefined) {
    for await (const run of client.runs()) {
      console.log(`${run.runId}  ${pb.RunStatus[run.status]}  ${run.goal}`);
    }
    return 0;
  }
  const run = await client.attach(name);
  const after = lastToken(given.into);
  console.error(`watching ${run.id} behind ${after}`);
  const file = openSync(given.into, "a");
  try {
    for await (const update of run.events({ after, deltas: false })) {
      if (update.name === "result") {
        console.error(`${update.status}: ${update.message}`);
      } else if (update.name !== "delta" && update.name !== "reasoning.delta" && update.name !== "tool.output" && update.name !== "alert.delta") {
        writeSync(file, `${line(update)}\n`);
        console.log(`${update.id} ${update.name}`);
      }
    }
  } finally {
    closeSync(file);
  }
  return 0;
}

function line({ id, token, agent, name, time, turnNumber, data }: Event): string {
  const type = data && types.getMessage(data.$typeName);
  return JSON.stringify({ id, token, agent, name, time, turnNumber, data: type && toJson(type, data) });
}

/** Token of the last event in the file, "0-0" for none. Half a line, the last thing that a crash leaves, is cut off. */
function lastToken(path: string): string {
  if (!existsSync(path)) {
    return "0-0";
  }
  const bytes = readFileSync(path);
  const end = bytes.lastIndexOf("\n") + 1;
  truncateSync(path, end);
  const last = bytes.subarray(0, end).toString().trimEnd().split("\n").at(-1);
  return last ? (JSON.parse(last) as { token: string }).token : "0-0";
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Error && "code" in error)) {
    throw error;
  } // a HarnessError, or a flag or a file that is wrong
  console.error(`watcher: ${error.message}`);
  process.exitCode = 1;
}
