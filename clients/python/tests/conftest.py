"""A real server for the tests: `harness serve`, all roles in one process, embedded NATS, scripted models."""

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from harnessmesh import Client

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
READY = re.compile(r"ready role=gateway addr=(\S+)")


class Server:
    """A harness process that can be killed and started again on the same data and address."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.binary = binary
        self.data = folder / "data"
        self.log = folder / "log"
        self.address = "127.0.0.1:0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [self.binary, "serve", "--listen", self.address, "--data", str(self.data), "--takeover", "1s"]
        command += ["--sync", "interval", "--drain", "100ms", "--scripts", tempfile.gettempdir()]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HARNESS_", "OTEL_", "OPENAI_"))}
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment
        )
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line.decode())
            found = READY.search(said[-1])
            if found:
                self.address = found[1]
                return
        raise AssertionError("harness serve ended before it was ready:\n" + "".join(said))

    @property
    def key(self) -> str:
        """The key that the gateway requires, for clients that reach it at another address."""
        return (self.data / "gateway.key").read_text().strip()

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._end()

    def _end(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        self._process.stderr.close()
        self._process.wait()
        self._process = None


class Wire:
    """A proxy to a server that keeps running: a port that forwards bytes until it is cut.

    breaks_after: bytes towards the client after which its connection breaks once; None for never.
    """

    def __init__(self, server: Server) -> None:
        self.address = "127.0.0.1:0"
        self.breaks_after: int | None = None
        self._server = server
        self._open: set[asyncio.StreamWriter] = set()
        self._listening: asyncio.Server | None = None

    async def join(self) -> None:
        host, _, port = self.address.rpartition(":")
        self._listening = await asyncio.start_server(self._carry, host, int(port))
        self.address = f"{host}:{self._listening.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for end in self._open:
            end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        host, _, port = self._server.address.rpartition(":")
        answers, server = await asyncio.open_connection(host, int(port))
        ends = {client, server}
        self._open |= ends
        try:
            await asyncio.gather(self._pump(reader, server), self._pump(answers, client, towards_client=True))
        finally:
            self._open -= ends

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, towards_client: bool = False
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(1 << 12):
                sink.write(data)
                await sink.drain()
                if towards_client and self.breaks_after is not None:
                    self.breaks_after -= len(data)
                    if self.breaks_after < 0:
                        self.breaks_after = None
                        break
        sink.transport.abort()


@pytest.fixture(scope="session")
def binary() -> str:
    """The binary in $HARNESS; test.sh builds it."""
    path = os.environ.get("HARNESS") or shutil.which("harness")
    assert path, "say in HARNESS where the harness binary is, or run clients/python/test.sh, which builds it"
    return path


@pytest.fixture(scope="session")
def server(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that most tests share."""
    server = Server(binary, tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def mortal(binary: str, tmp_path: Path) -> Iterator[Server]:
    """A server of a test's own, to be killed."""
    server = Server(binary, tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def wire(server: Server) -> AsyncIterator[Wire]:
    """A way to the shared server, to be cut."""
    wire = Wire(server)
    await wire.join()
    yield wire
    wire.cut()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with Client.connect(server.address) as client:
        yield client


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Writes a scripted model and gives its name."""

    def write(turns: str) -> str:
        file = tmp_path / f"script-{len(list(tmp_path.iterdir()))}.yaml"
        file.write_text(turns)
        return f"script:{file}"

    return write


@pytest.fixture
def example(tmp_path: Path) -> Callable[[str], str]:
    """Copies the scripted model of an example to where the server reads scripts, and gives its name."""

    def copy(name: str) -> str:
        return f"script:{shutil.copy(EXAMPLES / name, tmp_path / name)}"

    return copy


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder
