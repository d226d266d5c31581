"""What can go wrong, as exceptions.

Every exception of the package is a `HarnessError`. Its text is one line for people; `reason` and
`field` are for programs.
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
    field: the field that is wrong, such as "spec.agent.model"; empty when the error is about no field.
    metadata: further values of the gateway; its keys are documented with ErrorReason.
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
    """The request is invalid; `field` names the part. Sending it again does not help."""


class NotFoundError(HarnessError):
    """There is no such run, version or blob."""


class ExistsError(HarnessError):
    """The run id is in use (RUN_EXISTS), or the call already has its answer (CALL_ANSWERED)."""


class PreconditionError(HarnessError):
    """The state of the run does not allow it, such as CALL_NOT_PENDING, RUN_ENDED or RUN_ACTIVE."""


class TooLargeError(HarnessError):
    """An input exceeds its limit; metadata: limit, size."""


class UnauthenticatedError(HarnessError):
    """The token is missing or unknown."""


class ForbiddenError(HarnessError):
    """The token does not permit this, such as access to that namespace."""


class UnavailableError(HarnessError):
    """The gateway, or the run log that it needs, was out of reach for as long as the client retried."""


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
    """Returns the exception for a failed call to the gateway at an address."""
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
        message = f"the server at {address} is not a gateway, or an older one ({message})"
    return _CLASSES.get(code, HarnessError)(message, code=code.name, reason=reason, metadata=metadata)


def is_passing(error: grpc.aio.AioRpcError) -> bool:
    """Reports whether a retry of the same request may succeed."""
    code = error.code()
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return not _details(error)[0]  # with a reason it is TOO_LARGE
    return code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED, grpc.StatusCode.DEADLINE_EXCEEDED)


def is_foreign(error: grpc.aio.AioRpcError) -> bool:
    """Reports whether no gateway, but a proxy or another server has answered that it knows no such path."""
    return error.code() is grpc.StatusCode.UNIMPLEMENTED and (error.details() or "").endswith("status: 404")


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
            return "", {}  # details of a proxy; code and text are enough
    return "", {}
