/** One run: follow it, steer it, answer it. */

import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type Connection, Retry } from "./connection.js";
import { HarnessError, UnavailableError } from "./errors.js";
import { continues, eventOf, type PendingCall, pendingOf, type Result, resultOf, type Update } from "./events.js";
import * as pb from "./gen/pb.js";
import { type Init, message, newId } from "./messages.js";
import { Serving } from "./serving.js";
import type { Tool } from "./tools.js";
import { Seen, watch, type Watched } from "./watching.js";

/** When an iteration ends: when the run has ended; when it has ended or is parked; when all stored events were yielded. */
export type Until = "end" | "rest" | "now";

const UNTIL = { end: pb.WatchUntil.END, rest: pb.WatchUntil.REST, now: pb.WatchUntil.NOW } as const;

export interface Signal {
  /** Ends the call with the signal's reason. */
  signal?: AbortSignal | undefined;
}

export interface EventsOptions extends Signal {
  /**
   * The `token` of an event, such as "14-0", or a version that was seen in full. Default 0, the start. After
   * a version, what sub-agents have done that work there is yielded from their start.
   */
  after?: number | string;
  /**
   * "end", the default: when the run has ended; a run that is parked is waited for. "rest": when it
   * has ended or is parked. "now": when all that is stored has been yielded.
   */
  until?: Until;
  /**
   * Also yield the model's text and reasoning, while they are written, and alerts about the text; default true. Before its `model.response` the
   * deltas of a turn have added up to the complete text and reasoning, also where they were not streamed.
   */
  deltas?: boolean;
  /** Also yield what happens in the runs of sub-agents; `runId` of an update names its run. Default true. */
  tree?: boolean;
}

/** The run of a sub-agent whose call it is: needed only where several runs below wait for a call of this id. */
export interface AnswerOptions extends InputOptions {
  runId?: string;
}

export interface QuestionOptions extends AnswerOptions {
  /** The round of the question, so that another one of the call is not answered by it. */
  round?: number;
}

export interface InputOptions extends Signal {
  /** The same input sent again, also by another process, has one effect. Default: a new one. */
  requestId?: string;
}

/**
 * A run, as `client.start` and `client.attach` return it. The run lives in its log, not in this object:
 * any number of objects, in any number of processes, may refer to one run.
 */
export class Run {
  /** Token of the last event that `events` has yielded here, "" before the first. */
  position = "";

  /** Made by `client.start` and `client.attach`. */
  constructor(
    private readonly connection: Connection,
    readonly namespace: string,
    readonly id: string,
    /** The same request had started it before. */
    readonly existed: boolean,
    private readonly tools: ReadonlyMap<string, Tool>,
  ) {}

  /**
   * Yields what happens in the run: stored events from `after` on, then live ones, with the model's
   * text and reasoning between them, and a Result whenever the run is parked or has ended.
   *
   * A connection that breaks is reopened, and the iteration continues where it was: each event is
   * yielded once and in order. No part of a text is yielded twice, unless the model rewrites it: then
   * a delta `rewinds`.
   *
   * The client's tools run while the iteration does, also for sub-agents that may call them. A park that waits for them alone yields no
   * Result.
   *
   * @throws UnavailableError when the gateway is away for longer than the client's patience,
   * NotFoundError when there is no such run, the signal's reason when it aborts.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<Update, void, undefined> {
    const { after = 0, until = "end", deltas = true, tree = true } = options;
    const seen = Seen.after(after);
    const serving = this.tools.size > 0 && until !== "now" ? this.#serving() : undefined;
    const signals = [options.signal, serving?.signal].filter((each) => each !== undefined);
    const signal = AbortSignal.any(signals);
    const request = create(pb.WatchRunRequestSchema, {
      ...this.#name,
      until: serving ? pb.WatchUntil.END : UNTIL[until],
      noDeltas: !deltas,
      tree,
    });
    try {
      for await (const update of watch(this.connection, request, seen, signal)) {
        if (update.case !== "result") {
          if (update.case === "event") {
            serving?.announced(update.value, seen.attached);
          }
          yield* this.#updates(update, seen, deltas, signal);
        } else if (!serving?.parked(update.value)) {
          const parkedBriefly = continues(update.value);
          if (!parkedBriefly) {
            await serving?.finish(signal);
          }
          yield await resultOf(update.value, (content, runId) => this.text(content, { signal, runId }));
          if (serving && until === "rest" && !parkedBriefly) {
            return;
          }
        }
      }
    } finally {
      serving?.stop();
    }
  }

  /**
   * Waits until the run has ended or is parked, and returns its result. The client's tools run
   * meanwhile; a park that waits for them alone is not a result.
   */
  async result(options: Signal = {}): Promise<Result> {
    const after = Number((await this.info(options)).version);
    let result: Result | undefined;
    for await (const update of this.events({ ...options, after, until: "rest", deltas: false, tree: this.tools.size > 0 })) {
      if (update.name === "result") {
        result = update;
      }
    }
    if (!result) {
      throw new HarnessError(`the gateway ended the watch of ${this.namespace}/${this.id} without a result; call result again`);
    }
    return result;
  }

