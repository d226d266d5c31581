/** What an iteration over a run yields: events, pieces of the model's text and reasoning, and the run's results. */

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import * as pb from "./gen/pb.js";

/** A case of Event.event with what belongs to it. */
type Case = Exclude<pb.Event["event"], { case: undefined }>;

/** sessionStart → session_start. */
type Snake<S extends string> = S extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Snake<Tail>}`
  : "";
/** work_item_changed → work_item.changed: the last underscore is the dot. */
type Dotted<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? Tail extends `${string}_${string}`
    ? `${Head}_${Dotted<Tail>}`
    : `${Head}.${Tail}`
  : S;

/** The data of each event of docs/events.md, by the event's name. */
export type EventData = { [C in Case as Dotted<Snake<C["case"]>>]: C["value"] };

/** The names of docs/events.md. */
export type EventName = keyof EventData;

interface Envelope {
  /** VERSION-INDEX, unique in the run; RUN/VERSION-INDEX in an event of a sub-agent's run. */
  readonly id: string;
  /** Pass it to `run.events({ after })` to continue after this event. */
  readonly token: string;
  /** The run of the sub-agent that it happened in; "" for the run that is followed. So the next four. */
  readonly runId: string;
  /** The run whose call started it. */
  readonly parentRunId: string;
  /** That call. */
  readonly callId: string;
  /** The name of the sub-agent. */
  readonly agent: string;
  /** How many runs are above it; 0 for the run that is followed. */
  readonly depth: number;
  /** Version of the record that contains it, in its run; one record may contain several events. */
  readonly version: number;
  /** When the record was made. */
  readonly time: Date;
  /** The turn that it belongs to, 0 before the first. */
  readonly turnNumber: number;
  /** The turn after which the run ends. */
  readonly maxTurns: number;
}

/** Something that was committed to the run's log, with one name of docs/events.md. */
export type EventOf<Name extends EventName> = Envelope & { readonly name: Name; readonly data: EventData[Name] };

/** An event of a newer server. */
export type UnknownEvent = Envelope & { readonly name: "unknown"; readonly data: undefined };

/** Something that was committed to the run's log: `name` determines the type of `data`. */
export type Event = { [Name in EventName]: EventOf<Name> }[EventName] | UnknownEvent;

/**
 * A piece of the model's text. The pieces of a turn, from the last that `rewinds` on, add up to the
 * text of its event `model.response`, which follows them.
 */
export interface Delta {
  readonly name: "delta";
  readonly turnNumber: number;
  /** Claim of the turn and try that wrote it; both 0 when it was not streamed but taken from the response. */
  readonly attempt: number;
  readonly try: number;
  /** Bytes (UTF-8) of the text that came before. */
  readonly offset: number;
  readonly text: string;
  /**
   * The text of this turn that was yielded before is void, and this piece starts it again: an earlier
   * try broke off, or another worker took over the turn.
   */
  readonly rewinds: boolean;
  /** The run of a sub-agent that it belongs to; "" for the run that is followed. */
  readonly runId: string;
}

/**
 * A piece of the model's reasoning, as the provider tells it to people, with the fields of a Delta.
 * The pieces of a turn, from the last that `rewinds` on, add up to `reasoning` of its event
 * `model.response`, which follows them.
 */
export type ReasoningDelta = Omit<Delta, "name"> & { readonly name: "reasoning.delta" };

/**
 * Output of the command of a running call, at most ten pieces a second. Pieces may be skipped; the
 * result of the call follows with `tool.result` or `tool.error`.
 */
export interface ToolOutput {
  readonly name: "tool.output";
  readonly turnNumber: number;
  readonly callId: string;
  /** Bytes (UTF-8) of the output that came before. */
  readonly offset: number;
  readonly text: string;
  /** The run of a sub-agent that the call belongs to; "" for the run that is followed. */
  readonly runId: string;
}

/**
 * An alert of the monitor while the model writes its text: the fields of `quality.alert`. That
 * event follows with the response and has what counts. It repeats each alert of the try that succeeded.
 */
export interface Alert {
  readonly name: "alert.delta";
  readonly turnNumber: number;
  readonly attempt: number;
  readonly try: number;
  /** critical or warning. */
  readonly severity: string;
  /** Characters of the text that were checked. */
  readonly checkpoint: number;
  readonly issue: string;
  readonly suggestion: string;
  /** The run of a sub-agent that it belongs to; "" for the run that is followed. */
  readonly runId: string;
}

/** The status of a run. */
export type Status = Exclude<keyof typeof pb.RunStatus, "UNSPECIFIED">;

/** A call that waits for an answer from outside. */
export interface PendingCall {
  readonly callId: string;
  readonly tool: string;
  /** A JSON value, or the text where the model wrote something else. */
  readonly arguments: unknown;
  /** approval, client_tool, question or review. */
  readonly kind: string;
  /** Why it has to wait, or the question, for the person that answers. */
  readonly why: string;
  readonly turnNumber: number;
  /** When it fails without an answer; undefined means never. */
  readonly deadline: Date | undefined;
  /** The run of a sub-agent that waits; "" for the run itself. */
  readonly runId: string;
  /**
   * What a server of tools asks, with its requests and its round; undefined for other calls. `run.accept`, `run.decline`
   * and `run.dismiss` answer it.
   */
  readonly question: pb.ServerQuestion | undefined;
  /** Of what is shown here, for `run.approve`; "" for calls that wait for no approval. */
  readonly digest: string;
}

/** Something that the agent made for the user, with its complete text. */
export interface Deliverable {
  readonly itemId: string;
  readonly title: string;
  readonly content: string;
}

/** The state of a run that is parked or has ended. Texts are complete. */
export interface Result {
  readonly name: "result";
  readonly status: Status;
  /** True if the run has ended: only a message, or after a cancel a resume, reopens it. */
  readonly ended: boolean;
  /** True if the run is parked and continues by itself: for a wait, or while sub-agents work. */
  readonly continues: boolean;
  /** The work counts as done: the agent declared it done and no gate rejected it. */
  readonly accepted: boolean;
  /** A kind of docs/events.md, such as agent_done, approval or budget_exceeded:turns. */
  readonly reason: string;
  /** The same for people, one sentence. */
  readonly message: string;
  /** The agent's last text. */
  readonly answer: string;
  /** The summary with which the agent declared the work done. */
  readonly summary: string;
  readonly turnCount: number;
  readonly toolCalls: number;
  /** The calls that wait, while it is parked. */
  readonly pending: readonly PendingCall[];
  /** When a parked run resumes by itself; undefined means never. */
  readonly wakeAt: Date | undefined;
  readonly deliverables: readonly Deliverable[];
  /** The protocol's message, with coverage, usage and the facts of the reason. */
  readonly raw: pb.HarnessResult;
}

/** What `run.events` yields, distinguished by `name`. */
export type Update = Event | Delta | ReasoningDelta | ToolOutput | Alert | Result;

/** Fetches a text that may be stored in a blob of the run, or of a run below it that is named. */
export type Texts = (content: pb.Content | undefined, runId: string) => Promise<string>;

export function eventOf(event: pb.Event): Event {
  const { id, turnNumber, maxTurns, runId, parentRunId, callId, agent, depth } = event;
  const name = event.event.case === undefined ? "unknown" : nameOf(event.event.case);
  const run = { token: event.offset || id, runId, parentRunId, callId, agent, depth };
  const envelope = { id, ...run, version: Number(event.version), time: date(event.time) ?? new Date(0), turnNumber, maxTurns };
  // The name and the value come from the same case.
  return { name, ...envelope, data: event.event.value } as Event;
}

export async function pendingOf(call: pb.PendingCall, text: Texts): Promise<PendingCall> {
  const { callId, tool, kind, why, turnNumber, runId } = call;
  return {
    callId,
    tool,
    arguments: parseArguments(await text(call.arguments, runId)),
    kind,
    why,
    turnNumber,
    deadline: date(call.deadline),
    question: call.question,
    digest: call.preview?.digest ?? "",
    runId,
  };
}

export async function resultOf(result: pb.HarnessResult, text: Texts): Promise<Result> {
  const status = pb.RunStatus[result.status] as Status;
  return {
    name: "result",
    status,
    ended: status !== "PARKED",
    continues: continues(result),
    accepted: result.accepted,
    reason: result.reason?.kind ?? "",
    message: result.reason?.message ?? "",
    answer: await text(result.answer, ""),
    summary: await text(result.summary, ""),
    turnCount: result.turnCount,
    toolCalls: result.toolCalls,
    pending: await Promise.all(result.pending.map((call) => pendingOf(call, text))),
    wakeAt: date(result.wakeAt),
    deliverables: await Promise.all(
      result.deliverables.map(async ({ itemId, title, content }) => ({ itemId, title, content: await text(content, "") })),
    ),
    raw: result,
  };
}

/** Reports whether a run is parked and continues by itself. */
export function continues({ status, reason }: pb.HarnessResult): boolean {
  const works = reason?.kind === "wait" || (reason?.kind === "agent" && !reason.details?.runId);
  return status === pb.RunStatus.PARKED && works;
}

/** The dotted name of a case of Event.event: workItemChanged → work_item.changed, qualityPlanSelected → quality.plan_selected. */
export function nameOf(name: string): string {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return snake.startsWith("quality_") ? snake.replace("_", ".") : snake.replace(/_(?=[^_]*$)/, ".");
}

/** Returns a call's arguments: the JSON value, or the text if they are not JSON. */
export function parseArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The millisecond that a time lies in. */
function date(time: Timestamp | undefined): Date | undefined {
  return time && new Date(Number(time.seconds) * 1_000 + Math.floor(time.nanos / 1_000_000));
}
