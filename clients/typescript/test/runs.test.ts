/** Runs as a TypeScript program drives them, against a real server. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { type HarnessClient, pb, type Status, type StartOptions, tool } from "harnessmesh";
import { eventOf } from "../src/events.js";
import { cleanEnvironment, DONE, gather, HARNESS, ids, Server, TALK } from "./server.js";

const THINK = `turns:\n  - {reasoning: "Where does it belong?", text: Here., calls: [{name: list_directory}]}\n${DONE}`;
/** Confined commands do not ask by default. */
const ASKS = { tools: [{ name: "run_command", policy: pb.ToolDecision.ASK, reason: "it runs commands" }] };
const COMMAND = `turns:\n  - {text: A command., calls: [{name: run_command, arguments: {command: echo it ran}}]}\n${DONE}`;

let server: Server;
let client: HarnessClient;

before(async () => {
  server = await Server.start();
  client = await server.connect();
});

after(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

function start(turns: string, more: Partial<StartOptions> = {}) {
  return client.start({ goal: "look", model: server.script(turns), workspace: server.workspace(), ...more });
}

test("a run is followed from its start to its result", async () => {
  const run = await start(TALK);
  const updates = await gather(run.events());
  const names = updates.map((update) => update.name).filter((name) => name !== "delta" && name !== "tool.output");
  assert.deepEqual(names.slice(0, 3), ["session.start", "plan.draft", "plan.commit"]);
  assert.deepEqual(names.slice(-2), ["session.complete", "result"]);
  assert.equal(updates.map((update) => (update.name === "delta" ? update.text : "")).join(""), "I look around first.");
  const result = updates.at(-1);
  assert.ok(result?.name === "result");
  assert.deepEqual(
    [result.status, result.ended, result.accepted, result.reason, result.summary],
    ["DONE", true, true, "agent_done", "finished"],
  );
  assert.deepEqual(await run.result(), result);
  assert.equal(run.position, ids(updates).at(-1));
});

test("alerts come while the model writes", async () => {
  const look = tool({ name: "look", description: "Looks around.", parameters: { type: "object", properties: {} }, run: () => "nothing" });
  const refusal = `Unfortunately there is nothing here. ${"It is empty. ".repeat(60)}`;
  const turns = `turns:\n  - {calls: [{name: look}]}\n  - {text: "${refusal}", calls: [{name: list_directory}]}\n${DONE}`;
  // The tool runs while the run is followed, so the text of the second turn is not missed.
  const run = await start(turns, { tools: [look], config: { quality: { enabled: true } } });
  const updates = await gather(run.events());
  const live = updates.findIndex((update) => update.name === "alert.delta");
  const stored = updates.findIndex((update) => update.name === "quality.alert");
  assert.ok(live >= 0 && live < stored);
  const [alert, event] = [updates[live], updates[stored]];
  assert.ok(alert?.name === "alert.delta" && event?.name === "quality.alert");
  assert.deepEqual([alert.turnNumber, alert.try, alert.severity, alert.checkpoint], [2, 1, "critical", 500]);
  assert.deepEqual([alert.issue, alert.suggestion], [event.data.issue, event.data.suggestion]);
  assert.ok((await gather(run.events({ deltas: false }))).every((update) => update.name !== "alert.delta"));
});

test("reasoning is followed, and ends in its response", async () => {
  const run = await start(THINK);
  for (let round = 0; round < 2; round++) { // while it runs, and from its records
    const updates = await gather(run.events());
    const written = updates.filter((update) => update.name === "delta" || update.name === "reasoning.delta");
    const text = (name: string): string => written.map((update) => (update.name === name ? update.text : "")).join("");
    assert.equal(written[0]?.name, "reasoning.delta");
    assert.equal(text("reasoning.delta"), "Where does it belong?");
    assert.equal(text("delta"), "Here.");
    const response = updates.find((update) => update.name === "model.response");
    assert.ok(response?.name === "model.response");
    assert.equal(await run.text(response.data.reasoning), "Where does it belong?");
  }
  assert.ok((await gather(run.events({ deltas: false }))).every((update) => update.name !== "reasoning.delta"));
});

test("events have the names, ids and times that the command line prints", async () => {
  const run = await start(TALK);
  const updates = await gather(run.events({ deltas: false }));
  const mine = updates.flatMap((u) => ("id" in u ? [[u.id, u.name, u.version, u.turnNumber, u.maxTurns, u.time.getTime()]] : []));
  const command = ["watch", run.id, "--server", server.address, "--output", "jsonl", "--no-stream"];
  const { stdout } = await promisify(execFile)(HARNESS, command, { env: cleanEnvironment() });
  const printed = stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(
    mine,
    printed
      .filter((line) => line.type !== "result")
      .map((line) => [line.id, line.type, line.version, line.turn_number, line.max_turns, Math.floor(Date.parse(line.time))]),
  );
});

test("every event of the protocol has a dotted name of its own, with its data", () => {
  const cases = pb.EventSchema.oneofs[0]?.fields ?? [];
  const documented = readFileSync("../../docs/events.md", "utf8");
  const names = new Set<string>();
  for (const field of cases) {
    assert.ok(field.message);
    const value = { case: field.localName, value: create(field.message) } as unknown as pb.Event["event"];
    const event = eventOf(create(pb.EventSchema, { id: "1-0", event: value }));
    assert.ok(documented.includes(`| \`${event.name}\` |`), event.name);
    assert.equal(event.data?.$typeName, field.message.typeName);
    names.add(event.name);
  }
  assert.ok(names.size > 30 && names.size === cases.length);
  assert.equal(eventOf(create(pb.EventSchema)).name, "unknown");
});

test("an attached client goes on behind an event or a version", async () => {
  const run = await start(TALK);
  const all = ids(await gather(run.events()));
  const attached = await client.attach(run.id);
  assert.deepEqual(ids(await gather(attached.events())), all);
  for (const [place, after] of all.entries()) {
    assert.deepEqual(ids(await gather(attached.events({ after }))), all.slice(place + 1));
  }
  const version = Number.parseInt(all[2] ?? "");
  const behind = all.filter((id) => Number.parseInt(id) > version);
  assert.deepEqual(ids(await gather(attached.events({ after: version }))), behind);
});

test("an iteration until now ends though the run waits", async () => {
  const run = await start(COMMAND, { agent: ASKS });
  const parked = await run.result();
  assert.deepEqual([parked.status, parked.reason, parked.ended], ["PARKED", "approval", false]);
  const updates = await gather(run.events({ until: "now" }));
  assert.deepEqual(updates.filter((update) => update.name === "result"), [parked]);
  assert.deepEqual(await run.pending(), parked.pending);
  assert.deepEqual(parked.pending[0]?.arguments, { command: "echo it ran" });
  await run.cancel("enough");
  assert.equal((await run.result()).status, "CANCELLED");
});

test("an approved call runs, and the iteration goes on", async () => {
  const run = await start(COMMAND, { agent: ASKS });
  let output = "";
  for await (const update of run.events()) {
    if (update.name === "approval.requested") {
      await run.approve(update.data.callId, { digest: update.data.preview?.digest ?? "" });
    } else if (update.name === "tool.result" && update.data.tool === "run_command") {
      output = await run.text(update.data.result);
    }
  }
  assert.match(output, /it ran/);
  assert.equal((await run.result()).accepted, true);
});

test("a denied call does not run, and the model is told why", async () => {
  const run = await start(COMMAND, { agent: ASKS });
  const [call] = (await run.result()).pending;
  await run.deny(call?.callId ?? "", "not on a Sunday");
  await run.result();
  const ended = (await gather(run.events())).flatMap((update) =>
    update.name === "tool.denied" || update.name === "tool.result" ? [`${update.name} ${update.data.tool}`] : [],
  );
  assert.deepEqual(ended, ["tool.denied run_command", "tool.result work_complete"]);
  const told = await Promise.all((await run.conversation()).map((message) => run.text(message.content)));
  assert.ok(told.some((text) => text.includes("not on a Sunday")));
});

test("the context of a response is the conversation before it", async () => {
  const run = await start(COMMAND, { agent: ASKS });
  const [call] = (await run.result()).pending;
  await run.deny(call?.callId ?? "");
  await run.result();
  const version = (await gather(run.events())).flatMap((update) => (update.name === "model.response" ? [update.version] : []))[1] ?? 0;
  const context = await run.context({ version });
  const before = (await run.conversation({ version: version - 1 })).map((message) => message.id);
  assert.deepEqual(context.items.map((item) => item.firstMessage), before);
  assert.equal(context.totalItems, before.length);
  assert.ok(before.length > 3);
  const paged = await run.context({ version, pageSize: 2 });
  assert.deepEqual(paged.items, context.items);
  assert.equal(paged.nextPageToken, "");
  assert.ok((await run.context()).totalItems > before.length);
});

test("a second answer is refused, and the same answer again is not", async () => {
  const run = await start(COMMAND, { agent: ASKS });
  const callId = (await run.result()).pending[0]?.callId ?? "";
  await assert.rejects(run.answer("call_9_9", "nobody asked"), { name: "PreconditionError", reason: "CALL_NOT_PENDING" });
  assert.equal(await run.approve(callId, { requestId: "yes" }), "yes");
  assert.equal(await run.approve(callId, { requestId: "yes" }), "yes");
  await run.result();
  await assert.rejects(run.deny(callId), (error: { reason?: string }) =>
    ["CALL_ANSWERED", "CALL_NOT_PENDING"].includes(error.reason ?? ""),
  );
});

test("a question is answered, and a message opens the run again", async () => {
  const ask = '  - {calls: [{name: ask_user, arguments: {question: "Which colour?", options: [red, green]}}]}\n';
  const run = await start(`turns:\n${ask}${DONE}  - {text: More then.}\n${DONE}`);
  const [call] = (await run.result()).pending;
  assert.ok(call);
  assert.equal(call.kind, "question");
  assert.match(JSON.stringify(call.arguments), /Which colour/);
  await run.answer(call.callId, "red");
  const first = await run.result();
  assert.equal(first.accepted, true);
  const item = await run.send("And the door?");
  assert.ok((await run.result()).turnCount > first.turnCount);
  const taken = (await gather(run.events())).flatMap((u) => (u.name === "input.accepted" ? [u.data.itemId] : []));
  assert.ok(taken.includes(item));
});

test("an interrupted run is parked and resumed", async () => {
  const run = await start(`turns:\n  - {text: Slowly., delay: 5m, calls: [{name: list_directory}]}\n${DONE}`);
  for await (const update of run.events()) {
    if (update.name === "step.start") {
      break;
    }
  }
  await run.interrupt("lunch");
  const parked = await run.result();
  assert.deepEqual([parked.status, parked.reason], ["PARKED", "interrupted"]);
  assert.equal(await run.resume({ budgets: { toolCalls: 600 } }), true);
  assert.equal((await run.info()).runId, run.id);
  await run.cancel();
  assert.equal((await run.result()).status, "CANCELLED");
});

test("the same request starts one run", async () => {
  const options = { model: server.script(TALK), workspace: server.workspace(), requestId: "once" };
  const first = await start("", options);
  const again = await start("", options);
  assert.deepEqual([first.existed, again.existed, again.id], [false, true, first.id]);
  await assert.rejects(start(TALK, { goal: "another", runId: first.id }), { name: "ExistsError", reason: "RUN_EXISTS" });
});

test("runs are listed newest first, over pages", async () => {
  const namespace = "pages";
  const started: string[] = [];
  for (let number = 0; number < 3; number++) {
    const run = await start(TALK, { namespace });
    await run.result();
    started.unshift(run.id);
  }
  const listed = await gather(client.runs({ statuses: ["DONE"], namespace, pageSize: 2 }));
  assert.deepEqual(listed.map((run) => run.runId), started);
  assert.deepEqual(await gather(client.runs({ statuses: ["PARKED"], namespace })), []);
  const last = await client.attach(started[0] ?? "", { namespace });
  await last.delete();
  assert.ok(!(await gather(client.runs({ namespace }))).some((run) => run.runId === last.id));
});

test("agents, contracts and numbers are given as objects, and long texts are fetched", async () => {
  const long = "x".repeat(20_000);
  const run = await start(`turns:\n  - {calls: [{name: write_file, arguments: {path: a.md, content: ${long}}}]}\n${DONE}`, {
    agent: { name: "writer", tools: [{ name: "write_file", policy: pb.ToolDecision.ALLOW }] },
    contract: { requiredOutputs: [{ id: "a", predicate: { type: pb.PredicateType.FILE_EXISTS, path: "a.md" } }] },
    config: { stop: { maxTurns: 7 } },
  });
  let args = "";
  for await (const update of run.events()) {
    if (update.name === "tool.call" && update.data.tool === "write_file") {
      assert.equal(update.maxTurns, 7);
      assert.equal(update.data.arguments?.value.case, "blob");
      args = await run.text(update.data.arguments);
    }
  }
  assert.equal(JSON.parse(args).content, long);
  assert.equal((await run.result()).raw.coverage?.met, 1);
});

test("wrong input is one clear error", async () => {
  await assert.rejects(client.attach("nobody"), {
    name: "NotFoundError",
    code: "NOT_FOUND",
    reason: "RUN_NOT_FOUND",
    message: "run default/nobody not found",
  });
  await assert.rejects(start(TALK, { model: "gpt" }), { name: "InvalidError", reason: "INVALID_FIELD", field: "spec.agent.model" });
  await assert.rejects(start(TALK, { config: { stop: { maxTurns: -1 } } }), {
    name: "InvalidError",
    field: "config",
    message: /max_turns.*-1/,
  });
  await assert.rejects(gather(client.runs({ statuses: ["FINISHED" as Status] })), {
    field: "statuses",
    message: 'statuses: "FINISHED" is not one of RUNNING, PARKED, DONE, STALLED, FAILED, CANCELLED',
  });
  const run = await start(TALK);
  await run.result();
  for (const after of [-1, 1.5, "14", "x-0"]) {
    await assert.rejects(gather(run.events({ after })), { message: /neither a version, such as 14, nor an event's token/ });
  }
  await assert.rejects(run.resume(), { name: "PreconditionError", reason: "RUN_ENDED" });
  await assert.rejects(run.send("x".repeat(2 << 20)), { name: "TooLargeError" });
});

test("two clients can follow one run at the same time", async () => {
  const run = await start(TALK);
  await using other = await server.connect();
  const attached = await other.attach(run.id);
  const [one, two] = await Promise.all([gather(run.events()), gather(attached.events())]);
  assert.deepEqual(ids(one), ids(two));
});

test("a signal ends an iteration with its reason, and leaves the run alone", async () => {
  const run = await start(COMMAND, { agent: ASKS });
  const leaving = new AbortController();
  await assert.rejects(
    async () => {
      for await (const update of run.events({ signal: leaving.signal })) {
        if (update.name === "result") {
          leaving.abort(new Error("seen enough"));
        }
      }
    },
    { message: "seen enough" },
  );
  assert.equal((await run.result()).status, "PARKED");
  await run.cancel();
});

test("a run is started, answered and followed on one stream both ways", async () => {
  const spec = {
    goal: { value: { case: "inline" as const, value: "look" } },
    agent: { ...ASKS, model: server.script(COMMAND) },
    workspace: server.workspace(),
  };
  let answer = (_: string): void => undefined;
  const asked = new Promise<string>((resolve) => (answer = resolve));
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => (end = resolve));
  async function* said() {
    yield create(pb.RunRequestSchema, { request: { case: "start", value: { spec } } });
    const approval = { callId: await asked, decision: pb.ApprovalDecision.ONCE };
    yield create(pb.RunRequestSchema, { requestId: "ok", request: { case: "approval", value: approval } });
    await over;
  }
  const heard: string[] = [];
  for await (const { update } of client.rpc.run(said())) {
    const what = update?.update;
    heard.push(what?.case ?? "");
    if (what?.case === "event" && what.value.event.case === "approvalRequested") {
      answer(what.value.event.value.callId);
    } else if (what?.case === "receipt") {
      assert.deepEqual([what.value.requestId, what.value.error], ["ok", ""]);
    } else if (what?.case === "result" && what.value.status === pb.RunStatus.DONE) {
      end();
    }
  }
  assert.equal(heard[0], "attached");
  assert.ok(heard.includes("receipt"));
  assert.equal(heard.at(-1), "result");
});
