/**
 * Watching a run over connections that break.
 *
 * A gateway delivers the events of each run strictly by version. {@link Seen} records the delivered
 * ones: it has the position to resume at, and drops those that are delivered a second time.
 * {@link watch} is the shell around it.
 */

import { create, equals } from "@bufbuild/protobuf";
import { type Connection, Retry } from "./connection.js";
import { invalid } from "./errors.js";
import type { Alert, Delta, ReasoningDelta, ToolOutput } from "./events.js";
import * as pb from "./gen/pb.js";

/** Turn, attempt and try that wrote a text. */
type Try = readonly [turn: number, attempt: number, number: number];

/** A piece of text or of reasoning. */
type Piece<Name> = Omit<Delta, "name"> & { readonly name: Name };

/** What a watch yields. */
export type Watched =
  | { case: "event"; value: pb.Event }
  | { case: "delta"; value: Delta | ReasoningDelta | ToolOutput | Alert }
  | { case: "result"; value: pb.HarnessResult };

/** The delivered part of the text that the model writes in a turn, or of its reasoning. */
class Written<Name extends "delta" | "reasoning.delta"> {
  /** The try that wrote the text that was delivered last, and how much of it. */
  #try: Try = [0, 0, 0];
  #shown = "";
  #shownBytes = 0;

  constructor(
    private readonly name: Name,
    private readonly runId: string,
  ) {}

  /** Records a piece and returns the new part. Undefined if nothing is new, or if text before it is missing. */
  piece(at: Try, offset: number, text: string): Piece<Name> | undefined {
    const order = compare(at, this.#try);
    if (text === "" || order < 0) {
      return undefined;
    }
    let rewinds = false;
    if (order > 0) {
      if (offset !== 0) {
        return undefined;
      }
      rewinds = at[0] === this.#try[0] && this.#shown !== "";
      this.#try = at;
      this.#forget();
    }
    if (offset > this.#shownBytes) {
      return undefined;
    }
    return this.#add(at, skip(text, this.#shownBytes - offset), rewinds);
  }

  /** Records the complete text of a turn and returns the part that was not delivered piece by piece. */
  whole(turnNumber: number, text: string): Piece<Name> | undefined {
    if (turnNumber !== this.#try[0]) {
      this.#forget();
    }
    const rewinds = !text.startsWith(this.#shown);
    if (rewinds) {
      this.#forget();
    }
    const rest = this.#add([turnNumber, 0, 0], text.slice(this.#shown.length), rewinds);
    this.#try = [turnNumber, Infinity, Infinity]; // pieces of this turn that arrive late are not new
    return rest;
  }

  #add([turnNumber, attempt, number]: Try, text: string, rewinds: boolean): Piece<Name> | undefined {
    const offset = this.#shownBytes;
    this.#shown += text;
    this.#shownBytes += Buffer.byteLength(text);
    return text === "" ? undefined : { name: this.name, turnNumber, attempt, try: number, offset, text, rewinds, runId: this.runId };
  }

  #forget(): void {
    this.#shown = "";
    this.#shownBytes = 0;
  }
}

/** The delivered events of a run and of the runs below it. */
export class Seen {
  /** Version of the log when the watch started or was resumed; 0 before. Events up to it are history. */
  attached = 0;
  /** The delivered text, by run; "" is the run itself. */
  readonly #texts = new Map<string, Written<"delta">>();
  readonly #thoughts = new Map<string, Written<"reasoning.delta">>();
  /** The result that was delivered last; undefined after a later event. */
  #result: pb.HarnessResult | undefined;

  private constructor(
    /** The last event's version and index; index Infinity when the whole version was delivered. */
    private version: number,
    private index: number,
    /** The gateway's offset after the last event, "" in a run without sub-agents. */
    private offset = "",
  ) {}

  /** Starts after a version that was seen in full, or after an event, by its token. Throws InvalidError for anything else. */
  static after(position: number | string): Seen {
    if (typeof position === "number" && Number.isSafeInteger(position) && position >= 0) {
      return new Seen(position, Infinity);
    }
    const id = typeof position === "string" ? /^(\d{1,15})(?:-(\d{1,9}))?((?:~[0-9.-]*)*)$/.exec(position) : null;
    if (!id?.[2] && !id?.[3]) {
      throw invalid(
        "after",
        `${JSON.stringify(position)} is neither a version, such as 14, nor an event's token, such as "14-0"`,
      );
    }
    return new Seen(Number(id[1]), id[2] ? Number(id[2]) : Infinity, id[3] ? String(position) : "");
  }

  /** Where a watch starts: at the offset, or after a version. */
  get from(): { after: string; afterVersion: bigint } {
    return { after: this.offset, afterVersion: this.offset ? 0n : BigInt(this.resume) };
  }

  /** The version to resume after: the last one may contain more events. */
  get resume(): number {
    return this.index === Infinity ? this.version : Math.max(this.version - 1, 0);
  }

  /** Reports whether everything up to a version of the log was delivered. */
  reaches(version: number): boolean {
    return this.version >= version;
  }

