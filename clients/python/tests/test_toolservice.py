"""Tools of a program for all runs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest

from harnessmesh import Client, Event, Status, ToolFailed, ToolOutput, pb, tool
from harnessmesh.gen.harness.v1 import toolservice_pb2_grpc
from harnessmesh.toolservice import ToolService, show

KEY = "0a"


class Bench:
    """A service with tools that count their calls."""

    def __init__(self, memory: Path | None) -> None:
        self.calls = 0
        self.begun = asyncio.Event()
        self.release = asyncio.Event()

        @tool
        async def count(call_id: str) -> str:
            """Counts."""
            self.calls += 1
            show(f"counting {call_id}")
            self.begun.set()
            await self.release.wait()
            return str(self.calls)

        @tool
        def fail() -> None:
            """Fails."""
            raise ToolFailed("no paper")

        @tool(reads=True, parallel_safe=True)
        def picture() -> pb.ToolServiceResult:
            """Returns text and an image."""
            show("drawing")
            return pb.ToolServiceResult(text="drawn", media=[pb.ToolServiceMedia(type="image/png", data=b"x")])

        @tool
        def large() -> str:
            """Returns more than fits a message."""
            return "x" * (16 << 20)

        @tool
        def surrogate() -> str:
            """Returns bytes that are no text, and shows them."""
            show("a\ud800")
            return "\ud800"

        @tool
        def value() -> object:
            """Returns a value that JSON cannot hold."""
            return object()

        self.service = ToolService([count, fail, picture, large, surrogate, value], memory=memory)

    async def __aenter__(self) -> "Bench":
        self.server = grpc.aio.server()
        self.service.add_to(self.server)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        await self.server.start()
        self.channel = grpc.aio.insecure_channel(self.address)
        self.stub: toolservice_pb2_grpc.ToolServiceAsyncStub = toolservice_pb2_grpc.ToolServiceStub(self.channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.service.close()
        await self.channel.close()
        await self.server.stop(grace=None)

    async def execute(self, key: str, name: str) -> tuple[str, pb.ToolServiceResult]:
        output, result = "", pb.ToolServiceResult()
        async for part in self.stub.Execute(pb.ToolServiceExecuteRequest(key=key, tool=name, arguments="{}")):
            output += part.output
            if part.HasField("result"):
                result = part.result
        return output, result


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with Bench(None) as bench:
        yield bench


async def test_a_key_runs_once_and_can_be_joined(bench: Bench) -> None:
    first = asyncio.ensure_future(bench.execute(KEY, "count"))
    await bench.begun.wait()
    second = asyncio.ensure_future(bench.execute(KEY, "count"))
    bench.release.set()
    output, result = await first
    assert (output, result.text) == (f"counting {KEY}", "1")
    assert (await second)[1].text == "1"
    assert (await bench.execute(KEY, "count"))[1].text == "1"
    assert (await bench.execute("0b", "count"))[1].text == "2"


async def test_cancel_returns_when_the_call_has_ended(bench: Bench) -> None:
    call = asyncio.ensure_future(bench.execute(KEY, "count"))
    await bench.begun.wait()
    for key in (KEY, KEY, "0b"):
        await bench.stub.Cancel(pb.ToolServiceCancelRequest(key=key))
    assert (await call)[1].unknown
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await bench.execute("0b", "count")
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert bench.calls == 1


async def test_results_of_every_form(bench: Bench) -> None:
    _, failed = await bench.execute("01", "fail")
    assert (failed.text, failed.is_error) == ("no paper", True)
    output, drawn = await bench.execute("02", "picture")
    assert (output, drawn.text, len(drawn.media)) == ("drawing", "drawn", 1)
    for key, (name, why) in enumerate({"large": "16777200 are allowed", "surrogate": "UTF-8", "value": "JSON"}.items()):
        output, refused = await bench.execute(f"1{key}", name)
        assert refused.is_error and refused.text.startswith("The call has run") and why in refused.text
        assert output == ("a?" if name == "surrogate" else "")
    with pytest.raises(grpc.aio.AioRpcError) as unknown:
        await bench.execute("03", "other")
    assert unknown.value.code() == grpc.StatusCode.NOT_FOUND
    described = await bench.stub.Describe(pb.ToolServiceDescribeRequest())
    hints = {t.name: (t.hints.read_only, t.hints.parallel_safe) for t in described.tools}
    assert hints == {"count": (False, False), "fail": (False, False), "picture": (True, True)} | dict.fromkeys(
        ("large", "surrogate", "value"), (False, False)
    )
    assert not described.remembers_keys


async def test_keys_outlive_the_process(tmp_path: Path) -> None:
    async with Bench(tmp_path) as first:
        first.release.set()
        assert (await first.execute(KEY, "count"))[1].text == "1"
    (tmp_path / "0b.begun").touch()  # as if it had died in the call
    async with Bench(tmp_path) as second:
        second.release.set()
        assert (await second.stub.Describe(pb.ToolServiceDescribeRequest())).remembers_keys
        assert (await second.execute(KEY, "count"))[1].text == "1"
        assert (await second.execute("0b", "count"))[1].unknown
        assert (await second.execute("../x", "count"))[1].is_error
        assert second.calls == 0


async def test_a_run_calls_the_service(
    bench: Bench, client: Client, script: Callable[[str], str], workspace: Path
) -> None:
    bench.release.set()
    model = script(
        "turns:\n  - {calls: [{name: bench__count, arguments: {}}]}\n"
        "  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n"
    )
    run = await client.start(
        "Count.",
        model=model,
        workspace=str(workspace),
        agent={"mcp": [{"name": "bench", "grpc": bench.address}]},
        config=pb.LoopConfig(tools=pb.ToolConfig(yolo=True)),
    )
    shown = ""
    async for update in run.events():
        if isinstance(update, ToolOutput):
            shown += update.text
        if isinstance(update, Event) and isinstance(update.data, pb.ToolResult) and update.data.tool == "bench__count":
            assert "1" in update.data.result.inline
    assert (await run.result()).status is Status.DONE
    assert bench.calls == 1
    assert "counting" in shown or shown == ""  # a short call may end before it is watched
