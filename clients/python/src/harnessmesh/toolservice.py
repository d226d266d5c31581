"""Tools of a program for all runs: the server of harness.v1.ToolService, which a tool host calls.

    @tool(reads=True)
    async def look_up_order(order: int) -> dict[str, object]:
        \"""Returns where an order is.\"""
        return orders[order]

    asyncio.run(serve([look_up_order], "127.0.0.1:9000"))

A call is identified by its key, which a parameter `call_id` receives. A key runs at most once at the
same time: a second request for it joins the call that runs, or returns its result while the service
keeps it. With a folder as memory, keys and results outlive the process, and a key that ran is never
run again.
"""

import asyncio
import contextvars
import inspect
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import grpc

from harnessmesh.gen import pb
from harnessmesh.gen.harness.v1 import toolservice_pb2_grpc
from harnessmesh.tools import Tool, ToolFailed, Tools, by_name

_KEPT = 1000  # results that are kept in memory
_PAGE = 200  # tools of a page
_SECONDS = 120.0  # time of a call whose request has none
_LARGEST = (16 << 20) - 16  # bytes of a result: a message of 16 MiB has it and its tag
_KEY = re.compile(r"[0-9a-f]{1,128}")

_shows: contextvars.ContextVar[Callable[[str], None]] = contextvars.ContextVar("shows")


def show(text: str) -> None:
    """Shows a text, such as progress, to people who watch the run of the present call."""
    shows = _shows.get(None)
    if shows is not None:
        shows(_valid(text))


