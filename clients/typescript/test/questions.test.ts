/** Questions of a server of tools. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { pb, type PendingCall, type Run } from "harnessmesh";
import { DONE, Server } from "./server.js";

const CALL = "  - {calls: [{name: mcp__asking__confirm, arguments: {}}]}\n";

async function asked(run: Run): Promise<PendingCall> {
  const [call] = (await run.result()).pending;
  assert.equal(call?.kind, "question");
  assert.deepEqual([call.question?.server, call.question?.round], ["asking", 1]);
  assert.equal(call.question?.requests[0]?.message?.value.value, "Are you sure?");
  return call;
}

test("questions of a server are accepted, declined and closed", async () => {
  await using server = await Server.start();
  await using client = await server.connect();
  const run = await client.start({
    goal: "confirm",
    model: server.script(`turns:\n${CALL.repeat(4)}${DONE}`),
    workspace: server.workspace(),
    agent: {
      mcp: [{ name: "asking", command: process.execPath, args: [fileURLToPath(new URL("asking.js", import.meta.url))] }],
      tools: [{ name: "mcp__asking__*", policy: pb.ToolDecision.ALLOW }],
    },
    config: { sandbox: { level: pb.SandboxLevel.OFF } },
  });
  const { callId } = await asked(run);
  await assert.rejects(run.accept(callId, { other: 1 }), { name: "InvalidError", message: /other: the form has no such field/ });
  await assert.rejects(run.decline(callId, { round: 2 }), { name: "PreconditionError", reason: "CALL_CHANGED" });
  await run.accept(callId, { why: "it is late" }, { round: 1 });
  await run.accept((await asked(run)).callId, "briefly");
  await run.decline((await asked(run)).callId, { round: 1 });
  await run.dismiss((await asked(run)).callId);
  assert.equal((await run.result()).status, "DONE");
  const results = (await run.conversation()).filter((m) => m.toolName === "mcp__asking__confirm").map((m) => String(m.content?.value.value));
  assert.deepEqual(
    results.map((text) => text.replace("[data from the server asking] ", "")),
    ["accept it is late", "accept briefly", "decline nothing", "cancel nothing"],
  );
});
