// Drives runs with the client of the TypeScript SDK, over `harness mcp serve` or /mcp of a gateway: it starts a
// run twice with one request id, answers its question twice with one, has its approval refused, approves, and
// cancels another run. It writes what it saw as JSON.
//
//   drive.mjs WORKSPACE MODEL http URL TOKEN APPROVING_TOKEN     the first token may not approve
//   drive.mjs WORKSPACE MODEL stdio PROGRAM ARGUMENT…            the first client may not: the second adds --approve
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [workspace, model, kind, target, ...rest] = process.argv.slice(2);

async function connected(approves) {
  const client = new Client({ name: "drive", version: "1" });
  await client.connect(
    kind === "http"
      ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers: { Authorization: `Bearer ${rest[approves ? 1 : 0]}` } } })
      : new StdioClientTransport({ command: target, args: approves ? [...rest, "--approve"] : rest, env: process.env, stderr: "inherit" }),
  );
  return client;
}

let client = await connected(false);

async function tried(name, given) {
  const result = await client.callTool({ name, arguments: given }, undefined, { timeout: 120000 });
  return { failed: result.isError === true, text: result.content[0].text };
}

async function call(name, given) {
  const { failed, text } = await tried(name, given);
  if (failed) {
    throw new Error(`${name}: ${text}`);
  }
  return JSON.parse(text);
}

async function waiting(runID) {
  await call("wait_run", { run_id: runID, seconds: 90 });
  const { pending } = await call("list_pending", { run_id: runID });
  seen.kinds.push(pending[0].call.kind);
  return pending[0].call;
}

const seen = { tools: (await client.listTools()).tools.map((t) => t.name).sort(), kinds: [] };
const start = { goal: "Ask first.", workspace, model, run_id: "asks", request_id: "one" };
const first = await call("start_run", start);
const again = await call("start_run", start);
seen.once = first.run_id === "asks" && again.run_id === "asks" && (await call("list_runs", {})).runs.length === 1;

const question = await waiting("asks");
for (let i = 0; i < 2; i++) {
  await call("answer", { run_id: "asks", call_id: question.call_id, text: "the first", request_id: "two" });
}

const approval = await waiting("asks");
const decision = { run_id: "asks", call_id: approval.call_id, decision: "once", request_id: "three", ...(approval.preview_digest && { digest: approval.preview_digest }) };
seen.refused = (await tried("answer", decision)).text;
seen.kinds.push((await call("list_pending", { run_id: "asks" })).pending[0].call.kind);
await client.close();
client = await connected(true);
for (let i = 0; i < 2; i++) {
  await call("answer", decision);
}
await call("wait_run", { run_id: "asks", seconds: 90 });
seen.status = await call("run_status", { run_id: "asks" });

await call("start_run", { goal: "Ask first.", workspace, model, run_id: "cancelled" });
await waiting("cancelled");
for (let i = 0; i < 2; i++) {
  await call("cancel_run", { run_id: "cancelled", reason: "enough", request_id: "four" });
}
await call("wait_run", { run_id: "cancelled", seconds: 90 });
seen.cancelled = await call("run_status", { run_id: "cancelled" });
await client.close();
console.log(JSON.stringify(seen));
