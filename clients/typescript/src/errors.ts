/**
 * What can go wrong, as errors.
 *
 * Every error of the package is a {@link HarnessError}. Its message is one line for people; `reason`
 * and `field` are for programs.
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
  /** Further values of the gateway; its keys are documented with ErrorReason. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message);
    this.name = new.target.name;
    this.code = details.code ?? "";
    this.reason = details.reason ?? "";
    this.metadata = details.metadata ?? {};
  }

  /** The field that is wrong, such as "spec.agent.model"; empty when the error is about no field. */
  get field(): string {
    return this.metadata["field"] ?? "";
  }
}

/** The request is invalid; `field` names the part. Sending it again does not help. */
export class InvalidError extends HarnessError {}

/** There is no such run, version or blob. */
export class NotFoundError extends HarnessError {}

/** The run id is in use (RUN_EXISTS), or the call already has its answer (CALL_ANSWERED). */
export class ExistsError extends HarnessError {}

/** The state of the run does not allow it, such as CALL_NOT_PENDING, RUN_ENDED or RUN_ACTIVE. */
export class PreconditionError extends HarnessError {}

/** An input exceeds its limit; metadata: limit, size. */
export class TooLargeError extends HarnessError {}

/** The token is missing or unknown. */
export class UnauthenticatedError extends HarnessError {}

/** The token does not permit this, such as access to that namespace. */
export class ForbiddenError extends HarnessError {}

/** The gateway, or the run log that it needs, was out of reach for as long as the client retried. */
export class UnavailableError extends HarnessError {}

/** Returns the error for an argument that is refused before anything is sent. */
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

/** Returns the error for a failed call to the gateway at an address. */
export function fromRpc(error: ConnectError, address: string): HarnessError {
  if (error.cause instanceof HarnessError) {
    return error.cause; // an argument that an interceptor refused
  }
  const { reason, metadata } = details(error);
  const text = error.rawMessage.replace(/\s+/g, " ").trim() || codeName(error.code);
  let code = error.code;
  let message = text;
  if (code === Code.DeadlineExceeded) {
    message = `the gateway at ${address} did not answer in time (${text})`;
  } else if (isBroken(error) || (code === Code.Unavailable && reason === "")) {
    code = Code.Unavailable;
    message =
      `no gateway can be reached at ${address}: is \`harness serve\` running there, ` +
      `and is TLS on at both ends or at neither? (${text})`;
  } else if (code === Code.Unimplemented || !isAnswer(error)) {
    message = `the server at ${address} is not a gateway, or an older one (${text})`;
  }
  return new (CLASSES.get(code) ?? HarnessError)(message, { code: codeName(code), reason, metadata });
}

/** Reports whether a retry of the same request may succeed. */
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

/** Reports whether no gateway, but a proxy or another server has answered that it knows no such path. */
export function isForeign(error: ConnectError): boolean {
  return !isAnswer(error) && error.code === Code.Unimplemented;
}

/** Reports whether a gateway or a proxy returned this status; otherwise the connection made it. */
function isAnswer(error: ConnectError): boolean {
  return error.metadata.has("grpc-status");
}

/** Reports whether the connection failed before an answer or in the middle of a stream. */
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
