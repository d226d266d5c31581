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

/** Answers a call. */
export type Answer = (callId: string, text: string, failed: boolean, requestId: string, signal: AbortSignal) => Promise<unknown>;

const CLIENT_TOOL = "client_tool";

/** The calls that a follower of one run has made or is making. */
export class Serving {
  readonly #made = new Set<string>();
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

  /** Handles an event that happens while the run is followed. */
  announced(event: pb.Event): void {
    if (event.event.case === "toolCall" && event.event.value.awaits === CLIENT_TOOL) {
      this.#make(event.event.value);
    }
  }

  /** Handles the result of a parked run. Returns true if this client makes all the calls it waits for. */
  parked({ pending }: pb.HarnessResult): boolean {
    for (const call of pending) {
      if (call.kind === CLIENT_TOOL) {
        this.#make(call);
      }
    }
    return pending.length > 0 && pending.every((call) => call.kind === CLIENT_TOOL && this.#made.has(call.callId));
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

  #make({ callId, tool, arguments: args }: { callId: string; tool: string; arguments?: pb.Content | undefined }): void {
    const own = this.tools.get(tool);
    if (!own || this.#made.has(callId)) {
      return;
    }
    this.#made.add(callId);
    const running = this.#serve(own, callId, args)
      .catch((error: unknown) => this.#stopping.abort(error))
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #serve(tool: Tool, callId: string, args: pb.Content | undefined): Promise<void> {
    const { signal } = this;
    const { text, failed } = await runTool(tool, parseArguments(await this.text(args)), { callId, signal });
    // The same call has the same id: an answer that was stored before a crash counts once.
    const requestId = `tool-${createHash("sha256").update(callId).digest("hex").slice(0, 32)}`;
    signal.throwIfAborted();
    try {
      await this.answer(callId, text, failed, requestId, signal);
    } catch (error) {
      if (error instanceof TooLargeError) {
        await this.answer(callId, `the result is too large: ${error.message}`, true, requestId, signal);
      } else if (!(error instanceof ExistsError || error instanceof PreconditionError || error instanceof NotFoundError)) {
        throw error;
      } // else another client answered, or the call waits no more: the run's events have the outcome
    }
  }
}
