// Starts the conformance suite of MCP, node --import suite.mjs: the suite imports globSync from fs, which
// node has from version 22 on, for a command that is not used here. Requests of fetch have the token in
// CONFORMANCE_TOKEN, if it is set.
import { register } from "node:module";

const fs = 'export * from "node:fs"; export { default } from "node:fs"; export function globSync() { throw new Error("needs node 22"); }';

function hooks(fs) {
  return `export async function resolve(specifier, context, next) {
    if (specifier === "fs" && context.parentURL?.includes("/@modelcontextprotocol/conformance/")) {
      return { url: ${JSON.stringify("data:text/javascript," + encodeURIComponent(fs))}, shortCircuit: true };
    }
    return next(specifier, context);
  }`;
}

register("data:text/javascript," + encodeURIComponent(hooks(fs)));

const token = process.env.CONFORMANCE_TOKEN;
if (token) {
  const bare = globalThis.fetch;
  globalThis.fetch = (input, init = {}) => {
    const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
    headers.set("Authorization", `Bearer ${token}`);
    return bare(input, { ...init, headers });
  };
}
