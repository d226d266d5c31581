"""What a client sees when servers and clients die."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Server, Wire

from harnessmesh import Client, Delta, Event, Result, Run, UnavailableError, Update, pb, tool

Script = Callable[[str], str]

TURNS = 8
LONG = "turns:\n" + "".join(
    f"  - {{text: Turn {n} goes by slowly., delay: 150ms, calls: [{{name: list_directory, arguments: {{path: '.'}}}}]}}\n"
    for n in range(1, TURNS)
)
DONE = "  - {calls: [{name: work_complete, arguments: {summary: finished}}]}\n"


async def test_an_iteration_goes_on_over_a_server_that_is_killed_without_loss_or_repeat(
    mortal: Server, script: Script, workspace: Path
) -> None:
    async with Client.connect(mortal.address) as client:
        config = {"stall": {"enabled": False}, "doom_loop": {"enabled": False}}
        run = await client.start("go on", model=script(LONG + DONE), workspace=workspace, config=config)
        seen, kills, result = [], 0, None
        text: dict[int, str] = {}
        whole: dict[int, str] = {}
        async for update in run.events():
            match update:
                case Delta(turn_number=turn):
                    text[turn] = update.text if update.rewinds else text.get(turn, "") + update.text
                    if turn == 2 + 3 * kills and kills < 2:  # in the middle of the model's text
                        kills += 1
                        mortal.kill()
                        await asyncio.to_thread(mortal.start)
                case Event(data=pb.ModelResponse() as response):
                    seen.append(update.id)
                    whole[update.turn_number] = await run.text(response.text)
                case Event():
                    seen.append(update.id)
                case Result():
                    result = update
        assert kills == 2
        assert result is not None and result.accepted and result.turn_count == TURNS
        stored = [u.id async for u in run.events() if isinstance(u, Event)]
        assert seen == stored
        assert text == {turn: response for turn, response in whole.items() if response}


async def test_a_call_waits_out_a_server_that_is_away_and_starts_one_run(
    mortal: Server, script: Script, workspace: Path
) -> None:
    async with Client.connect(mortal.address) as client:
        mortal.kill()
        starting = asyncio.create_task(client.start("go on", model=script("turns:\n" + DONE), workspace=workspace))
        await asyncio.to_thread(mortal.start)
        run = await starting
        assert (await run.result()).accepted
        assert [r.run_id async for r in client.runs()] == [run.id]


async def test_patience_ends_with_one_clear_exception(mortal: Server, script: Script, workspace: Path) -> None:
    async with Client.connect(mortal.address, patience=0.3) as client:
        run = await client.start("go on", model=script(LONG + DONE), workspace=workspace)
        mortal.kill()
        with pytest.raises(UnavailableError, match="no gateway can be reached at 127.0.0.1"):
            await run.info()
        with pytest.raises(UnavailableError, match="no gateway can be reached at 127.0.0.1"):
            [update async for update in run.events()]


async def test_calls_of_client_tools_are_made_again_by_the_next_client(
    client: Client, server: Server, script: Script, workspace: Path
) -> None:
    begun: list[str] = []
    hanging, answered = asyncio.Event(), asyncio.Event()

    @tool
    async def look_up(order: int, call_id: str) -> str:
        """Looks up an order."""
        begun.append(call_id)
        if order == 2 and begun.count(call_id) == 1:
            hanging.set()
            await asyncio.Event().wait()
        return f"order {order} is on its way"

    calls = ", ".join(f"{{name: look_up, arguments: {{order: {n}}}}}" for n in (1, 2))
    model = script(f"turns:\n  - {{text: Two orders., calls: [{calls}]}}\n" + DONE)

    run = await client.start("look up", model=model, workspace=workspace, tools=[look_up])
    first: list[str] = []

    async def follow() -> None:
        async for update in run.events():
            if isinstance(update, Event):
                first.append(update.id)
                if isinstance(update.data, pb.ToolResult):
                    answered.set()

    following = asyncio.create_task(follow())
    await asyncio.gather(hanging.wait(), answered.wait())
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following

    async with Client.connect(server.address) as other:
        attached = await other.attach(run.id, tools=[look_up])
        updates = [update async for update in attached.events(first[-1])]
        second = [update.id for update in updates if isinstance(update, Event)]
        last = updates[-1]
        assert isinstance(last, Result) and last.accepted
        stored = [u.id async for u in attached.events() if isinstance(u, Event)]
    assert first + second == stored
    assert begun.count("call_1_1") == 2
    assert begun.count("call_1_0") == 1
    answers = [m for m in await run.conversation() if m.tool_name == "look_up"]
    assert [m.content.inline for m in answers] == ["order 1 is on its way", "order 2 is on its way"]


async def test_history_that_is_read_again_makes_no_call_again(client: Client, script: Script, workspace: Path) -> None:
    calls: list[str] = []

    @tool
    def note(text: str) -> None:
        """Notes something."""
        calls.append(text)

    model = script("turns:\n  - {text: A note., calls: [{name: note, arguments: {text: one}}]}\n" + DONE)
    run = await client.start("note", model=model, workspace=workspace, tools=[note])
    assert (await run.result()).accepted
    attached = await client.attach(run.id, tools=[note])
    assert [u async for u in attached.events() if isinstance(u, Event) and u.name == "tool.call"]
    assert calls == ["one"]


async def test_calls_that_others_answered_while_the_client_was_cut_off_are_not_made(
    client: Client, server: Server, wire: Wire, script: Script, workspace: Path
) -> None:
    calls: list[str] = []
    agent = {"tools": [{"name": "run_command", "policy": "TOOL_DECISION_ASK"}]}
    asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @tool
    def note(text: str) -> None:
        """Notes something."""
        calls.append(text)

    turns = "turns:\n  - {text: A command., calls: [{name: run_command, arguments: {command: 'true'}}]}\n"
    turns += "".join(
        f"  - {{text: Note., calls: [{{name: note, arguments: {{text: {n}}}}}]}}\n" for n in ("one", "two")
    )

    async def follow(run: Run) -> list[Update]:
        async for update in run.events():
            if isinstance(update, Event):
                break
        updates: list[Update] = []
        async for update in run.events(run.position):  # so the iteration that is cut is one that was resumed
            updates.append(update)
            if isinstance(update, Event) and isinstance(update.data, pb.ApprovalRequested):
                asked.set_result(update.data.call_id)
        return updates

    async with Client.connect(wire.address, token=server.key) as cut_off:
        run = await cut_off.start("note", model=script(turns + DONE), workspace=workspace, tools=[note], agent=agent)
        following = asyncio.create_task(follow(run))
        approved = await asked
        wire.cut()
        other = await client.attach(run.id)
        await other.approve(approved)
        first = (await other.result()).pending
        assert [(call.kind, call.arguments) for call in first] == [("client_tool", {"text": "one"})]
        await other.answer(first[0].call_id, "noted by somebody else")
        second = (await other.result()).pending
        assert [(call.kind, call.arguments) for call in second] == [("client_tool", {"text": "two"})]
        await wire.join()
        updates = await following
    last = updates[-1]
    assert isinstance(last, Result) and last.accepted
    made = [u.data.call_id for u in updates if isinstance(u, Event) and isinstance(u.data, pb.ToolCalled)]
    assert [made.count(call.call_id) for call in first + second] == [1, 1]
    assert calls == ["two"]


async def test_a_long_text_is_fetched_again_when_its_connection_breaks(
    server: Server, wire: Wire, script: Script, workspace: Path
) -> None:
    content = "x" * 300_000
    model = script(
        f"turns:\n  - {{calls: [{{name: write_file, arguments: {{path: a.md, content: {content}}}}}]}}\n" + DONE
    )
    agent = {"tools": [{"name": "write_file", "policy": "TOOL_DECISION_ALLOW"}]}
    async with Client.connect(wire.address, token=server.key) as client:
        run = await client.start("write", model=model, workspace=workspace, agent=agent)
        await run.result()
        events = [u.data async for u in run.events() if isinstance(u, Event)]
        arguments = next(e.arguments for e in events if isinstance(e, pb.ToolCalled) and e.tool == "write_file")
        assert arguments.WhichOneof("value") == "blob"
        wire.breaks_after = 150_000
        assert json.loads(await run.text(arguments))["content"] == content
        assert wire.breaks_after is None


async def test_a_client_without_patience_still_gives_a_call_its_time(
    server: Server, script: Script, workspace: Path
) -> None:
    async with Client.connect(server.address, patience=0) as client:
        run = await client.start("go on", model=script("turns:\n" + DONE), workspace=workspace)
        assert (await run.result()).accepted
