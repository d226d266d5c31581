/**
 * A server of tools that asks a person: newline-delimited JSON-RPC, MCP 2026-07-28. Its tool `confirm` asks
 * for a reason, and returns the person's answer.
 */

import { createInterface } from "node:readline";

interface Params {
  inputResponses?: { sure?: { action: string; content?: { why?: string } } };
}

const FORM = { type: "object", properties: { why: { type: "string" } }, required: ["why"] };

function answer(method: string, params: Params): object | undefined {
  switch (method) {
    case "server/discover":
      return { supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, serverInfo: { name: "asking", version: "1" } };
    case "tools/list":
      return { tools: [{ name: "confirm", inputSchema: { type: "object" } }] };
    case "tools/call": {
      const given = params.inputResponses?.sure;
      if (given === undefined) {
        const asked = { mode: "form", message: "Are you sure?", requestedSchema: FORM };
        return { resultType: "input_required", requestState: "1", inputRequests: { sure: { method: "elicitation/create", params: asked } } };
      }
      return { resultType: "complete", content: [{ type: "text", text: `${given.action} ${given.content?.why ?? "nothing"}` }] };
    }
    default:
      return undefined;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line) as { id?: number | string; method?: string; params?: Params };
  if (id === undefined || method === undefined) {
    continue;
  }
  const result = answer(method, params ?? {});
  const reply = result ? { result } : { error: { code: -32601, message: "method not found" } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...reply })}\n`);
}
