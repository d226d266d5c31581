"""TLS, tokens and trace context, through a front that passes calls on to a real gateway.

The front ends TLS, demands a token and remembers the headers, as a proxy before a gateway does.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from conftest import Server

from harnessmesh import Client, ForbiddenError, InvalidError, UnauthenticatedError, UnavailableError, keys
from harnessmesh.connection import Connection

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Front(grpc.GenericRpcHandler):
    """Passes calls on to a gateway, for those with the token."""

    def __init__(self, gateway: str, key: str) -> None:
        self.address = ""
        self.headers: list[dict[str, Any]] = []
        self._channel = grpc.aio.insecure_channel(gateway)
        self._key = key

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        headers = dict(details.invocation_metadata)
        self.headers.append(headers)

        async def call(request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
            match headers.get("authorization"):
                case "Bearer sesame":
                    passed_on: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
                    passed_on = self._channel.unary_unary(details.method)
                    return await passed_on(request, metadata=(("authorization", f"Bearer {self._key}"),))
                case "Bearer other":
                    await context.abort(
                        grpc.StatusCode.PERMISSION_DENIED, "the token may not use the namespace default"
                    )
                case _:
                    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token is needed")

        return grpc.unary_unary_rpc_method_handler(call)

    async def close(self) -> None:
        await self._channel.close()


@pytest.fixture
def authority(tmp_path: Path) -> tuple[trustme.CA, Path]:
    authority, file = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(file)
    return authority, file


@pytest.fixture
async def front(server: Server, authority: tuple[trustme.CA, Path]) -> AsyncIterator[Front]:
    certificate = authority[0].issue_cert("localhost", "127.0.0.1")
    chain = b"".join(each.bytes() for each in certificate.cert_chain_pems)
    handler = Front(server.address, server.key)
    listening = grpc.aio.server()
    listening.add_generic_rpc_handlers((handler,))
    credentials = grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)])
    handler.address = f"localhost:{listening.add_secure_port('127.0.0.1:0', credentials)}"
    await listening.start()
    yield handler
    await listening.stop(None)
    await handler.close()


async def test_calls_go_over_tls_with_token_and_trace_context(front: Front, authority: tuple[trustme.CA, Path]) -> None:
    async with Client.connect(front.address, tls=authority[1], token="sesame", traceparent=lambda: TRACE) as client:
        assert [run async for run in client.runs(namespace="nobody-is-here")] == []
    assert len(front.headers) == 2
    for headers in front.headers:
        assert headers["authorization"] == "Bearer sesame"
        assert headers["traceparent"] == TRACE
        assert headers["user-agent"].startswith("harnessmesh-python")


async def test_a_wrong_token_is_one_clear_exception(front: Front, authority: tuple[trustme.CA, Path]) -> None:
    with pytest.raises(UnauthenticatedError, match="a token is needed"):
        await Client.connect(front.address, tls=authority[1])
    with pytest.raises(UnauthenticatedError):
        await Client.connect(front.address, tls=authority[1], token="simsalabim")
    with pytest.raises(ForbiddenError, match="may not use the namespace"):
        await Client.connect(front.address, tls=authority[1], token="other")


async def test_a_certificate_of_somebody_else_is_one_clear_exception(front: Front, tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    with pytest.raises(UnavailableError, match="is TLS on at both ends or at neither"):
        await Client.connect(front.address, tls=tmp_path / "other.pem", token="sesame", connect_timeout=0.3)


async def test_tls_towards_a_server_without_it_is_one_clear_exception(
    server: Server, authority: tuple[trustme.CA, Path]
) -> None:
    with pytest.raises(UnavailableError, match="is TLS on at both ends or at neither"):
        await Client.connect(server.address, tls=authority[1], connect_timeout=0.3)


async def test_arguments_that_cannot_be_meant_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="would travel to 192.0.2.1:7447 in clear text"):
        await Client.connect("192.0.2.1:7447", token="sesame")
    for token in ("", "Bearer sesame", "sesame\n"):
        with pytest.raises(InvalidError, match="token: must be one word"):
            await Client.connect(token=token)
    with pytest.raises(InvalidError, match="tls: .*missing.pem cannot be read: No such file"):
        await Client.connect(tls=tmp_path / "missing.pem")
    (tmp_path / "empty.pem").write_text("no certificate")
    with pytest.raises(InvalidError, match="contains no certificate in PEM form"):
        await Client.connect(tls=tmp_path / "empty.pem")
    with pytest.raises(InvalidError, match="traceparent: 'trace' is not VERSION-TRACE-SPAN-FLAGS"):
        await Client.connect(traceparent="trace")


async def test_what_stays_on_this_machine_goes_through_no_proxy(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        writer.close()

    for name in ("grpc_proxy", "https_proxy", "no_grpc_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with await asyncio.start_server(proxy, "127.0.0.1", 0) as listening:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        async with Client.connect(server.address, token=server.key, connect_timeout=1) as client:
            assert [run async for run in client.runs(namespace="nobody-is-here")] == []
        assert asked == []
        with pytest.raises(UnavailableError):
            await Client.connect("mesh.invalid:7447", connect_timeout=0.3)
        assert asked[0].startswith(b"CONNECT mesh.invalid:7447 ")


def note_of(address: str) -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "harness" / "keys" / address


async def test_the_key_of_a_gateway_on_this_machine_is_found_by_its_address(server: Server, tmp_path: Path) -> None:
    port = server.address.rpartition(":")[2]
    for address in (server.address, f"localhost:{port}"):
        async with Client.connect(address) as client:
            assert [run async for run in client.runs(namespace="nobody-is-here")] == []
    with pytest.raises(UnauthenticatedError, match="gateway.key"):
        await Client.connect(server.address, token="simsalabim")


async def test_without_a_note_the_gateway_names_its_key_file(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(UnauthenticatedError, match="gateway.key"):
        await Client.connect(server.address)
    async with Client.connect(server.address, token=server.key) as client:
        assert [run async for run in client.runs(namespace="nobody-is-here")] == []


def test_a_note_counts_only_while_its_gateway_exists_and_is_private(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = note_of(server.address).read_text()
    assert keys.noted(server.address) == keys.Noted(server.address, server.key)
    for other in ("127.0.0.1:1", "192.0.2.1:7447", "example.org:7447", "unix:/nowhere"):
        assert keys.noted(other) is None
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = note_of(server.address).parent
    folder.mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    note = note_of(server.address)
    ended = subprocess.Popen(["true"])
    ended.wait()
    note.write_text(f"{server.data / 'gateway.key'}\n{ended.pid}\n")
    note.chmod(0o600)
    assert keys.noted(server.address) is None
    note.write_text(text)
    assert keys.noted(server.address) is not None
    note.chmod(0o644)
    with pytest.raises(InvalidError, match="chmod 600"):
        keys.noted(server.address)
    note.chmod(0o600)
    folder.chmod(0o755)
    with pytest.raises(InvalidError, match="chmod 700"):
        keys.noted(server.address)
    folder.chmod(0o700)
    for damaged in ("", "key\n1\n", text + "\n", text.replace("gateway.key", "key")):
        note.write_text(damaged)
        with pytest.raises(InvalidError, match="cannot be used"):
            keys.noted(server.address)


async def test_a_404_of_something_between_is_retried_once_the_gateway_has_answered() -> None:
    connection = Connection("127.0.0.1:1", token="t", tls=False, traceparent=None, patience=5)
    foreign = grpc.aio.AioRpcError(
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.aio.Metadata(),
        grpc.aio.Metadata(),
        details="Received http2 header with status: 404",
    )
    unknown = grpc.aio.AioRpcError(
        grpc.StatusCode.UNIMPLEMENTED, grpc.aio.Metadata(), grpc.aio.Metadata(), details="unknown method"
    )
    try:
        assert not connection.may_pass(foreign)
        connection.answered = True
        assert connection.may_pass(foreign)
        assert not connection.may_pass(unknown)
    finally:
        await connection.close()
