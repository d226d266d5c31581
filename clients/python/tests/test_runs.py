"""Runs as a Python program drives them, against a real server."""

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Server

from harnessmesh import (
    Alert,
    Client,
    Delta,
    Event,
    ExistsError,
    InvalidError,
    NotFoundError,
    PreconditionError,
    ReasoningDelta,
    Result,
    Run,
    Status,
    TooLargeError,
    UnavailableError,
    Update,
    pb,
)

Script = Callable[[str], str]

DONE = "  - {calls: [{name: work_complete, arguments: {summary: finished}}]}\n"
TALK = "turns:\n  - {text: I look around first., calls: [{name: list_directory}]}\n" + DONE
THINK = "turns:\n  - {reasoning: 'Where does it belong?', text: Here., calls: [{name: list_directory}]}\n" + DONE
#: Confined commands do not ask by default.
ASKS = {"tools": [{"name": "run_command", "policy": "TOOL_DECISION_ASK", "reason": "it runs commands"}]}
COMMAND = "turns:\n  - {text: A command., calls: [{name: run_command, arguments: {command: echo it ran}}]}\n" + DONE


async def gather(run: Run, after: int | str = 0) -> list[Update]:
    return [update async for update in run.events(after)]


def ids(updates: list[Update]) -> list[str]:
    return [u.id for u in updates if isinstance(u, Event)]


def texts(updates: list[Update]) -> str:
    return "".join(u.text for u in updates if isinstance(u, Delta))


async def test_a_run_is_followed_from_its_start_to_its_result(client: Client, script: Script, workspace: Path) -> None:
    run = await client.start("look", model=script(TALK), workspace=workspace)
    updates = await gather(run)
    names = [u.name for u in updates if isinstance(u, Event)]
    assert names[:3] == ["session.start", "plan.draft", "plan.commit"]
    assert names[-1] == "session.complete"
    assert texts(updates) == "I look around first."
    result = updates[-1]
    assert isinstance(result, Result)
    assert (result.status, result.accepted, result.reason, result.summary) == (
        Status.DONE,
        True,
        "agent_done",
        "finished",
    )
    assert await run.result() == result
    assert run.position == ids(updates)[-1]


async def test_reasoning_is_followed_and_ends_in_its_response(client: Client, script: Script, workspace: Path) -> None:
    run = await client.start("look", model=script(THINK), workspace=workspace)
    for updates in await gather(run), await gather(run):  # while it runs, and from its records
        first = next(u for u in updates if isinstance(u, ReasoningDelta | Delta))
        assert isinstance(first, ReasoningDelta)
        assert "".join(u.text for u in updates if isinstance(u, ReasoningDelta)) == "Where does it belong?"
        assert texts(updates) == "Here."
        response = next(u.data for u in updates if isinstance(u, Event) and u.name == "model.response")
        assert isinstance(response, pb.ModelResponse)
        assert await run.text(response.reasoning) == "Where does it belong?"
    assert not [u async for u in run.events(deltas=False) if isinstance(u, ReasoningDelta)]


async def test_alerts_come_while_the_model_writes(client: Client, script: Script, workspace: Path) -> None:
    def look() -> str:
        """Looks around."""
        return "nothing"

    refusal = "Unfortunately there is nothing here. " + "It is empty. " * 60
    turns = (
        f"turns:\n  - {{calls: [{{name: look}}]}}\n  - {{text: {refusal!r}, calls: [{{name: list_directory}}]}}\n{DONE}"
    )
    config = {"quality": {"enabled": True}}
    # The tool runs while the run is followed, so the text of the second turn is not missed.
    run = await client.start("look", model=script(turns), workspace=workspace, tools=[look], config=config)
    updates = await gather(run)
    live, stored = (
        [i for i, u in enumerate(updates) if isinstance(u, Alert)],
        [i for i, u in enumerate(updates) if isinstance(u, Event) and u.name == "quality.alert"],
    )
    assert len(live) == len(stored) == 1 and live < stored
    alert, event = updates[live[0]], updates[stored[0]]
    assert isinstance(alert, Alert) and isinstance(event, Event) and isinstance(event.data, pb.QualityAlert)
    assert (alert.turn_number, alert.try_number, alert.severity, alert.checkpoint) == (2, 1, "critical", 500)
    assert (alert.issue, alert.suggestion) == (event.data.issue, event.data.suggestion)
    assert texts(updates[: live[0]]) in refusal and len(texts(updates[: live[0]])) >= 500
    assert not [u async for u in run.events(deltas=False) if isinstance(u, Alert)]


