"""Running the client's tools while the client follows the run.

A call is made at its `tool.call`, if that happens while the run is followed, and otherwise when the
run is parked and still waits for the call. So a client that crashed and attaches again makes the
calls that it left open, and none that have their answer.
"""

import asyncio
import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from harnessmesh.errors import ExistsError, NotFoundError, PreconditionError, TooLargeError
from harnessmesh.events import Texts, parse_arguments
from harnessmesh.gen import pb
from harnessmesh.tools import Tool, ToolFailed

#: Answers a call: call id, text, whether it failed, request id, its run.
Answer = Callable[[str, str, bool, str, str], Awaitable[object]]

_CLIENT_TOOL = "client_tool"


class Serving:
    """The calls that a follower of a run has made or is making, of the run and of the runs below it."""

    def __init__(self, tools: Mapping[str, Tool], text: Texts, answer: Answer) -> None:
        self._tools = tools
        self._text = text
        self._answer = answer
        self._made: set[tuple[str, str]] = set()
        # Runs below that have started since the connection, so that none of their events is history.
        self._new: set[str] = set()
        self._attached = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def announced(self, event: pb.Event, attached: int) -> None:
        """Handles an event. attached: the version of the run when the connection was made; what came
        before is history, which other clients may have handled."""
        if attached != self._attached:
            self._attached = attached
            self._new.clear()
        if event.run_id not in self._new if event.run_id else event.version <= attached:
            return
        if event.HasField("agent_started"):
            self._new.add(event.agent_started.run_id)
        if event.tool_call.awaits == _CLIENT_TOOL:
            self._make(event.run_id, event.tool_call.call_id, event.tool_call.tool, event.tool_call.arguments)

    def parked(self, result: pb.HarnessResult) -> bool:
        """Handles the result of a parked run. Returns True if this client makes all the calls it waits for."""
        for call in result.pending:
            if call.kind == _CLIENT_TOOL:
                self._make(call.run_id, call.call_id, call.tool, call.arguments)
        return bool(result.pending) and all(
            c.kind == _CLIENT_TOOL and (c.run_id, c.call_id) in self._made for c in result.pending
        )

    async def wait(self, coming: "asyncio.Future[Any]") -> None:
        """Waits until the next update has arrived or a call has ended."""
        await asyncio.wait({coming, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)

    def check(self) -> None:
        """Raises the error of a call whose result could not be sent."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()

    async def finish(self) -> None:
        """Waits for the calls that run, and raises the error of one whose result could not be sent."""
        while self._tasks:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            self.check()

    async def stop(self) -> None:
        """Cancels the calls that run. They stay open; the next client that attaches makes them again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def _make(self, run_id: str, call_id: str, tool: str, arguments: pb.Content) -> None:
        if tool in self._tools and (run_id, call_id) not in self._made:
            self._made.add((run_id, call_id))
            self._tasks.add(asyncio.create_task(self._serve(self._tools[tool], run_id, call_id, arguments)))

    async def _serve(self, tool: Tool, run_id: str, call_id: str, arguments: pb.Content) -> None:
        text, failed = await run_tool(tool, call_id, parse_arguments(await self._text(arguments, run_id)))
        # The same call has the same id: an answer that was stored before a crash counts once.
        request_id = "tool-" + hashlib.sha256(call_id.encode()).hexdigest()[:32]
        try:
            await self._answer(call_id, text, failed, request_id, run_id)
        except TooLargeError as error:
            await self._answer(call_id, f"the result is too large: {error}", True, request_id, run_id)
        except (ExistsError, PreconditionError, NotFoundError):
            pass  # another client answered, or the call waits no more: the run's events have the outcome


async def run_tool(tool: Tool, call_id: str, arguments: Any) -> tuple[str, bool]:
    """Makes a call. Returns its result as text, and whether it failed."""
    if not isinstance(arguments, dict):
        return f"the arguments are no JSON object: {arguments!r}", True
    named = {**arguments, "call_id": call_id} if tool.takes_call_id else arguments
    try:
        if inspect.iscoroutinefunction(tool.function):
            value = await tool.function(**named)
        else:
            value = await asyncio.to_thread(tool.function, **named)
            if inspect.isawaitable(value):
                value = await value
        return (value if isinstance(value, str) else json.dumps(value)), False
    except ToolFailed as error:
        return str(error), True
    except Exception as error:  # noqa: BLE001  the model receives every error
        return f"{type(error).__name__}: {error}", True
