"""Runs with sub-agents, against a real server."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from conftest import Server, Wire

from harnessmesh import Client, Delta, Event, Result, Run, Update, pb, tool

Script = Callable[[str], str]

DONE = "  - {calls: [{name: work_complete, arguments: {summary: finished}}]}\n"


def delegating(script: Script, names: list[str], leaf: str, tools: tuple[str, ...] = ()) -> dict[str, Any]:
    """The agent of a chain: each calls the next, the last has the script of the leaf. tools: those of the
    client that all of them have."""
    agent: dict[str, Any] = {}
    for name in reversed(names):
        below = [agent] if agent else []
        text = leaf if not below else _calls(agent["name"])
        agent = {"name": name, "description": "Helps.", "instructions": "Help.", "model": script(text), "agents": below}
        if tools:
            agent["tools"] = [*tools, *(each["name"] for each in below)]
    return {"model": script(_calls(names[0])), "agents": [agent]}


def _calls(name: str) -> str:
    return f"turns:\n  - {{text: I pass it on., calls: [{{name: {name}, arguments: {{prompt: Do it.}}}}]}}\n" + DONE


LEAF = "turns:\n  - {text: I look., calls: [{name: list_directory, arguments: {path: '.'}}]}\n" + DONE


def by_run(updates: Iterable[Update]) -> dict[str, list[str]]:
    """The ids of the events in the order of each run: runs that work side by side are mixed."""
    runs: dict[str, list[str]] = {}
    for update in updates:
        if isinstance(update, Event):
            runs.setdefault(update.run_id, []).append(update.id)
    return runs


async def test_the_events_of_a_tree_name_their_run_and_continue_after_each_token(
    client: Client, script: Script, workspace: Path
) -> None:
    run = await client.start("delegate", agent=delegating(script, ["upper", "lower"], LEAF), workspace=workspace)
    assert (await run.result()).accepted
    updates = [u async for u in run.events()]
    whole = [u for u in updates if isinstance(u, Event)]
    assert {(e.agent, e.depth) for e in whole} == {("", 0), ("upper", 1), ("lower", 2)}
    runs = {e.agent: e.run_id for e in whole}
    assert runs[""] == "" and {e.parent_run_id for e in whole if e.agent == "lower"} == {runs["upper"]}
    assert {u.run_id for u in updates if isinstance(u, Delta)} == set(runs.values())
    assert "".join(u.text for u in updates if isinstance(u, Delta) and u.run_id == runs["lower"]) == "I look."
    for at, event in enumerate(whole):
        rest = [u async for u in run.events(event.token, until="now", deltas=False)]
        assert by_run(rest) == by_run(whole[at + 1 :]), event.token
    alone = [u async for u in run.events(tree=False) if isinstance(u, Event)]
    assert by_run(alone) == {"": by_run(whole)[""]}
    assert {e.token for e in alone} == {e.id for e in alone}


async def test_an_iteration_over_a_tree_goes_on_over_breaks_without_loss_or_repeat(
    server: Server, wire: Wire, script: Script, workspace: Path
) -> None:
    slow = "turns:\n" + "".join(
        f"  - {{text: Turn {n}., delay: 40ms, calls: [{{name: list_directory, arguments: {{path: '.'}}}}]}}\n"
        for n in range(6)
    )
    async with Client.connect(wire.address, token=server.key) as client:
        agent = delegating(script, ["upper", "lower"], slow + DONE)
        run = await client.start("delegate", agent=agent, workspace=workspace)
        seen: list[Update] = []
        result: Result | None = None
        wire.breaks_after = 9000
        breaks = 0
        async for update in run.events():
            seen.append(update)
            if isinstance(update, Result):
                result = update
            if wire.breaks_after is None and breaks < 3:
                breaks += 1
                wire.breaks_after = 5000
        assert breaks > 0
        assert result is not None and result.accepted
        assert by_run(seen) == by_run([u async for u in run.events()])


async def test_a_tool_of_the_client_is_called_by_a_sub_agent_two_levels_down(
    client: Client, script: Script, workspace: Path
) -> None:
    calls: list[str] = []

    @tool(reads=True)
    def look_up(order: int, call_id: str) -> str:
        """Finds an order."""
        calls.append(call_id)
        return f"order {order} is on its way"

    leaf = "turns:\n  - {calls: [{name: look_up, arguments: {order: 17}}]}\n" + DONE
    agent = delegating(script, ["upper", "lower"], leaf, tools=("look_up",))
    run = await client.start("delegate", agent=agent, workspace=workspace, tools=[look_up])
    results, found = [], []
    async for update in run.events():
        if isinstance(update, Result):
            results.append(update)
        elif isinstance(update, Event) and isinstance(update.data, pb.ToolResult) and update.data.tool == "look_up":
            found.append((update.agent, update.data.result.inline))
    assert found == [("lower", "order 17 is on its way")]
    assert len(calls) == 1
    assert results[-1].accepted and all(not r.pending for r in results)


async def test_a_client_that_attaches_makes_the_open_calls_of_sub_agents(
    client: Client, script: Script, workspace: Path
) -> None:
    @tool(reads=True)
    def look_up(order: int) -> str:
        """Finds an order."""
        return f"order {order} is on its way"

    leaf = "turns:\n  - {calls: [{name: look_up, arguments: {order: 17}}]}\n" + DONE
    agent = delegating(script, ["upper", "lower"], leaf, tools=("look_up",))
    run = await client.start("delegate", agent=agent, workspace=workspace, tools=[look_up])
    waits = await (await client.attach(run.id)).result()  # by a client without the tool
    assert [(c.kind, c.tool) for c in waits.pending] == [("client_tool", "look_up")]
    assert waits.pending[0].run_id.startswith("a-")
    again = await client.attach(run.id, tools=[look_up])
    assert (await again.result()).accepted


async def test_questions_of_sub_agents_are_answered_by_the_root_or_by_their_run(
    client: Client, script: Script, workspace: Path
) -> None:
    leaf = "turns:\n  - {calls: [{name: ask_user, arguments: {question: 'Which one?'}}]}\n" + DONE
    for named in (False, True):
        run: Run = await client.start("ask", agent=delegating(script, ["upper"], leaf), workspace=workspace)
        call = (await run.result()).pending[0]
        assert (call.kind, (await run.pending())[0].run_id) == ("question", call.run_id)
        await run.answer(call.call_id, "this", run_id=call.run_id if named else "")
        last = [update async for update in run.events()][-1]
        assert isinstance(last, Result) and last.accepted