class Memory:
    """Keeps keys and results in a folder, for one process at a time.

    You may delete its files a day after the call has ended.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def begin(self, key: str) -> tuple[pb.ToolServiceResult | None, bool]:
        """Stores that a call begins. Returns the result of an earlier one, and whether one began without an end."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"key {key!r}: expected hexadecimal digits")
        try:
            return pb.ToolServiceResult.FromString((self._folder / f"{key}.result").read_bytes()), False
        except FileNotFoundError:
            pass
        try:
            self._write(f"{key}.begun", b"", os.O_EXCL)
        except FileExistsError:
            return None, True
        return None, False

    def end(self, key: str, result: pb.ToolServiceResult) -> None:
        """Stores the result of a call."""
        self._write(f"{key}.new", result.SerializeToString(), os.O_TRUNC)
        (self._folder / f"{key}.new").rename(self._folder / f"{key}.result")
        self._sync(self._folder, os.O_RDONLY)

    def _write(self, name: str, data: bytes, flag: int) -> None:
        file = os.open(self._folder / name, os.O_CREAT | os.O_WRONLY | flag, 0o600)
        with open(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        self._sync(self._folder, os.O_RDONLY)

    @staticmethod
    def _sync(path: Path, flags: int) -> None:
        file = os.open(path, flags)
        try:
            os.fsync(file)
        finally:
            os.close(file)


class _Call:
    """A call, and the streams that wait for its end."""

    def __init__(self) -> None:
        self.task: asyncio.Task[pb.ToolServiceResult] | None = None  # None: cancelled before it ran
        self.stoppable = False
        self.streams: set[asyncio.Queue[str]] = set()


class ToolService(toolservice_pb2_grpc.ToolServiceServicer):
    """Serves tools. Register it with `add_to`, or use `serve`."""

    def __init__(self, tools: Tools, *, memory: str | os.PathLike[str] | None = None) -> None:
        """tools: as in `Client.start`. memory: a folder in which keys and results outlive the process."""
        self._tools: Mapping[str, Tool] = by_name(tools)
        self._memory = Memory(memory) if memory is not None else None
        self._calls: dict[str, _Call] = {}
        self._ended: list[str] = []

    def add_to(self, server: grpc.aio.Server) -> None:
        """Registers the service with a server of grpc.aio."""
        toolservice_pb2_grpc.add_ToolServiceServicer_to_server(self, server)

    async def close(self) -> None:
        """Cancels the calls that run. Returns when they have ended."""
        running = [call for call in self._calls.values() if call.task is not None and not call.task.done()]
        for call in running:
            if call.stoppable and call.task is not None:
                call.task.cancel()
        await asyncio.gather(*(call.task for call in running if call.task is not None), return_exceptions=True)

    async def Describe(self, request: pb.ToolServiceDescribeRequest, context: Any) -> pb.ToolServiceDescribeResponse:
        """Returns a page of the tools."""
        start = int(request.page_token) if request.page_token.isdigit() else 0
        tools = list(self._tools.values())
        return pb.ToolServiceDescribeResponse(
            tools=[_described(tool) for tool in tools[start : start + _PAGE]],
            remembers_keys=self._memory is not None,
            next_page_token=str(start + _PAGE) if start + _PAGE < len(tools) else "",
        )

    async def Execute(
        self, request: pb.ToolServiceExecuteRequest, context: Any
    ) -> AsyncIterator[pb.ToolServiceExecuteResponse]:
        """Runs a call, or joins it."""
        call = self._calls.get(request.key)
        if call is None:
            tool = self._tools.get(request.tool)
            if tool is None:
                await context.abort(grpc.StatusCode.NOT_FOUND, f"there is no tool {request.tool!r}")
                return
            call = self._start(tool, request)
        if call.task is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the call was cancelled before it ran")
            return
        output: asyncio.Queue[str] = asyncio.Queue(64)
        call.streams.add(output)
        try:
            while not call.task.done():
                text = asyncio.ensure_future(output.get())
                await asyncio.wait({call.task, text}, return_when=asyncio.FIRST_COMPLETED)
                if text.done():
                    yield pb.ToolServiceExecuteResponse(output=text.result())
                text.cancel()
            while not output.empty():
                yield pb.ToolServiceExecuteResponse(output=output.get_nowait())
            yield pb.ToolServiceExecuteResponse(result=call.task.result())
        finally:
            call.streams.discard(output)

    async def Cancel(self, request: pb.ToolServiceCancelRequest, context: Any) -> pb.ToolServiceCancelResponse:
        """Ends a call. A function that runs in a thread cannot be stopped: its end is awaited."""
        call = self._calls.get(request.key)
        if call is None:
            self._calls[request.key] = _Call()
            self._keep(request.key)
        elif call.task is not None and not call.task.done():
            if call.stoppable:
                call.task.cancel()
            await asyncio.wait({call.task}, timeout=context.time_remaining())
            if not call.task.done():
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the call still runs")
        return pb.ToolServiceCancelResponse()

    def _start(self, tool: Tool, request: pb.ToolServiceExecuteRequest) -> _Call:
        call = _Call()
        call.stoppable = inspect.iscoroutinefunction(tool.function)
        loop = asyncio.get_running_loop()

        def put(text: str) -> None:
            for stream in call.streams:
                if not stream.full():  # a slow stream misses it
                    stream.put_nowait(text)

        def send(text: str) -> None:
            loop.call_soon_threadsafe(put, text)

        context = contextvars.copy_context()
        context.run(_shows.set, send)
        seconds = request.timeout.ToTimedelta().total_seconds() or _SECONDS
        call.task = context.run(asyncio.ensure_future, self._run(tool, request, seconds if call.stoppable else None))
        call.task.add_done_callback(lambda _: self._keep(request.key))
        self._calls[request.key] = call
        return call

    def _keep(self, key: str) -> None:
        self._ended.append(key)
        while len(self._ended) > _KEPT:
            self._calls.pop(self._ended.pop(0), None)

    async def _run(
        self, tool: Tool, request: pb.ToolServiceExecuteRequest, seconds: float | None
    ) -> pb.ToolServiceResult:
        try:
            if self._memory is not None:
                try:
                    known, begun = self._memory.begin(request.key)
                except (OSError, ValueError) as error:
                    return pb.ToolServiceResult(text=f"The call did not run: {error}", is_error=True)
                if known is not None:
                    return known
                if begun and not tool.idempotent:
                    return pb.ToolServiceResult(unknown=True)
            result = _sendable(await asyncio.wait_for(_made(tool, request), seconds))
        except (asyncio.CancelledError, asyncio.TimeoutError):
            result = pb.ToolServiceResult(unknown=True)
        if self._memory is not None:
            self._memory.end(request.key, result)
        return result


async def _made(tool: Tool, request: pb.ToolServiceExecuteRequest) -> pb.ToolServiceResult:
    named = json.loads(request.arguments or "{}")
    if tool.takes_call_id:
        named["call_id"] = request.key
    try:
        if inspect.iscoroutinefunction(tool.function):
            value = await tool.function(**named)
        else:
            value = await asyncio.to_thread(tool.function, **named)
    except ToolFailed as error:
        return pb.ToolServiceResult(text=_valid(str(error)), is_error=True)
    except Exception as error:  # noqa: BLE001  the model receives every error
        return pb.ToolServiceResult(text=_valid(f"{type(error).__name__}: {error}"), is_error=True)
    if isinstance(value, pb.ToolServiceResult):
        return value
    try:
        return pb.ToolServiceResult(text=value if isinstance(value, str) else json.dumps(value))
    except UnicodeEncodeError:
        return _unreadable("it is not text in UTF-8")
    except (TypeError, ValueError) as error:
        return _unreadable(f"it is not JSON ({_valid(str(error))})")


def _valid(text: str) -> str:
    return text.encode(errors="replace").decode()


def _unreadable(why: str) -> pb.ToolServiceResult:
    return pb.ToolServiceResult(text=f"The call has run, but its result cannot be read: {why}.", is_error=True)


def _sendable(result: pb.ToolServiceResult) -> pb.ToolServiceResult:
    size = result.ByteSize()
    if size > _LARGEST:
        return _unreadable(f"it has {size} bytes; at most {_LARGEST} are allowed. Ask for less at a time")
    return result


def _described(tool: Tool) -> pb.ToolServiceTool:
    hints = pb.ToolServiceHints(
        read_only=tool.reads and not tool.writes,
        idempotent=tool.idempotent,
        parallel_safe=tool.parallel_safe,
        explores=tool.explores,
    )
    if tool.destructive is not None:
        hints.destructive = tool.destructive
    return pb.ToolServiceTool(
        name=tool.name,
        description=tool.description,
        parameters_schema=json.dumps(tool.parameters),
        hints=hints,
    )


async def serve(
    tools: Tools,
    address: str = "127.0.0.1:9000",
    *,
    memory: str | os.PathLike[str] | None = None,
    credentials: grpc.ServerCredentials | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serves tools until the program receives SIGINT or SIGTERM.

    address: HOST:PORT; port 0 is any free one. credentials: those of TLS, which an address that is not
    on loopback needs. ready: called with the address once it is served.
    """
    service = ToolService(tools, memory=memory)
    server = grpc.aio.server()
    service.add_to(server)
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    await server.start()
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    if ready is not None:
        ready(f"{address.rpartition(':')[0]}:{port}")
    await stop.wait()
    await service.close()
    await server.stop(grace=1)