  /**
   * Records an event. Returns false if it was delivered before. One of a run below comes once, because
   * its offset is resumed.
   */
  event(event: pb.Event): boolean {
    if (event.runId) {
      this.offset = event.offset;
      return true;
    }
    const version = Number(event.version);
    const index = Number(event.id.slice(event.id.lastIndexOf("-") + 1));
    if (version < this.version || (version === this.version && index <= this.index)) {
      return false;
    }
    this.version = version;
    this.index = index;
    this.offset = event.offset;
    this.#result = undefined;
    return true;
  }

  /** Records a piece of text and returns the new part. Undefined if nothing is new, or if text before it is missing. */
  delta(delta: pb.Delta): Delta | undefined {
    return this.#written(delta.runId).piece(tryOf(delta), Number(delta.offset), delta.text);
  }

  /** Records a piece of reasoning and returns the new part, as `delta` does for text. */
  reasoning(delta: pb.Delta): ReasoningDelta | undefined {
    return this.#thought(delta.runId).piece(tryOf(delta), Number(delta.reasoningOffset), delta.reasoning);
  }

  /** Records the complete text of a turn and returns the part that was not delivered piece by piece. */
  response(turnNumber: number, text: string, runId = ""): Delta | undefined {
    return this.#written(runId).whole(turnNumber, text);
  }

  /** Records the complete reasoning of a turn, as `response` does for the text. */
  reasoned(turnNumber: number, text: string, runId = ""): ReasoningDelta | undefined {
    return this.#thought(runId).whole(turnNumber, text);
  }

  /** Records a result. Returns false if the same result was delivered before. */
  result(result: pb.HarnessResult): boolean {
    if (this.#result && equals(pb.HarnessResultSchema, result, this.#result)) {
      return false;
    }
    this.#result = result;
    return true;
  }

  #written(runId: string): Written<"delta"> {
    const written = this.#texts.get(runId) ?? new Written("delta", runId);
    this.#texts.set(runId, written);
    return written;
  }

  #thought(runId: string): Written<"reasoning.delta"> {
    const written = this.#thoughts.get(runId) ?? new Written("reasoning.delta", runId);
    this.#thoughts.set(runId, written);
    return written;
  }
}

/**
 * Yields the events of a run after those that were seen, each once, until the gateway ends the watch.
 * A connection that breaks is reopened, for up to `patience` milliseconds each time. The signal ends
 * the watch, with the signal's reason.
 *
 * A result is yielded only if it is current: one that the run has left again is history, and its
 * events contain it.
 */
export async function* watch(
  connection: Connection,
  request: pb.WatchRunRequest,
  seen: Seen,
  signal: AbortSignal,
): AsyncGenerator<Watched, void, undefined> {
  const retry = new Retry(connection.patience);
  for (;;) {
    const leaving = new AbortController();
    const from = { ...request, ...seen.from };
    let attached = 0;
    try {
      const options = { signal: AbortSignal.any([signal, leaving.signal]) };
      for await (const { update } of connection.rpc.watchRun(from, options)) {
        retry.reset();
        connection.answered = true;
        const what = update?.update;
        if (what?.case === "attached") {
          attached = Number(what.value.version);
          seen.attached = attached;
        } else if (what?.case === "event" && seen.event(what.value)) {
          yield what;
        } else if (what?.case === "delta" && what.value.toolOutput) {
          const { callId, offset, text } = what.value.toolOutput;
          const { turnNumber, runId } = what.value;
          yield { case: "delta", value: { name: "tool.output", turnNumber, callId, offset: Number(offset), text, runId } };
        } else if (what?.case === "delta" && what.value.alert) {
          const { severity, checkpoint, issue, suggestion } = what.value.alert;
          const { turnNumber, attempt, try: number, runId } = what.value;
          yield {
            case: "delta",
            value: { name: "alert.delta", turnNumber, attempt, try: number, severity, checkpoint, issue, suggestion, runId },
          };
        } else if (what?.case === "delta") {
          for (const piece of [seen.reasoning(what.value), seen.delta(what.value)]) {
            if (piece) {
              yield { case: "delta", value: piece };
            }
          }
        } else if (what?.case === "result") {
          const current = seen.reaches(attached) || (await isCurrent(connection, request, what.value, signal));
          if (current && seen.result(what.value)) {
            yield what;
          }
        }
      }
      return;
    } catch (error) {
      await connection.waitForRetry(error, retry, signal);
    } finally {
      leaving.abort();
    }
  }
}

/**
 * Reports whether a result is the run's current one. After the newest version it always is; before it,
 * results are part of the history, so the gateway is queried.
 */
async function isCurrent(
  connection: Connection,
  { namespace, runId }: pb.WatchRunRequest,
  result: pb.HarnessResult,
  signal: AbortSignal,
): Promise<boolean> {
  const question = create(pb.GetRunRequestSchema, { namespace, runId });
  const now = await connection.call((rpc, options) => rpc.getRun(question, options), { signal });
  return now.result !== undefined && equals(pb.HarnessResultSchema, now.result, result);
}

/** Returns a text without its first bytes of UTF-8. */
function skip(text: string, bytes: number): string {
  return bytes === 0 ? text : Buffer.from(text).subarray(bytes).toString();
}

function tryOf(delta: pb.Delta): Try {
  return [delta.turnNumber, delta.attempt, delta.try];
}

function compare(a: Try, b: Try): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || 0;
}
