/** Client for harnessmesh: start, follow and steer runs of agents. */

export { type AttachOptions, type ConnectOptions, HarnessClient, type RunsOptions, type StartOptions } from "./client.js";
export {
  ExistsError,
  ForbiddenError,
  HarnessError,
  InvalidError,
  NotFoundError,
  PreconditionError,
  TooLargeError,
  UnauthenticatedError,
  UnavailableError,
} from "./errors.js";
export type {
  Alert,
  Deliverable,
  Delta,
  Event,
  EventData,
  EventName,
  EventOf,
  PendingCall,
  ReasoningDelta,
  Result,
  Status,
  ToolOutput,
  UnknownEvent,
  Update,
} from "./events.js";
export type { AnswerOptions, EventsOptions, InputOptions, QuestionOptions, Run, Signal, Until } from "./run.js";
export { type FromSchema, type Parameters, type Schema, type Tool, type ToolCall, type ToolDefinition, ToolFailed, tool } from "./tools.js";
export { type Served, type ServeOptions, serveTools, type ServiceTool, type ToolServiceOptions } from "./toolservice.js";
/** The protocol: its messages, enums, schemas and service. */
export * as pb from "./gen/pb.js";
