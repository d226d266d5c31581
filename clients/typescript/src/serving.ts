/**
 * Running the client's tools while the client follows the run.
 *
 * A call is made at its `tool.call`, if that happens while the run is followed, and otherwise when the
 * run is parked and still waits for the call. So a client that crashed and attaches again makes the
 * calls that it left open, and none that have their answer.
 */

import { createHash } from "node:crypto";
import { ExistsError, NotFoundError, PreconditionError, TooLargeError } from "./errors.js";
import { parseArguments, type Texts } from "./events.js";
import type * as pb from "./gen/pb.js";
import { runTool, type Tool } from "./tools.js";

/** A call: its run, "" for the run that is followed, and its id, unique in its run. */
export interface Called {
  readonly runId: string;
  readonly callId: string;
}

/** Answers a call. */
export type Answer = (call: Called, text: string, failed: boolean, requestId: string, signal: AbortSignal) => Promise<unknown>;

const CLIENT_TOOL = "client_tool";

/** The calls that a follower of a run has made or is making, of the run and of the runs below it. */
export class Serving {
  readonly #made = new Set<string>();
  /** Runs below that have started since the connection, so that none of their events is history. */
  readonly #new = new Set<string>();
  #attached = 0;
  readonly #running = new Set<Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(
    private readonly tools: ReadonlyMap<string, Tool>,
    private readonly text: Texts,
    private readonly answer: Answer,
  ) {}

  /** Aborts with the error of a call whose result could not be sent. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /**
   * Handles an event. `attached` is the version of the run when the connection was made; what came
   * before is history, which other clients may have handled.
   */
  announced({ event, runId, version }: pb.Event, attached: number): void {
    if (attached !== this.#attached) {
      this.#attached = attached;
      this.#new.clear();
    }
    if (runId ? !this.#new.has(runId) : version <= attached) {
      return;
    }
    if (event.case === "agentStarted") {
      this.#new.add(event.value.runId);
    }
    if (event.case === "toolCall" && event.value.awaits === CLIENT_TOOL) {
      const { callId, tool, arguments: args } = event.value;
      this.#make({ runId, callId, tool, arguments: args });
    }
  }

  /** Handles the result of a parked run. Returns true if this client makes all the calls it waits for. */
  parked({ pending }: pb.HarnessResult): boolean {
    for (const call of pending) {
      if (call.kind === CLIENT_TOOL) {
        this.#make(call);
      }
    }
    return pending.length > 0 && pending.every((call) => call.kind === CLIENT_TOOL && this.#made.has(keyOf(call)));
  }

  /** Waits for the calls that run. Throws the reason of the signal if that aborts first. */
  async finish(signal: AbortSignal): Promise<void> {
    let wake = (): void => undefined;
    const aborted = new Promise<void>((resolve) => (wake = resolve));
    signal.addEventListener("abort", wake);
    if (!signal.aborted) {
      await Promise.race([Promise.all(this.#running), aborted]);
    }
    signal.removeEventListener("abort", wake);
    signal.throwIfAborted();
  }

  /** Aborts the calls that run. They stay open; the next client that attaches makes them again. */
  stop(): void {
    this.#stopping.abort(new DOMException("this client follows the run no more", "AbortError"));
  }

  #make({ runId, callId, tool, arguments: args }: Called & { tool: string; arguments?: pb.Content | undefined }): void {
    const own = this.tools.get(tool);
    const call = { runId, callId };
    if (!own || this.#made.has(keyOf(call))) {
      return;
    }
    this.#made.add(keyOf(call));
    const running = this.#serve(own, call, args)
      .catch((error: unknown) => this.#stopping.abort(error))
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #serve(tool: Tool, call: Called, args: pb.Content | undefined): Promise<void> {
    const { signal } = this;
    const { callId, runId } = call;
    const { text, failed } = await runTool(tool, parseArguments(await this.text(args, runId)), { callId, signal });
    // The same call has the same id: an answer that was stored before a crash counts once.
    const requestId = `tool-${createHash("sha256").update(callId).digest("hex").slice(0, 32)}`;
    signal.throwIfAborted();
    try {
      await this.answer(call, text, failed, requestId, signal);
    } catch (error) {
      if (error instanceof TooLargeError) {
        await this.answer(call, `the result is too large: ${error.message}`, true, requestId, signal);
      } else if (!(error instanceof ExistsError || error instanceof PreconditionError || error instanceof NotFoundError)) {
        throw error;
      } // else another client answered, or the call waits no more: the run's events have the outcome
    }
  }
}

function keyOf({ runId, callId }: Called): string {
  return `${runId}/${callId}`;
}