async def test_events_have_the_names_and_ids_that_the_command_line_prints(
    client: Client, server: Server, script: Script, workspace: Path
) -> None:
    run = await client.start("look", model=script(TALK), workspace=workspace)
    mine = [(u.id, u.name, u.turn_number) for u in await gather(run) if isinstance(u, Event)]
    command = [server.binary, "watch", run.id, "--server", server.address, "--output", "jsonl", "--no-stream"]
    printed = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    assert mine == [(e["id"], e["type"], e["turn_number"]) for e in lines if e["type"] != "result"]


async def test_every_event_of_the_protocol_has_a_dotted_name_of_its_own() -> None:
    cases = [field.name for field in pb.Event.DESCRIPTOR.oneofs_by_name["event"].fields]
    events = []
    for case in cases:
        event = pb.Event(id="1-0")
        getattr(event, case).SetInParent()
        events.append(Event.of(event))
    assert len({event.name for event in events}) == len(cases)
    documented = (Path(__file__).parents[3] / "docs" / "events.md").read_text()
    assert [event.name for event in events if f"| `{event.name}` |" not in documented] == []


async def test_an_attached_client_goes_on_behind_an_event_or_a_version(
    client: Client, script: Script, workspace: Path
) -> None:
    run = await client.start("look", model=script(TALK), workspace=workspace)
    all_ids = ids(await gather(run))
    attached = await client.attach(run.id)
    assert ids(await gather(attached)) == all_ids
    for place, event in enumerate(all_ids):
        assert ids(await gather(attached, event)) == all_ids[place + 1 :]
    version = int(all_ids[2].partition("-")[0])
    assert ids(await gather(attached, version)) == [e for e in all_ids if int(e.partition("-")[0]) > version]


async def test_an_iteration_until_now_ends_though_the_run_waits(
    client: Client, script: Script, workspace: Path
) -> None:
    run = await client.start("run it", model=script(COMMAND), workspace=workspace, agent=ASKS)
    parked = await run.result()
    assert (parked.status, parked.reason, parked.ended) == (Status.PARKED, "approval", False)
    updates = [u async for u in run.events(until="now")]
    assert [u for u in updates if isinstance(u, Result)] == [parked]
    assert [call.call_id for call in await run.pending()] == [parked.pending[0].call_id]
    assert parked.pending[0].arguments == {"command": "echo it ran"}
    await run.cancel("enough")
    assert (await run.result()).status is Status.CANCELLED


async def test_an_approved_call_runs_and_the_iteration_goes_on(client: Client, script: Script, workspace: Path) -> None:
    run = await client.start("run it", model=script(COMMAND), workspace=workspace, agent=ASKS)
    output = ""
    async for update in run.events():
        match update:
            case Event(data=pb.ApprovalRequested() as asked):
                with pytest.raises(PreconditionError) as changed:
                    await run.approve(asked.call_id, digest="0" * 64)
                assert changed.value.reason == "CALL_CHANGED"
                await run.result()  # the run parks after the event
                (call,) = await run.pending()
                assert call.digest == asked.preview.digest
                await run.approve(call.call_id, digest=call.digest)
            case Event(data=pb.ToolResult(tool="run_command") as done):
                output = await run.text(done.result)
    assert "it ran" in output
    assert (await run.result()).accepted


async def test_a_denied_call_does_not_run_and_the_model_is_told_why(
    client: Client, script: Script, workspace: Path
) -> None:
    run = await client.start("run it", model=script(COMMAND), workspace=workspace, agent=ASKS)
    call = (await run.result()).pending[0]
    await run.deny(call.call_id, "not on a Sunday")
    await run.result()
    names = [u.name for u in await gather(run) if isinstance(u, Event)]
    assert "tool.denied" in names
    told = [await run.text(message.content) for message in await run.conversation()]
    assert [text for text in told if "not on a Sunday" in text]


