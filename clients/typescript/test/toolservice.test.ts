/** Tools of a program for all runs. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { pb, type Served, serveTools, tool, ToolFailed } from "harnessmesh";
import { Session } from "../src/session.js";
import { Server } from "./server.js";

const KEY = "0a";
const none = { type: "object", additionalProperties: false } as const;

/** A service with tools that count their calls. */
async function bench(memory?: string) {
  let calls = 0;
  let begin = (): void => {};
  let release = (): void => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  const count = tool({
    name: "count",
    description: "Counts.",
    parameters: none,
    async run(_, { callId, signal, show }) {
      calls++;
      show?.(`counting ${callId}`);
      begin();
      const aborted = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      await Promise.race([released, aborted]);
      return String(calls);
    },
  });
  const fail = tool({
    name: "fail",
    description: "Fails.",
    parameters: none,
    reads: true,
    run() {
      throw new ToolFailed("no paper");
    },
  });
  const text = (name: string, value: string) => tool({ name, description: "Returns a text.", parameters: none, run: () => value });
  const served: Served = await serveTools({
    tools: [count, { ...fail, hints: { parallelSafe: true } }, text("large", "x".repeat(16 << 20)), text("surrogate", "a\ud800")],
    address: "127.0.0.1:0",
    ...(memory === undefined ? {} : { memory }),
  });
  const session = new Session(`http://${served.address}`, {});
  const rpc = createClient(pb.ToolService, createGrpcTransport({ baseUrl: `http://${served.address}`, sessionManager: session }));
  return {
    served,
    rpc,
    begun,
    release,
    calls: () => calls,
    async execute(key: string, name: string) {
      let output = "";
      let result: pb.ToolServiceResult | undefined;
      for await (const { value } of rpc.execute({ key, tool: name, arguments: "{}" })) {
        if (value.case === "output") {
          output += value.value;
        } else if (value.case === "result") {
          result = value.value;
        }
      }
      assert.ok(result);
      return { output, result };
    },
    async [Symbol.asyncDispose]() {
      session.abort();
      await served.close();
    },
  };
}

test("a key runs once and can be joined", async () => {
  await using b = await bench();
  const first = b.execute(KEY, "count");
  await b.begun;
  const second = b.execute(KEY, "count");
  b.release();
  const { output, result } = await first;
  assert.deepEqual([output, result.text], [`counting ${KEY}`, "1"]);
  assert.equal((await second).result.text, "1");
  assert.equal((await b.execute(KEY, "count")).result.text, "1");
  assert.equal((await b.execute("0b", "count")).result.text, "2");
});

test("cancel returns when the call has ended", async () => {
  await using b = await bench();
  const call = b.execute(KEY, "count");
  await b.begun;
  for (const key of [KEY, KEY, "0b"]) {
    await b.rpc.cancel({ key });
  }
  assert.equal((await call).result.unknown, true);
  const refused = (code: Code) => (error: unknown) => error instanceof ConnectError && error.code === code;
  await assert.rejects(b.execute("0b", "count"), refused(Code.FailedPrecondition));
  await assert.rejects(b.execute("0c", "other"), refused(Code.NotFound));
  assert.equal(b.calls(), 1);
});

test("a service describes its tools, and their errors are results", async () => {
  await using b = await bench();
  const described = await b.rpc.describe({});
  assert.deepEqual(described.tools.slice(0, 2).map((t) => [t.name, t.hints?.readOnly, t.hints?.parallelSafe]), [["count", false, false], ["fail", true, true]]);
  assert.equal(described.remembersKeys, false);
  const { result } = await b.execute(KEY, "fail");
  assert.deepEqual([result.text, result.isError], ["no paper", true]);
  const { result: large } = await b.execute("0b", "large");
  assert.ok(large.isError && large.text.includes("The call has run, but its result cannot be read: it has 16777221 bytes"), large.text);
  const { result: surrogate } = await b.execute("0c", "surrogate");
  assert.deepEqual([surrogate.text, surrogate.isError], ["a\ufffd", false]);
});

test("keys outlive the process", async () => {
  const memory = mkdtempSync(join(tmpdir(), "harness-ts-"));
  try {
    {
      await using b = await bench(memory);
      b.release();
      assert.equal((await b.execute(KEY, "count")).result.text, "1");
    }
    writeFileSync(join(memory, "0b.begun"), ""); // as if it had died in the call
    await using b = await bench(memory);
    b.release();
    assert.equal((await b.rpc.describe({})).remembersKeys, true);
    assert.equal((await b.execute(KEY, "count")).result.text, "1");
    assert.equal((await b.execute("0b", "count")).result.unknown, true);
    assert.equal((await b.execute("../x", "count")).result.isError, true);
    assert.equal(b.calls(), 0);
  } finally {
    rmSync(memory, { recursive: true });
  }
});

test("a run calls the service", async () => {
  await using b = await bench();
  b.release();
  await using server = await Server.start();
  await using client = await server.connect();
  const model = server.script("turns:\n  - {calls: [{name: bench__count, arguments: {}}]}\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n");
  const run = await client.start({
    goal: "Count.",
    model,
    workspace: server.workspace(),
    agent: { mcp: [{ name: "bench", grpc: b.served.address }] },
    config: { tools: { yolo: true } },
  });
  assert.equal((await run.result()).status, "DONE");
  assert.equal(b.calls(), 1);
});
