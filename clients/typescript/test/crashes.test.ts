/** What a client sees when servers and clients die. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { HarnessClient, tool, UnavailableError, type Result } from "harnessmesh";
import { DONE, gather, ids, Server, stored, Way } from "./server.js";

const TURNS = 8;
const LONG =
  "turns:\n" +
  Array.from(
    { length: TURNS - 1 },
    (_, n) =>
      `  - {text: Turn ${n + 1} goes by slowly., delay: 150ms, calls: [{name: list_directory, arguments: {path: '.'}}]}\n`,
  ).join("");
const CLOSED = { name: "HarnessError", message: "the client is closed", code: "CANCELLED" };

test("an iteration goes on over a server that is killed, without loss or repeat", async () => {
  await using server = await Server.start();
  await using client = await server.connect();
  const run = await client.start({
    goal: "go on",
    model: server.script(LONG + DONE),
    workspace: server.workspace(),
    config: { stall: { enabled: false }, doomLoop: { enabled: false } },
  });
  const seen: string[] = [];
  const text = new Map<number, string>();
  const whole = new Map<number, string>();
  let kills = 0;
  let result: Result | undefined;
  for await (const update of run.events()) {
    if (update.name === "delta") {
      const turn = update.turnNumber;
      text.set(turn, update.rewinds ? update.text : (text.get(turn) ?? "") + update.text);
      if (kills < 2 && turn === 2 + 3 * kills) {
        kills += 1; // in the middle of the model's text
        await server.kill();
        await server.start();
      }
    } else if (update.name === "result") {
      result = update;
    } else if (update.name !== "reasoning.delta" && update.name !== "tool.output" && update.name !== "alert.delta") {
      seen.push(update.id);
      const response = update.name === "model.response" ? await run.text(update.data.text) : "";
      if (response !== "") {
        whole.set(update.turnNumber, response);
      }
    }
  }
  assert.equal(kills, 2);
  assert.equal(result?.accepted, true);
  assert.equal(result.turnCount, TURNS);
  assert.deepEqual(seen, await stored(run));
  assert.deepEqual(text, whole);
});

test("a call waits out a server that is away, and starts one run", async () => {
  await using server = await Server.start();
  await using client = await server.connect();
  await server.kill();
  const starting = client.start({ goal: "go on", model: server.script(`turns:\n${DONE}`), workspace: server.workspace() });
  await server.start();
  const run = await starting;
  assert.equal((await run.result()).accepted, true);
  assert.deepEqual((await gather(client.runs())).map((each) => each.runId), [run.id]);
});

test("patience ends with one clear error", async () => {
  await using server = await Server.start();
  await using client = await HarnessClient.connect(server.address, { patience: 300 });
  const run = await client.start({ goal: "go on", model: server.script(LONG + DONE), workspace: server.workspace() });
  const expected = { name: "UnavailableError", message: /^no gateway can be reached at 127\.0\.0\.1/ };
  const following = assert.rejects(gather(run.events()), expected);
  await server.kill();
  await following;
  await assert.rejects(run.info(), UnavailableError);
  await assert.rejects(run.info(), expected);
});

test("calls of client tools are made again by the next client, and answered ones are not", async () => {
  await using server = await Server.start();
  await using client = await server.connect();
  const begun: string[] = [];
  const leaving = new AbortController();
  let hanging = (): void => undefined;
  const hangs = new Promise<void>((resolve) => (hanging = resolve));
  const lookUp = tool({
    name: "look_up",
    description: "Looks up an order.",
    parameters: { type: "object", properties: { order: { type: "integer" } }, required: ["order"] },
    async run({ order }, { callId, signal }) {
      begun.push(callId);
      if (order === 2 && begun.filter((each) => each === callId).length === 1) {
        hanging();
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      }
      return `order ${order} is on its way`;
    },
  });
  const calls = [1, 2].map((n) => `{name: look_up, arguments: {order: ${n}}}`).join(", ");
  const model = server.script(`turns:\n  - {text: Two orders., calls: [${calls}]}\n${DONE}`);
  const run = await client.start({ goal: "look up", model, workspace: server.workspace(), tools: [lookUp] });

  const first: string[] = [];
  await assert.rejects(
    async () => {
      for await (const update of run.events({ signal: leaving.signal, deltas: false })) {
        first.push(...ids([update]));
        if (update.name === "tool.result") {
          await hangs;
          leaving.abort(new Error("the client dies"));
        }
      }
    },
    { message: "the client dies" },
  );

  await using other = await server.connect();
  const attached = await other.attach(run.id, { tools: [lookUp] });
  const updates = await gather(attached.events({ after: first.at(-1) ?? "" }));
  const last = updates.at(-1);
  assert.ok(last?.name === "result" && last.accepted);
  assert.deepEqual([...first, ...ids(updates)], await stored(attached));
  assert.deepEqual(begun.toSorted(), ["call_1_0", "call_1_1", "call_1_1"]);
  const answers = (await attached.conversation()).filter((message) => message.toolName === "look_up");
  assert.deepEqual(
    answers.map((message) => message.content?.value.value),
    ["order 1 is on its way", "order 2 is on its way"],
  );
});

test("history that is read again makes no call again", async () => {
  await using server = await Server.start();
  await using client = await server.connect();
  const notes: string[] = [];
  const note = tool({
    name: "note",
    description: "Notes something.",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    run: ({ text }) => void notes.push(text),
  });
  const model = server.script(`turns:\n  - {text: A note., calls: [{name: note, arguments: {text: one}}]}\n${DONE}`);
  const run = await client.start({ goal: "note", model, workspace: server.workspace(), tools: [note] });
  assert.equal((await run.result()).accepted, true);
  const attached = await client.attach(run.id, { tools: [note] });
  const names = (await gather(attached.events())).map((update) => update.name);
  assert.ok(names.includes("tool.call"));
  assert.deepEqual(notes, ["one"]);
});

test("a call that another client answered while this one was cut off is not made, and one that waits is", async () => {
  await using server = await Server.start();
  await using way = await Way.to(server);
  await using client = await HarnessClient.connect(way.address, { token: server.key });
  const made: number[] = [];
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  let back = (): void => undefined;
  const isBack = new Promise<void>((resolve) => (back = resolve));
  const lookUp = tool({
    name: "look_up",
    description: "Looks up an order.",
    parameters: { type: "object", properties: { order: { type: "integer" } }, required: ["order"] },
    async run({ order = 0 }) {
      made.push(order);
      if (order === 1) {
        begin();
        await isBack;
      }
      return `order ${order} is here`;
    },
  });
  const turns = [1, 2, 3].map((n) => `  - {text: Order ${n}., calls: [{name: look_up, arguments: {order: ${n}}}]}\n`);
  const model = server.script(`turns:\n${turns.join("")}${DONE}`);
  const run = await client.start({ goal: "look up", model, workspace: server.workspace(), tools: [lookUp] });
  const following = gather(run.events({ deltas: false }));
  await begun;
  await way.cut();

  await using other = await server.connect();
  const there = await other.attach(run.id);
  for (const order of [1, 2]) {
    const { pending } = await there.result();
    await there.answer(pending[0]?.callId ?? "", `order ${order} is there`);
  }
  assert.equal((await there.result()).pending.length, 1);
  await way.mend();
  back();

  const last = (await following).at(-1);
  assert.ok(last?.name === "result" && last.accepted);
  assert.deepEqual(made, [1, 3]);
  const answers = (await there.conversation()).filter((message) => message.toolName === "look_up");
  assert.deepEqual(
    answers.map((message) => message.content?.value.value),
    ["order 1 is there", "order 2 is there", "order 3 is here"],
  );
});

test("a client without patience has its calls answered by a gateway that is there", async () => {
  await using server = await Server.start();
  await using client = await HarnessClient.connect(server.address, { patience: 0, connectTimeout: 0 });
  const run = await client.start({ goal: "go on", model: server.script(`turns:\n${DONE}`), workspace: server.workspace() });
  assert.equal((await run.result()).accepted, true);
});

test("a client that is closed ends what is under way, and connects no more", { timeout: 20_000 }, async () => {
  await using server = await Server.start();
  await using way = await Way.to(server);
  const client = await HarnessClient.connect(way.address, { token: server.key });
  const asks = "turns:\n  - {calls: [{name: ask_user, arguments: {question: which}}]}\n";
  const run = await client.start({ goal: "ask", model: server.script(asks + DONE), workspace: server.workspace() });
  const updates = run.events();
  for await (const update of { [Symbol.asyncIterator]: () => ({ next: () => updates.next() }) }) {
    if (update.name === "result") {
      break;
    }
  }
  const rest = assert.rejects(updates.next(), CLOSED);
  await client.close();
  await rest;
  await assert.rejects(run.info(), CLOSED);
  await assert.rejects(gather(run.events()), CLOSED);
  await assert.rejects(client.rpc.listRuns({}), { name: "ConnectError", rawMessage: "the client is closed" });
  await Promise.all([...way.open].map((socket) => socket.closed || once(socket, "close")));
  assert.equal(way.made, 1);
  await client.close();
});

test("a client that is closed does not wait for a gateway that is away", { timeout: 20_000 }, async () => {
  await using server = await Server.start();
  const client = await server.connect();
  await server.kill();
  const asked = assert.rejects(gather(client.runs()), CLOSED);
  await client.close();
  await asked;
});