async def test_the_context_of_a_response_is_the_conversation_before_it(
    client: Client, script: Script, workspace: Path
) -> None:
    run = await client.start("run it", model=script(COMMAND), workspace=workspace, agent=ASKS)
    await run.deny((await run.result()).pending[0].call_id)
    await run.result()
    responses = [u.version for u in await gather(run) if isinstance(u, Event) and u.name == "model.response"]
    context = await run.context(responses[1])
    before = [message.id for message in await run.conversation(responses[1] - 1)]
    assert [item.first_message for item in context.items] == before
    assert [item.text for item in context.items if item.kind == pb.MESSAGE_KIND_USER_INPUT] == ["run it"]
    assert context.version == responses[1] and context.total_items == len(before) > 3
    paged = await run.context(responses[1], page_size=2)
    assert paged.items == context.items and not paged.next_page_token
    assert (await run.context()).total_items > len(before)


async def test_a_second_answer_is_refused_and_the_same_answer_again_is_not(
    client: Client, script: Script, workspace: Path
) -> None:
    run = await client.start("run it", model=script(COMMAND), workspace=workspace, agent=ASKS)
    call = (await run.result()).pending[0].call_id
    with pytest.raises(PreconditionError) as wrong:
        await run.answer("call_9_9", "nobody asked")
    assert wrong.value.reason == "CALL_NOT_PENDING"
    await run.approve(call, request_id="mine")
    await run.approve(call, request_id="mine")
    assert (await run.result()).status is Status.DONE
    with pytest.raises((ExistsError, PreconditionError)) as late:
        await run.deny(call, request_id="another")
    assert late.value.reason in ("CALL_ANSWERED", "CALL_NOT_PENDING")


async def test_a_question_is_answered_and_a_message_opens_the_run_again(
    client: Client, script: Script, workspace: Path
) -> None:
    ask = '  - {calls: [{name: ask_user, arguments: {question: "Which colour?", options: [red, green]}}]}\n'
    model = script("turns:\n" + ask + DONE + "  - {text: More then.}\n" + DONE)
    run = await client.start("paint", model=model, workspace=workspace)
    call = (await run.result()).pending[0]
    assert (call.kind, call.arguments["question"]) == ("question", "Which colour?")
    await run.answer(call.call_id, "red")
    first = await run.result()
    assert first.accepted
    item = await run.send("And the door?")
    second = await run.result()
    assert second.turn_count > first.turn_count
    taken = [u.data.item_id for u in await gather(run) if isinstance(u, Event) and isinstance(u.data, pb.InputAccepted)]
    assert item in taken


async def test_an_interrupted_run_is_parked_and_resumed(client: Client, script: Script, workspace: Path) -> None:
    model = script("turns:\n  - {text: Slowly., delay: 5m, calls: [{name: list_directory}]}\n" + DONE)
    run = await client.start("wait", model=model, workspace=workspace)
    async for update in run.events():
        if isinstance(update, Event) and isinstance(update.data, pb.StepStart):
            break
    await run.interrupt("lunch")
    parked = await run.result()
    assert (parked.status, parked.reason) == (Status.PARKED, "interrupted")
    assert await run.resume(budgets={"tool_calls": 600})
    assert (await run.info()).run_id == run.id
    await run.cancel()
    assert (await run.result()).status is Status.CANCELLED


async def test_the_same_request_starts_one_run(client: Client, script: Script, workspace: Path) -> None:
    model = script(TALK)
    first = await client.start("look", model=model, workspace=workspace, request_id="once-" + workspace.parent.name)
    again = await client.start("look", model=model, workspace=workspace, request_id="once-" + workspace.parent.name)
    assert (first.existed, again.existed, again.id) == (False, True, first.id)
    with pytest.raises(ExistsError) as other:
        await client.start("another goal", model=model, workspace=workspace, run_id=first.id)
    assert other.value.reason == "RUN_EXISTS"


