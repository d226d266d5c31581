"""Questions of a server of tools."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harnessmesh import Client, InvalidError, PendingCall, PreconditionError, Run, Status, pb

CALL = "  - {calls: [{name: mcp__asking__confirm, arguments: {}}]}\n"
DONE = "  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n"


async def asked(run: Run) -> PendingCall:
    call = (await run.result()).pending[0]
    assert call.kind == "question" and call.question is not None
    assert (call.question.server, call.question.round) == ("asking", 1)
    assert call.question.requests[0].message.inline == "Are you sure?"
    return call


async def test_questions_of_a_server_are_accepted_declined_and_closed(
    client: Client, script: Callable[[str], str], workspace: Path
) -> None:
    server = {"name": "asking", "command": sys.executable, "args": [str(Path(__file__).with_name("asking_server.py"))]}
    rule = {"name": "mcp__asking__*", "policy": "TOOL_DECISION_ALLOW"}
    run = await client.start(
        "confirm",
        model=script("turns:\n" + CALL * 4 + DONE),
        workspace=workspace,
        agent={"mcp": [server], "tools": [rule]},
        config=pb.LoopConfig(sandbox=pb.SandboxConfig(level=pb.SANDBOX_LEVEL_OFF)),
    )
    call = await asked(run)
    with pytest.raises(InvalidError, match="other: the form has no such field"):
        await run.accept(call.call_id, {"other": 1})
    with pytest.raises(PreconditionError) as changed:
        await run.decline(call.call_id, round=2)
    assert changed.value.reason == "CALL_CHANGED"
    await run.accept(call.call_id, {"why": "it is late"}, round=1)
    await run.accept((await asked(run)).call_id, "briefly")
    await run.decline((await asked(run)).call_id, round=1)
    await run.dismiss((await asked(run)).call_id)
    assert (await run.result()).status is Status.DONE
    results = [m.content.inline for m in await run.conversation() if m.tool_name == "mcp__asking__confirm"]
    ends = [text.removeprefix("[data from the server asking] ") for text in results]
    assert ends == ["accept it is late", "accept briefly", "decline None", "cancel None"]
    assert all(m.role == pb.ROLE_TOOL for m in await run.conversation() if m.tool_name == "mcp__asking__confirm")
