import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { InvalidError, pb } from "../src/index.js";
import { message } from "../src/messages.js";

void test("a policy is spelt as in agent files", () => {
  const spellings: [string | pb.ToolDecision, pb.ToolDecision][] = [
    ["allow", pb.ToolDecision.ALLOW],
    ["ask", pb.ToolDecision.ASK],
    ["Deny", pb.ToolDecision.DENY],
    ["TOOL_DECISION_DENY", pb.ToolDecision.DENY],
    [pb.ToolDecision.ASK, pb.ToolDecision.ASK],
  ];
  for (const [policy, want] of spellings) {
    const agent = message(pb.AgentSpecSchema, "agent", { tools: [{ name: "run_command", policy }] });
    assert.equal(agent.tools[0]?.policy, want);
  }
});

void test("an unknown word is refused with the list", () => {
  assert.throws(
    () => message(pb.AgentSpecSchema, "agent", { tools: [{ name: "a", policy: "ask" }, { name: "b", policy: "alow" }] }),
    (error) =>
      error instanceof InvalidError &&
      error.field === "agent.tools[1].policy" &&
      error.message === 'agent.tools[1].policy: "alow": expected one of allow, ask, deny',
  );
});

void test("messages, oneofs and structs stay as they are", () => {
  const made = create(pb.AgentSpecSchema, { tools: [{ name: "a", policy: pb.ToolDecision.ASK }] });
  const spec = message(pb.RunSpecSchema, "spec", { goal: { value: { case: "inline", value: "ask" } }, agent: made });
  assert.equal(spec.goal?.value.value, "ask");
  assert.equal(spec.agent?.tools[0]?.policy, pb.ToolDecision.ASK);
});