async def test_runs_are_listed_newest_first_over_pages(client: Client, script: Script, workspace: Path) -> None:
    model, namespace = script(TALK), "pages"
    started = []
    for number in range(3):
        run = await client.start(f"look {number}", model=model, workspace=workspace, namespace=namespace)
        await run.result()
        started.append(run.id)
    listed = [run.run_id async for run in client.runs("DONE", namespace=namespace, page_size=2)]
    assert listed == started[::-1]
    assert [run async for run in client.runs(Status.PARKED, namespace=namespace)] == []
    await (await client.attach(started[0], namespace=namespace)).delete()
    assert started[0] not in [run.run_id async for run in client.runs(namespace=namespace)]


async def test_agents_contracts_and_numbers_are_given_as_mappings(
    client: Client, script: Script, workspace: Path
) -> None:
    run = await client.start(
        "write",
        model=script(
            "turns:\n  - {calls: [{name: write_file, arguments: {path: a.md, content: " + "x" * 20_000 + "}}]}\n" + DONE
        ),
        workspace=workspace,
        agent={"name": "writer", "tools": [{"name": "write_file", "policy": "TOOL_DECISION_ALLOW"}]},
        contract={
            "required_outputs": [{"id": "a", "predicate": {"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a.md"}}]
        },
        config={"stop": {"max_turns": 7}},
    )
    arguments = ""
    async for update in run.events():
        if isinstance(update, Event) and isinstance(update.data, pb.ToolCalled) and update.data.tool == "write_file":
            assert update.max_turns == 7
            assert update.data.arguments.WhichOneof("value") == "blob"
            arguments = await run.text(update.data.arguments)
    assert json.loads(arguments)["content"] == "x" * 20_000
    assert list((await run.result()).raw.coverage.unmet) == []
    assert (await run.result()).raw.coverage.met == 1


async def test_wrong_input_is_one_clear_exception(client: Client, script: Script, workspace: Path) -> None:
    with pytest.raises(NotFoundError, match="run default/nobody not found") as unknown:
        await client.attach("nobody")
    assert (unknown.value.reason, unknown.value.metadata["run_id"]) == ("RUN_NOT_FOUND", "nobody")
    with pytest.raises(NotFoundError):
        await gather(Run(client._connection, "default", "nobody", True, {}))
    with pytest.raises(InvalidError) as model:
        await client.start("look", model="gpt", workspace=workspace)
    assert (model.value.reason, model.value.field) == ("INVALID_FIELD", "spec.agent.model")
    with pytest.raises(InvalidError, match='agent: .*no field named "nmae"') as agent:
        await client.start("look", model=script(TALK), workspace=workspace, agent={"nmae": "x"})
    assert agent.value.field == "agent"
    with pytest.raises(InvalidError, match="statuses: unknown status 'FINISHED'; expected one of RUNNING, PARKED"):
        [run async for run in client.runs("FINISHED")]
    run = await client.start("look", model=script(TALK), workspace=workspace)
    await run.result()
    for after in (-1, "14", "x-0", True):
        with pytest.raises(InvalidError, match="neither a version, such as 14, nor an event's token"):
            await gather(run, after)
    with pytest.raises(PreconditionError) as ended:
        await run.resume()
    assert ended.value.reason == "RUN_ENDED"
    with pytest.raises(TooLargeError):
        await run.send("x" * (2 << 20))


async def test_a_wrong_address_is_one_clear_exception() -> None:
    with pytest.raises(UnavailableError, match=r"no gateway can be reached at 127\.0\.0\.1:1: is `harness serve`"):
        await Client.connect("127.0.0.1:1", connect_timeout=0.2)
    for address in ("localhost", "http://127.0.0.1:7447", "127.0.0.1:70000", ""):
        with pytest.raises(InvalidError, match="neither HOST:PORT"):
            await Client.connect(address)


async def test_two_clients_can_follow_one_run_at_once(
    client: Client, server: Server, script: Script, workspace: Path
) -> None:
    run = await client.start("look", model=script(TALK), workspace=workspace)
    async with Client.connect(server.address) as other:
        one, two = await asyncio.gather(gather(run), gather(await other.attach(run.id)))
    assert ids(one) == ids(two)