  /** Returns the state of the run, without its texts. */
  async info(options: Signal = {}): Promise<pb.Run> {
    return (await this.#get(options)).run ?? create(pb.RunSchema, this.#name);
  }

  /** Returns the calls that the run and the runs below it wait for; empty while it works. */
  async pending(options: Signal = {}): Promise<PendingCall[]> {
    const { result } = await this.#get(options);
    return Promise.all((result?.pending ?? []).map((call) => pendingOf(call, (content, runId) => this.text(content, { ...options, runId }))));
  }

  /** Returns the stored conversation up to a version; 0 is the newest. */
  async conversation(options: Signal & { version?: number } = {}): Promise<pb.Message[]> {
    const request = create(pb.GetConversationRequestSchema, { ...this.#name, version: BigInt(options.version ?? 0) });
    return (await this.connection.call((rpc, call) => rpc.getConversation(request, call), options)).messages;
  }

  /**
   * Returns the request sent to the model at a version, or the next one: all pages in one response. At
   * the version of a `model.response` it is the request that the response answers, and `digestMatches`
   * reports whether it has the digest that the run has recorded. 0 is the newest. `pageSize`: messages
   * that one call fetches, at most 1,000.
   */
  async context(options: Signal & { version?: number; pageSize?: number } = {}): Promise<pb.GetContextResponse> {
    const { version = 0, pageSize = 1000 } = options;
    const request = create(pb.GetContextRequestSchema, { ...this.#name, version: BigInt(version), pageSize });
    const whole = await this.connection.call((rpc, call) => rpc.getContext(request, call), options);
    while (whole.nextPageToken) {
      request.pageToken = whole.nextPageToken;
      const page = await this.connection.call((rpc, call) => rpc.getContext(request, call), options);
      whole.items.push(...page.items);
      whole.nextPageToken = page.nextPageToken;
      if (page.digestMatches !== undefined) {
        whole.digestMatches = page.digestMatches;
      }
    }
    return whole;
  }

  /**
   * Sends the run a message. A working run includes it in its next request to the model, a parked one
   * resumes, one that has ended reopens. Returns the input's id, which the event `input.accepted`
   * names.
   */
  send(text: string, options: InputOptions = {}): Promise<string> {
    return this.#input({ case: "userMessage", value: { content: inline(text) } }, options);
  }

  /**
   * Answers a call: of a tool that a client runs, or a question. `error`: the call failed, and the text
   * is the error.
   *
   * @throws ExistsError when the call has an answer, PreconditionError when it does not wait for one.
   */
  answer(callId: string, text: string, options: AnswerOptions & { error?: boolean } = {}): Promise<string> {
    return this.#input({ case: "toolAnswer", value: { callId, result: inline(text), isError: options.error ?? false } }, options);
  }

  /**
   * Answers the question of a server. `values`: those of its form, or the value of its only field as text; by the
   * id of each request if it has several, with null for one that is declined; nothing once its address was
   * visited.
   *
   * @throws InvalidError, which names a field that does not fit.
   */
  accept(callId: string, values: Readonly<Record<string, unknown>> | string = "", options: QuestionOptions = {}): Promise<string> {
    return this.#respond(callId, pb.AnswerAction.ACCEPT, options, typeof values === "string" ? values : JSON.stringify(values));
  }

  /** Declines the question of a server: the person does not want to answer. */
  decline(callId: string, options: QuestionOptions = {}): Promise<string> {
    return this.#respond(callId, pb.AnswerAction.DECLINE, options);
  }

  /** Closes the question of a server without a choice, the action CANCEL. */
  dismiss(callId: string, options: QuestionOptions = {}): Promise<string> {
    return this.#respond(callId, pb.AnswerAction.CANCEL, options);
  }

  #respond(callId: string, action: pb.AnswerAction, options: QuestionOptions, text = ""): Promise<string> {
    return this.#input({ case: "toolAnswer", value: { callId, action, result: inline(text), round: options.round ?? 0 } }, options);
  }

  /**
   * Approves a call; with `always`, also all later calls of its tool in this run. `digest`: of the call that was
   * shown, as `PendingCall` has it: the approval counts for this call only. Calls that lists have shortened are not
   * approved without.
   */
  approve(callId: string, options: AnswerOptions & { always?: boolean; digest?: string } = {}): Promise<string> {
    const decision = options.always ? pb.ApprovalDecision.RUN : pb.ApprovalDecision.ONCE;
    return this.#input({ case: "approval", value: { callId, decision, digest: options.digest ?? "" } }, options);
  }

  /** Denies a call. The model receives the reason. */
  deny(callId: string, reason = "", options: AnswerOptions = {}): Promise<string> {
    return this.#input({ case: "approval", value: { callId, decision: pb.ApprovalDecision.DENY, reason } }, options);
  }

  /** Changes the mode of work from the next call on: plan, execute or a mode that the agent defines. */
  setMode(mode: string, options: InputOptions = {}): Promise<string> {
    return this.#input({ case: "modeChange", value: { mode } }, options);
  }

  /** Gives feedback on the result of the run, which has ended. The last feedback counts. */
  giveFeedback(good: boolean, options: InputOptions = {}): Promise<string> {
    return this.#input({ case: "feedback", value: { thumb: good ? pb.Thumb.UP : pb.Thumb.DOWN } }, options);
  }

  /** Kills the calls that run and parks the run. Returns when the request is stored; `result` waits for its effect. */
  async interrupt(reason = "", options: InputOptions = {}): Promise<string> {
    const request = message(pb.InterruptRunRequestSchema, "interrupt", { ...this.#named(options), reason });
    return (await this.connection.call((rpc, call) => rpc.interruptRun(request, call), options)).requestId;
  }

  /**
   * Resumes a parked or cancelled run. `budgets` replace the current ones, such as
   * `{ toolCalls: 600 }`. Returns false when it was running already; then only budgets have an effect.
   */
  async resume(
    options: InputOptions & { budgets?: Init<typeof pb.BudgetsSchema> } = {},
  ): Promise<boolean> {
    const budgets = options.budgets && message(pb.BudgetsSchema, "budgets", options.budgets);
    const request = create(pb.ResumeRunRequestSchema, { ...this.#named(options), ...(budgets && { budgets }) });
    return !(await this.connection.call((rpc, call) => rpc.resumeRun(request, call), options)).alreadyRunning;
  }

  /** Ends the run. Returns when the request is stored; `result` waits for its effect. */
  async cancel(reason = "", options: InputOptions = {}): Promise<string> {
    const request = message(pb.CancelRunRequestSchema, "cancel", { ...this.#named(options), reason });
    return (await this.connection.call((rpc, call) => rpc.cancelRun(request, call), options)).requestId;
  }

  /** Deletes a run that is parked or has ended, with all that is stored of it. */
  async delete(options: Signal = {}): Promise<void> {
    await this.connection.call((rpc, call) => rpc.deleteRun(this.#name, call), options);
  }

  /**
   * Returns the text of a content; fetches it if it is stored in a blob. `runId`: the run of a sub-agent
   * that it comes from.
   */
  async text(content: pb.Content | undefined, options: Signal & { runId?: string } = {}): Promise<string> {
    switch (content?.value.case) {
      case "inline":
        return content.value.value;
      case "blob":
        return (await this.#blob(content.value.value, options.runId || this.id, options.signal)).toString();
      default:
        return "";
    }
  }

  async #blob({ digest }: pb.BlobRef, runId: string, signal?: AbortSignal): Promise<Buffer> {
    const retry = new Retry(this.connection.patience);
    for (;;) {
      try {
        const chunks: Uint8Array[] = [];
        for await (const { chunk } of this.connection.rpc.getBlob({ ...this.#name, runId, digest }, signal ? { signal } : {})) {
          chunks.push(chunk);
        }
        const data = Buffer.concat(chunks);
        if (createHash("sha256").update(data).digest("hex") !== digest) {
          throw new UnavailableError(`blob ${digest} of ${this.namespace}/${this.id} arrived with other bytes; read it again`);
        }
        return data;
      } catch (error) {
        await this.connection.waitForRetry(error, retry, signal);
      }
    }
  }

  /** Yields the updates for an event or a piece of text. */
  async *#updates(
    update: Exclude<Watched, { case: "result" }>,
    seen: Seen,
    deltas: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<Update, void, undefined> {
    if (update.case === "delta") {
      yield update.value;
      return;
    }
    const { event, id, offset, turnNumber, runId } = update.value;
    if (deltas && event.case === "modelResponse") {
      const { reasoning, text } = event.value;
      const thought = seen.reasoned(turnNumber, await this.text(reasoning, { signal, runId }), runId);
      const rest = seen.response(turnNumber, await this.text(text, { signal, runId }), runId);
      for (const piece of [thought, rest]) {
        if (piece) {
          yield piece;
        }
      }
    }
    this.position = offset || id;
    yield eventOf(update.value);
  }

  #serving(): Serving {
    return new Serving(
      this.tools,
      (content, runId) => this.text(content, { runId }),
      ({ callId, runId }, text, error, requestId, signal) => this.answer(callId, text, { error, requestId, signal, runId }),
    );
  }

  #get(options: Signal): Promise<pb.GetRunResponse> {
    return this.connection.call((rpc, call) => rpc.getRun(this.#name, call), options);
  }

  async #input(input: Init<typeof pb.SendInputRequestSchema>["input"], options: AnswerOptions): Promise<string> {
    const named = { ...this.#named(options), runId: options.runId || this.id };
    const request = message(pb.SendInputRequestSchema, "input", { ...named, ...(input && { input }) });
    return (await this.connection.call((rpc, call) => rpc.sendInput(request, call), options)).requestId;
  }

  get #name(): { namespace: string; runId: string } {
    return { namespace: this.namespace, runId: this.id };
  }

  #named(options: InputOptions): { namespace: string; runId: string; requestId: string } {
    return { ...this.#name, requestId: options.requestId ?? newId() };
  }
}

function inline(text: string): { value: { case: "inline"; value: string } } {
  return { value: { case: "inline", value: text } };
}
