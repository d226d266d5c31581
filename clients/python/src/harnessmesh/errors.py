"""What can go wrong, as exceptions.

Every exception of the package is a `HarnessError`. Its text is one line that says what is wrong;
`reason` and `field` say it to programs.
"""

from collections.abc import Mapping

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

#: The domain of the details that a gateway adds to its errors.
DOMAIN = "harnessmesh"
_DETAILS = "grpc-status-details-bin"


class HarnessError(Exception):
    """A request failed.

    code: the gRPC code, such as "NOT_FOUND"; empty when nothing was sent.
    reason: an ErrorReason without its prefix, such as "RUN_NOT_FOUND"; empty when there is none.
    field: the field that is wrong, such as "spec.agent.model"; empty when no field is meant.
    metadata: what the gateway says besides; its keys are documented with ErrorReason.
    """

    def __init__(self, message: str, *, code: str = "", reason: str = "", metadata: Mapping[str, str] | None = None):
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.metadata: dict[str, str] = dict(metadata or {})

    @property
    def field(self) -> str:
        return self.metadata.get("field", "")


class InvalidError(HarnessError):
    """Something in the request is wrong; `field` says what. Sending it again does not help."""


class NotFoundError(HarnessError):
    """There is no such run, version or blob."""


class ExistsError(HarnessError):
    """Another was first: the run id is in use (RUN_EXISTS), or the call has its answer (CALL_ANSWERED)."""


class PreconditionError(HarnessError):
    """The run does not stand so that it can be done, such as CALL_NOT_PENDING, RUN_ENDED or RUN_ACTIVE."""


class TooLargeError(HarnessError):
    """An input is over its bound; metadata: limit, size."""


class UnauthenticatedError(HarnessError):
    """The gateway wants a token, or does not know the one that it was given."""


class ForbiddenError(HarnessError):
    """The token may not do this, such as touch that namespace."""


class UnavailableError(HarnessError):
    """The gateway, or what is behind it, was out of reach for all of the time that the client tries."""


_CLASSES: dict[grpc.StatusCode, type[HarnessError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: ExistsError,
    grpc.StatusCode.FAILED_PRECONDITION: PreconditionError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: TooLargeError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: ForbiddenError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: UnavailableError,
    grpc.StatusCode.ABORTED: UnavailableError,
}


def from_rpc(error: grpc.aio.AioRpcError, address: str) -> HarnessError:
    """The exception for a failed call to the gateway at an address."""
    reason, metadata = _details(error)
    code = error.code()
    message = " ".join((error.details() or code.name).split())
    if code is grpc.StatusCode.UNAVAILABLE and not reason:
        message = (
            f"no gateway can be reached at {address}: is `harness serve` running there, "
            f"and is TLS on at both ends or at neither? ({message})"
        )
    elif code is grpc.StatusCode.DEADLINE_EXCEEDED:
        message = f"the gateway at {address} did not answer in time ({message})"
    elif code is grpc.StatusCode.UNIMPLEMENTED:
        message = f"what answers at {address} is no gateway, or an older one ({message})"
    return _CLASSES.get(code, HarnessError)(message, code=code.name, reason=reason, metadata=metadata)


def is_passing(error: grpc.aio.AioRpcError) -> bool:
    """Says that the same request may succeed in a moment."""
    code = error.code()
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return not _details(error)[0]  # with a reason it is TOO_LARGE
    return code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED, grpc.StatusCode.DEADLINE_EXCEEDED)


def _details(error: grpc.aio.AioRpcError) -> tuple[str, dict[str, str]]:
    for key, value in error.trailing_metadata() or ():
        if key != _DETAILS or not isinstance(value, bytes):
            continue
        status, info = status_pb2.Status(), error_details_pb2.ErrorInfo()
        try:
            status.ParseFromString(value)
            for detail in status.details:
                if detail.Is(info.DESCRIPTOR) and detail.Unpack(info) and info.domain == DOMAIN:
                    return info.reason, dict(info.metadata)
        except DecodeError:
            return "", {}  # a proxy's own; code and text are enough
    return "", {}
