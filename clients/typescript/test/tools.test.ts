/** Functions as tools. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { HarnessClient, tool, ToolFailed } from "harnessmesh";
import { byName, runTool, specOf } from "../src/tools.js";

const call = { callId: "c1", signal: new AbortController().signal };
const none = { type: "object" } as const;

test("the types of a tool's arguments come from its schema", async () => {
  const book = tool({
    name: "book",
    description: "Books a place to sleep.",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string" },
        nights: { type: "integer" },
        kind: { enum: ["room", "flat"] },
        notes: { type: "array", items: { type: "string" } },
      },
      required: ["city"],
    },
    writes: true,
    run({ city, nights, kind, notes, ...rest }) {
      const typed: [string, number | undefined, "room" | "flat" | undefined, string[] | undefined] = [city, nights, kind, notes];
      const nothingElse: Record<string, never> = rest;
      // @ts-expect-error a city is no number
      const wrong: number = city;
      return [...typed, nothingElse, wrong];
    },
  });
  const spec = specOf(book);
  assert.equal(spec.parametersSchema, JSON.stringify(book.parameters));
  assert.deepEqual(spec.annotations, { reads: false, writes: true });
  const { text } = await runTool(book, { city: "Oslo", kind: "flat" }, call);
  assert.deepEqual(JSON.parse(text), ["Oslo", null, "flat", null, {}, "Oslo"]);
});

test("a call gives text, JSON or an error", async () => {
  const make = (run: () => unknown) => tool({ name: "t", description: "", parameters: none, run });
  const made = (run: () => unknown) => runTool(make(run), {}, call);
  assert.deepEqual(await made(async () => "in Oslo"), { text: "in Oslo", failed: false });
  assert.deepEqual(await made(() => ({ sky: "rain" })), { text: '{"sky":"rain"}', failed: false });
  assert.deepEqual(await made(() => undefined), { text: "null", failed: false });
  const failing = made(() => {
    throw new ToolFailed("no such city");
  });
  assert.deepEqual(await failing, { text: "no such city", failed: true });
  assert.deepEqual(await made(() => Promise.reject(new RangeError("too far"))), { text: "RangeError: too far", failed: true });
  const { text, failed } = await runTool(make(() => "never"), "no object", call);
  assert.ok(failed);
  assert.equal(text, 'the arguments are no JSON object: "no object"');
});

test("two tools with one name are refused", () => {
  const same = () => tool({ name: "same", description: "", parameters: none, run: () => "" });
  assert.throws(() => byName([same(), same()]), { name: "InvalidError", field: "tools", message: "tools: duplicate name same" });
  assert.equal(typeof HarnessClient.connect, "function");
});
