/** The events that {@link Seen} passes on, without a gateway. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Delta, type ReasoningDelta, pb } from "harnessmesh";
import { Seen } from "../src/watching.js";

function event(version: number, index: number): pb.Event {
  return create(pb.EventSchema, { id: `${version}-${index}`, version: BigInt(version) });
}

function delta(turnNumber: number, attempt: number, number: number, offset: number, text: string): pb.Delta {
  return create(pb.DeltaSchema, { turnNumber, attempt, try: number, offset: BigInt(offset), text });
}

function piece(turnNumber: number, attempt: number, number: number, offset: number, text: string, rewinds = false): Delta {
  return { name: "delta", turnNumber, attempt, try: number, offset, text, rewinds, runId: "" };
}

test("a watch goes on behind the version before the last event", () => {
  const seen = Seen.after(7);
  assert.equal(seen.resume, 7);
  assert.ok(seen.event(event(9, 0)));
  assert.equal(seen.resume, 8);
  assert.ok(!seen.event(event(9, 0)));
  assert.ok(seen.event(event(9, 1)));
  assert.equal(Seen.after("9-1").resume, 8);
  assert.ok(!Seen.after("9-1").event(event(9, 1)));
  assert.equal(Seen.after("0-0").resume, 0);
});

test("every break of a stream leaves each event delivered once", () => {
  const stored = Array.from({ length: 11 }, (_, n) => n + 1).flatMap((version) =>
    Array.from({ length: version % 4 }, (_, index) => event(version, index)),
  );
  let state = 7; // numbers that are the same in each run of the test
  const random = (below: number): number => (state = (state * 48_271) % 2_147_483_647) % below;
  for (let round = 0; round < 200; round++) {
    const seen = Seen.after(0);
    const delivered: pb.Event[] = [];
    while (delivered.length < stored.length) {
      const behind = stored.filter((each) => Number(each.version) > seen.resume);
      delivered.push(...behind.slice(0, random(behind.length + 1)).filter((each) => seen.event(each)));
    }
    assert.deepEqual(delivered, stored);
  }
});

test("text comes once, and begins anew with a later try", () => {
  const seen = Seen.after(0);
  assert.deepEqual(seen.delta(delta(1, 1, 1, 0, "Grüße ")), piece(1, 1, 1, 0, "Grüße "));
  assert.equal(seen.delta(delta(1, 1, 1, 0, "Grüße ")), undefined);
  assert.deepEqual(seen.delta(delta(1, 1, 1, 0, "Grüße aus")), piece(1, 1, 1, 8, "aus"));
  assert.equal(seen.delta(delta(1, 1, 1, 40, "nach einer Lücke")), undefined);
  assert.equal(seen.delta(delta(1, 1, 2, 5, "mitten im zweiten Versuch")), undefined);
  assert.deepEqual(seen.delta(delta(1, 1, 2, 0, "Noch ")), piece(1, 1, 2, 0, "Noch ", true));
  assert.equal(seen.delta(delta(1, 1, 1, 11, " Oslo")), undefined);
  assert.deepEqual(seen.delta(delta(1, 2, 1, 0, "einmal")), piece(1, 2, 1, 0, "einmal", true));
  assert.deepEqual(seen.delta(delta(2, 1, 1, 0, "Danach")), piece(2, 1, 1, 0, "Danach"));
});

test("the pieces of a turn add up to its response", () => {
  const seen = Seen.after(0);
  assert.deepEqual(seen.response(1, "Nothing was seen."), piece(1, 0, 0, 0, "Nothing was seen."));
  assert.equal(seen.delta(delta(1, 1, 1, 0, "Nothing")), undefined);
  assert.deepEqual(seen.delta(delta(2, 1, 1, 0, "Der Gruß")), piece(2, 1, 1, 0, "Der Gruß"));
  assert.deepEqual(seen.response(2, "Der Gruß kam."), piece(2, 0, 0, 9, " kam."));
  assert.deepEqual(seen.delta(delta(3, 1, 1, 0, "All of it.")), piece(3, 1, 1, 0, "All of it."));
  assert.equal(seen.response(3, "All of it."), undefined);
  assert.deepEqual(seen.delta(delta(4, 1, 1, 0, "One try")), piece(4, 1, 1, 0, "One try"));
  assert.deepEqual(seen.response(4, "Another"), piece(4, 0, 0, 0, "Another", true));
});

test("reasoning and text are counted separately", () => {
  const thought = (turnNumber: number, attempt: number, number: number, offset: number, reasoning: string): pb.Delta =>
    create(pb.DeltaSchema, { turnNumber, attempt, try: number, reasoningOffset: BigInt(offset), reasoning });
  const reasoned = (...fields: Parameters<typeof piece>): ReasoningDelta => ({ ...piece(...fields), name: "reasoning.delta" });
  const seen = Seen.after(0);
  assert.deepEqual(seen.reasoning(thought(1, 1, 1, 0, "Grüße ")), reasoned(1, 1, 1, 0, "Grüße "));
  assert.equal(seen.delta(thought(1, 1, 1, 0, "Grüße ")), undefined);
  assert.equal(seen.reasoning(delta(1, 1, 1, 0, "Yes")), undefined);
  assert.deepEqual(seen.delta(delta(1, 1, 1, 0, "Yes")), piece(1, 1, 1, 0, "Yes"));
  assert.equal(seen.reasoning(thought(1, 1, 1, 0, "Grüße ")), undefined);
  assert.equal(seen.reasoning(thought(1, 1, 1, 40, "nach einer Lücke")), undefined);
  assert.deepEqual(seen.delta(delta(1, 1, 1, 3, ".")), piece(1, 1, 1, 3, "."));
  assert.deepEqual(seen.reasoning(thought(1, 1, 2, 0, "Noch")), reasoned(1, 1, 2, 0, "Noch", true));
  assert.deepEqual(seen.delta(delta(1, 1, 2, 0, "No.")), piece(1, 1, 2, 0, "No.", true));
  assert.deepEqual(seen.reasoned(1, "Noch etwas"), reasoned(1, 0, 0, 4, " etwas"));
  assert.equal(seen.response(1, "No."), undefined);
  assert.equal(seen.reasoning(thought(1, 1, 2, 4, " etwas")), undefined);
  assert.deepEqual(seen.reasoned(2, "Not streamed"), reasoned(2, 0, 0, 0, "Not streamed"));
  assert.equal(seen.reasoned(3, ""), undefined);
  const both = thought(4, 1, 1, 0, "hm");
  both.text = "ja";
  assert.deepEqual(seen.reasoning(both), reasoned(4, 1, 1, 0, "hm"));
  assert.deepEqual(seen.delta(both), piece(4, 1, 1, 0, "ja"));
});

test("a result that is told again is not new until something happens", () => {
  const seen = Seen.after(0);
  const parked = (): pb.HarnessResult => create(pb.HarnessResultSchema, { status: pb.RunStatus.PARKED });
  assert.ok(seen.result(parked()));
  assert.ok(!seen.result(parked()));
  assert.ok(seen.event(event(3, 0)));
  assert.ok(seen.result(parked()));
});
