// Drives `harness mcp serve` with the client of the TypeScript SDK: it starts a run twice with one
// request id, answers its question, approves its command, and cancels another run. It writes what
// it saw as JSON. Arguments: the program and its arguments.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "drive", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));

async function call(name, given) {
  const result = await client.callTool({ name, arguments: given }, undefined, { timeout: 120000 });
  const text = result.content[0].text;
  if (result.isError) {
    throw new Error(`${name}: ${text}`);
  }
  return JSON.parse(text);
}

async function waiting(runID) {
  await call("wait_run", { run_id: runID, seconds: 90 });
  const { pending } = await call("list_pending", { run_id: runID });
  return pending[0].call;
}

const seen = { tools: (await client.listTools()).tools.map((t) => t.name).sort(), kinds: [] };
const start = { goal: "Ask first.", run_id: "asks", request_id: "one" };
const first = await call("start_run", start);
const again = await call("start_run", start);
seen.once = first.run_id === "asks" && again.run_id === "asks" && (await call("list_runs", {})).runs.length === 1;
for (const answer of [{ text: "the first" }, { decision: "once" }]) {
  const waits = await waiting("asks");
  seen.kinds.push(waits.kind);
  await call("answer", { run_id: "asks", call_id: waits.call_id, ...answer, ...(answer.decision ? { digest: waits.preview_digest } : {}) });
}
await call("wait_run", { run_id: "asks", seconds: 90 });
seen.status = await call("run_status", { run_id: "asks" });
await call("start_run", { goal: "Ask first.", run_id: "cancelled" });
await waiting("cancelled");
await call("cancel_run", { run_id: "cancelled", reason: "enough" });
await call("wait_run", { run_id: "cancelled", seconds: 90 });
seen.cancelled = await call("run_status", { run_id: "cancelled" });
await client.close();
console.log(JSON.stringify(seen));
