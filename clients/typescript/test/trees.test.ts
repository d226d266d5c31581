/** Runs with sub-agents, against a real server. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { HarnessClient, type StartOptions, tool, type Update } from "harnessmesh";
import { DONE, gather, Server, Way } from "./server.js";

const LEAF = `turns:\n  - {text: I look., calls: [{name: list_directory, arguments: {path: '.'}}]}\n${DONE}`;

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

function calls(name: string): string {
  return `turns:\n  - {text: I pass it on., calls: [{name: ${name}, arguments: {prompt: Do it.}}]}\n${DONE}`;
}

/** The agent of a chain of two: each calls the next. `tools`: those of the client that both have. */
function chain(leaf: string, tools: string[] = []): Pick<StartOptions, "goal" | "agent" | "workspace"> {
  const lower = {
    name: "lower", description: "Helps.", instructions: "Help.", model: server.script(leaf), tools,
  };
  const upper = {
    name: "upper", description: "Helps.", instructions: "Help.", model: server.script(calls("lower")),
    tools: tools.length > 0 ? [...tools, "lower"] : [], agents: [lower],
  };
  return { goal: "delegate", agent: { model: server.script(calls("upper")), agents: [upper] }, workspace: server.workspace() };
}

/** The ids of the events in the order of each run: runs that work side by side are mixed. */
function byRun(updates: readonly Update[]): Record<string, string[]> {
  const runs: Record<string, string[]> = {};
  for (const update of updates) {
    if ("id" in update) {
      (runs[update.runId] ??= []).push(update.id);
    }
  }
  return runs;
}

test("the events of a tree name their run, and continue after each token", async () => {
  const run = await client.start(chain(LEAF));
  assert.ok((await run.result()).accepted);
  const updates = await gather(run.events());
  const whole = updates.filter((update) => "id" in update);
  const runs = Object.fromEntries(whole.map((event) => [event.agent, event.runId]));
  assert.deepEqual(Object.keys(runs).sort(), ["", "lower", "upper"]);
  assert.deepEqual([...new Set(whole.filter((e) => e.agent === "lower").map((e) => e.parentRunId))], [runs["upper"]]);
  const written = updates.map((u) => (u.name === "delta" && u.runId === runs["lower"] ? u.text : "")).join("");
  assert.equal(written, "I look.");
  for (const [at, event] of whole.entries()) {
    const rest = await gather(run.events({ after: event.token, until: "now", deltas: false }));
    assert.deepEqual(byRun(rest), byRun(whole.slice(at + 1)), event.token);
  }
  const alone = await gather(run.events({ tree: false }));
  assert.deepEqual(byRun(alone), { "": byRun(whole)[""] });
});

test("an iteration over a tree goes on over breaks, without loss or repeat", async () => {
  const turns = Array.from({ length: 6 }, (_, n) => `  - {text: Turn ${n}., delay: 60ms, calls: [{name: list_directory, arguments: {path: '.'}}]}\n`);
  await using way = await Way.to(server);
  await using far = await HarnessClient.connect(way.address, { token: server.key });
  const run = await far.start(chain(`turns:\n${turns.join("")}${DONE}`));
  const seen: Update[] = [];
  let cuts = 0;
  for await (const update of run.events()) {
    seen.push(update);
    if (update.name === "step.start" && update.agent === "lower" && update.turnNumber % 2 === 0) {
      cuts += 1;
      await way.cut();
      await way.mend();
    }
  }
  assert.ok(cuts >= 3);
  assert.ok(seen.at(-1)?.name === "result");
  assert.deepEqual(byRun(seen), byRun(await gather(run.events())));
});

test("a tool of the client is called by a sub-agent two levels down", async () => {
  const leaf = `turns:\n  - {calls: [{name: look_up, arguments: {order: 17}}]}\n${DONE}`;
  let made = 0;
  const lookUp = tool({
    name: "look_up",
    description: "Finds an order.",
    parameters: { type: "object", properties: { order: { type: "integer" } }, required: ["order"] },
    reads: true,
    run({ order }) {
      made += 1;
      return `order ${order} is on its way`;
    },
  });
  const run = await client.start({ ...chain(leaf, ["look_up"]), tools: [lookUp] });
  const updates = await gather(run.events());
  const found = updates.flatMap((u) => (u.name === "tool.result" && u.data.tool === "look_up" ? [[u.agent, u.data.result?.value.value]] : []));
  assert.deepEqual(found, [["lower", "order 17 is on its way"]]);
  assert.equal(made, 1);
  const last = updates.at(-1);
  assert.ok(last?.name === "result" && last.accepted);

  const left = await client.start({ ...chain(leaf, ["look_up"]), tools: [lookUp] });
  const waits = await (await client.attach(left.id)).result(); // by a client without the tool
  assert.deepEqual(waits.pending.map((call) => [call.kind, call.tool, call.runId.slice(0, 2)]), [["client_tool", "look_up", "a-"]]);
  assert.ok((await (await client.attach(left.id, { tools: [lookUp] })).result()).accepted);
});

test("questions of sub-agents are answered by the root or by their run", async () => {
  const leaf = `turns:\n  - {calls: [{name: ask_user, arguments: {question: "Which one?"}}]}\n${DONE}`;
  for (const named of [false, true]) {
    const run = await client.start(chain(leaf));
    const [call] = (await run.result()).pending;
    assert.ok(call);
    assert.deepEqual([call.kind, (await run.pending())[0]?.runId], ["question", call.runId]);
    await run.answer(call.callId, "this", named ? { runId: call.runId } : {});
    const last = (await gather(run.events())).at(-1);
    assert.ok(last?.name === "result" && last.status === "DONE");
  }
});
