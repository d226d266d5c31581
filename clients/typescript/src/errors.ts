/**
 * What can go wrong, as errors.
 *
 * Every error of the package is a {@link HarnessError}. Its message is one line that says what is
 * wrong; `reason` and `field` say it to programs.
 */

import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.js";

/** The domain of the details that a gateway adds to its errors. */
const DOMAIN = "harnessmesh";

export interface ErrorDetails {
  code?: string;
  reason?: string;
  metadata?: Record<string, string>;
}

/** A request failed. */
export class HarnessError extends Error {
  /** The gRPC code, such as "NOT_FOUND"; empty when nothing was sent. */
  readonly code: string;
  /** An ErrorReason without its prefix, such as "RUN_NOT_FOUND"; empty when there is none. */
  readonly reason: string;
  /** What the gateway says besides; its keys are documented with ErrorReason. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message);
    this.name = new.target.name;
    this.code = details.code ?? "";
    this.reason = details.reason ?? "";
    this.metadata = details.metadata ?? {};
  }

  /** The field that is wrong, such as "spec.agent.model"; empty when no field is meant. */
  get field(): string {
    return this.metadata["field"] ?? "";
  }
}

/** Something in the request is wrong; `field` says what. Sending it again does not help. */
export class InvalidError extends HarnessError {}

/** There is no such run, version or blob. */
export class NotFoundError extends HarnessError {}

/** Another was first: the run id is in use (RUN_EXISTS), or the call has its answer (CALL_ANSWERED). */
export class ExistsError extends HarnessError {}

/** The run does not stand so that it can be done, such as CALL_NOT_PENDING, RUN_ENDED or RUN_ACTIVE. */
export class PreconditionError extends HarnessError {}

/** An input is over its bound; metadata: limit, size. */
export class TooLargeError extends HarnessError {}

/** The gateway wants a token, or does not know the one that it was given. */
export class UnauthenticatedError extends HarnessError {}

/** The token may not do this, such as touch that namespace. */
export class ForbiddenError extends HarnessError {}

/** The gateway, or what is behind it, was out of reach for all of the time that the client tries. */
export class UnavailableError extends HarnessError {}

/** An argument that is refused before anything is sent. */
export function invalid(field: string, what: string): InvalidError {
  return new InvalidError(`${field}: ${what}`, { metadata: { field } });
}

const CLASSES = new Map<Code, typeof HarnessError>([
  [Code.InvalidArgument, InvalidError],
  [Code.OutOfRange, InvalidError],
  [Code.NotFound, NotFoundError],
  [Code.AlreadyExists, ExistsError],
  [Code.FailedPrecondition, PreconditionError],
  [Code.ResourceExhausted, TooLargeError],
  [Code.Unauthenticated, UnauthenticatedError],
  [Code.PermissionDenied, ForbiddenError],
  [Code.Unavailable, UnavailableError],
  [Code.DeadlineExceeded, UnavailableError],
  [Code.Aborted, UnavailableError],
]);

/** The error for a failed call to the gateway at an address. */
export function fromRpc(error: ConnectError, address: string): HarnessError {
  if (error.cause instanceof HarnessError) {
    return error.cause; // an argument that turned out wrong on the way
  }
  const { reason, metadata } = details(error);
  const told = error.rawMessage.replace(/\s+/g, " ").trim() || codeName(error.code);
  let code = error.code;
  let message = told;
  if (code === Code.DeadlineExceeded) {
    message = `the gateway at ${address} did not answer in time (${told})`;
  } else if (isBroken(error) || (code === Code.Unavailable && reason === "")) {
    code = Code.Unavailable;
    message =
      `no gateway can be reached at ${address}: is \`harness serve\` running there, ` +
      `and is TLS on at both ends or at neither? (${told})`;
  } else if (code === Code.Unimplemented || !isAnswer(error)) {
    message = `what answers at ${address} is no gateway, or an older one (${told})`;
  }
  return new (CLASSES.get(code) ?? HarnessError)(message, { code: codeName(code), reason, metadata });
}

/** Says that the same request may succeed in a moment. */
export function isPassing(error: ConnectError): boolean {
  if (error.cause instanceof HarnessError) {
    return false;
  }
  switch (error.code) {
    case Code.Unavailable:
    case Code.Aborted:
    case Code.DeadlineExceeded:
      return true;
    case Code.ResourceExhausted:
      return details(error).reason === ""; // with a reason it is TOO_LARGE
    default:
      return isBroken(error);
  }
}

/** Says that a gateway, or a proxy before it, gave this status; else the connection made it. */
function isAnswer(error: ConnectError): boolean {
  return error.metadata.has("grpc-status");
}

/** Says that the connection failed before there was an answer, or in the middle of a stream. */
function isBroken(error: ConnectError): boolean {
  return !isAnswer(error) && (error.code === Code.Internal || error.code === Code.Canceled || error.code === Code.Aborted);
}

function details(error: ConnectError): { reason: string; metadata: Record<string, string> } {
  const info = error.findDetails(ErrorInfoSchema).find((each) => each.domain === DOMAIN);
  return { reason: info?.reason ?? "", metadata: { ...info?.metadata } };
}

/** NotFound → NOT_FOUND. */
function codeName(code: Code): string {
  return code === Code.Canceled ? "CANCELLED" : Code[code].replace(/(?<=.)(?=[A-Z])/g, "_").toUpperCase();
}
