"""The connection to a gateway: address, TLS, token, trace context, and calls with retries."""

import asyncio
import ipaddress
import os
import random
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeVar

import grpc
from google.protobuf.message import Message

from harnessmesh import keys
from harnessmesh.errors import InvalidError, from_rpc, is_foreign, is_passing
from harnessmesh.gen.harness.v1.gateway_pb2_grpc import GatewayServiceStub

if TYPE_CHECKING:
    from harnessmesh.gen.harness.v1.gateway_pb2_grpc import GatewayServiceAsyncStub

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Result = TypeVar("Result")

#: Header pairs of a call.
Metadata = tuple[tuple[str, str], ...]

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
#: Limit of one attempt of a call, in seconds. Streams have none: pings detect a gateway that is gone.
_ATTEMPT = 30.0
# The gateway accepts a ping every 10 s. A machine that vanishes is detected within half a minute,
# and one that comes back is found within two seconds.
_OPTIONS: list[tuple[str, str | int]] = [
    ("grpc.primary_user_agent", "harnessmesh-python"),
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]


class Connection:
    """A channel to one gateway, with the headers and the retries of its calls.

    patience: seconds for which the gateway may be out of reach before a call fails.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None,
        tls: bool | str | os.PathLike[str],
        traceparent: str | Callable[[], str | None] | None,
        patience: float,
    ) -> None:
        self.address = check_address(address)
        self.patience = patience
        self.answered = False  # the gateway has answered a call
        self._finds_key = token is None and is_local(address)
        self._traceparent = traceparent
        self._headers: Metadata = ()
        if token is not None:
            if not token or not token.isascii() or not token.isprintable() or " " in token:
                raise InvalidError("token: must be one word of visible ASCII characters, without `Bearer` in front")
            if not tls and not is_local(address):
                raise InvalidError(f"token: it would travel to {address} in clear text; pass tls=True or tls=CA_FILE")
            self._headers = _bearer(token)
        elif self._finds_key:
            found = keys.noted(address)
            if found is not None:
                self._headers, self._finds_key = _bearer(found.key), False
                address = address if tls else found.address
            elif address.lower().startswith("localhost:"):
                self._finds_key = False  # the name may lead to the process of another user
        self.metadata()  # a wrong trace context fails here, not at the first call
        options = list(_OPTIONS)
        if is_local(address):  # else grpc would send token and all through the proxy that $http_proxy names
            options.append(("grpc.enable_http_proxy", 0))
        if tls is not False:
            self.channel = grpc.aio.secure_channel(address, _credentials(tls), options=options)
        else:
            self.channel = grpc.aio.insecure_channel(address, options=options)
        self.stub: GatewayServiceAsyncStub = GatewayServiceStub(self.channel)

    def metadata(self, traceparent: str | None = None) -> Metadata:
        """Returns the headers of a call. A trace context given here replaces the one of the client."""
        if self._finds_key:  # the gateway may have been started meanwhile
            found = keys.noted(self.address)
            if found is not None:
                self._headers, self._finds_key = _bearer(found.key), False
        if traceparent is None:
            traceparent = self._traceparent() if callable(self._traceparent) else self._traceparent
        if not traceparent:
            return self._headers
        if not _TRACEPARENT.fullmatch(traceparent):
            raise InvalidError(
                f"traceparent: {traceparent!r} is not VERSION-TRACE-SPAN-FLAGS in hexadecimal, the form of W3C"
            )
        return (*self._headers, ("traceparent", traceparent))

    async def call(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[Request, Response]",
        request: Request,
        *,
        within: float | None = None,
        traceparent: str | None = None,
    ) -> Response:
        """Makes a call and retries it while the gateway is out of reach. Every request that changes
        something carries an id, so that it has one effect.

        within: seconds that replace the patience and also limit each attempt.
        """
        timeout = _ATTEMPT if within is None else min(_ATTEMPT, within)

        async def attempt() -> Response:
            return await method(request, metadata=self.metadata(traceparent), timeout=timeout)

        return await self._retry(attempt, self.patience if within is None else within)

    async def collect(
        self, method: "grpc.aio.UnaryStreamMultiCallable[Request, Response]", request: Request
    ) -> list[Response]:
        """Does the same for a call that returns a stream; returns all of it, from one attempt."""

        async def attempt() -> list[Response]:
            return [response async for response in method(request, metadata=self.metadata())]

        return await self._retry(attempt, self.patience)

    async def _retry(self, attempt: Callable[[], Awaitable[Result]], patience: float) -> Result:
        retry = Retry(patience)
        while True:
            try:
                result = await attempt()
            except grpc.aio.AioRpcError as error:
                if not self.may_pass(error) or not await retry.wait():
                    raise from_rpc(error, self.address) from None
            else:
                self.answered = True
                return result

    def may_pass(self, error: grpc.aio.AioRpcError) -> bool:
        """Reports whether a retry may succeed. A proxy that has lost its gateway may know no such path; where
        no gateway has answered yet, that is another server."""
        return is_passing(error) or (self.answered and is_foreign(error))

    async def close(self) -> None:
        await self.channel.close()


class Retry:
    """Paces the attempts of a call: with growing pauses, for `patience` seconds since the last success."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._end: float | None = None
        self._pause = 0.1

    def reset(self) -> None:
        """Records a success."""
        self._end, self._pause = None, 0.1

    async def wait(self) -> bool:
        """Waits until the next attempt is due. Returns False, without waiting, when patience has run out."""
        now = time.monotonic()
        if self._end is None:
            self._end = now + self.patience
        if now >= self._end:
            return False
        pause = self._pause * random.uniform(0.8, 1.2)
        self._pause = min(self._pause * 2, 2.0)
        await asyncio.sleep(min(pause, self._end - now))
        return True


def _bearer(token: str) -> Metadata:
    return (("authorization", f"Bearer {token}"),)


def check_address(address: str) -> str:
    """Returns the address if it is HOST:PORT or unix:PATH; raises InvalidError otherwise."""
    if re.fullmatch(r"unix:.+", address):
        return address
    if (
        re.fullmatch(r"(\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+):\d{1,5}", address)
        and 0 < int(address.rpartition(":")[2]) < 65536
    ):
        return address
    raise InvalidError(f"address: {address!r} is neither HOST:PORT, such as 127.0.0.1:7447, nor unix:PATH")


def is_local(address: str) -> bool:
    """Reports whether requests to an address stay on this machine."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _credentials(tls: Literal[True] | str | os.PathLike[str]) -> grpc.ChannelCredentials:
    if tls is True:
        return grpc.ssl_channel_credentials()
    try:
        with open(os.fspath(tls), "rb") as file:
            roots = file.read()
    except OSError as error:
        raise InvalidError(f"tls: {os.fspath(tls)} cannot be read: {error.strerror}") from None
    if b"-----BEGIN CERTIFICATE-----" not in roots:
        raise InvalidError(f"tls: {os.fspath(tls)} contains no certificate in PEM form")
    return grpc.ssl_channel_credentials(root_certificates=roots)
