"""One run: follow it, steer it, answer it."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Literal, TypeAlias

from harnessmesh.connection import Connection
from harnessmesh.errors import HarnessError, UnavailableError
from harnessmesh.events import Delta, Event, PendingCall, Result, Update
from harnessmesh.gen import pb
from harnessmesh.messages import message
from harnessmesh.serving import Serving
from harnessmesh.tools import Tool
from harnessmesh.watching import Seen, Watched, watch

#: When an iteration ends: when the run has ended; when it has ended or rests; when all that is stored was yielded.
Until: TypeAlias = Literal["end", "rest", "now"]
_UNTIL = {"end": pb.WATCH_UNTIL_END, "rest": pb.WATCH_UNTIL_REST, "now": pb.WATCH_UNTIL_NOW}


class Run:
    """A run, as `Client.start` and `Client.attach` give it. It belongs to its log and not to this
    object: any number of them, in any number of processes, may stand for one run.

    id, namespace: which run.
    existed: it had been started before, by the same request.
    position: id of the last event that `events` has yielded here, "" before the first.
    """

    def __init__(self, connection: Connection, namespace: str, run_id: str, existed: bool, tools: Mapping[str, Tool]):
        self.namespace = namespace
        self.id = run_id
        self.existed = existed
        self.position = ""
        self._connection = connection
        self._stub = connection.stub
        self._tools = tools

    def __repr__(self) -> str:
        return f"Run({self.namespace}/{self.id})"

    async def events(
        self, after: int | str = 0, *, until: Until = "end", deltas: bool = True
    ) -> AsyncGenerator[Update, None]:
        """Yields what happens in the run: stored events from `after` on, then live ones, with the model's
        text between them, and a Result whenever the run rests or has ended.

        after: an event's id, such as "14-0", or a version that was seen in full. 0 is the start.
        until: "end": when the run has ended; a run that is parked is waited for. "rest": when it has
            ended or is parked. "now": when all that is stored has been yielded.
        deltas: also yield the model's text, while it is written. Until its `model.response` comes, the
            Deltas of a turn have added up to the whole text, also where it was not seen being written.

        A connection that breaks is made again, and the iteration goes on where it was: each event is
        yielded once, in order, none is left out. Of a text that was under way nothing is yielded twice;
        a Delta that `rewinds` says that it was written anew.

        While it is iterated, the client's tools are run. A park that waits for them alone yields
        no Result.

        Raises UnavailableError when the gateway is away for longer than the client's patience,
        NotFoundError when there is no such run.
        """
        seen = Seen.after(after)
        serving = Serving(self._tools, self.text, self._answer_call) if self._tools and until != "now" else None
        request = pb.WatchRunRequest(
            namespace=self.namespace,
            run_id=self.id,
            until=pb.WATCH_UNTIL_END if serving and until == "rest" else _UNTIL[until],
            no_deltas=not deltas,
        )
        try:
            async with aclosing(_beside(watch(self._connection, request, seen), serving)) as updates:
                async for update in updates:
                    if isinstance(update, Delta):
                        yield update
                    elif isinstance(update, pb.Event):
                        if serving and update.version > seen.attached:
                            serving.announced(update)
                        if deltas and update.HasField("model_response"):
                            whole = await self.text(update.model_response.text)
                            rest = seen.response(update.turn_number, whole)
                            if rest is not None:
                                yield rest
                        self.position = update.id
                        yield Event.of(update)
                    elif not (serving and serving.rests(update)):
                        if serving:
                            await serving.finish()
                        yield await Result.of(update, self.text)
                        if until == "rest" and serving:
                            return
        finally:
            if serving:
                await serving.stop()

    async def result(self) -> Result:
        """Waits until the run has ended or is parked, and says how it stands. The client's tools are run
        meanwhile; a park that waits for them alone is not the end of it."""
        after = (await self.info()).version
        result: Result | None = None
        async with aclosing(self.events(after, until="rest", deltas=False)) as updates:
            async for update in updates:
                if isinstance(update, Result):
                    result = update
        if result is None:
            raise HarnessError(f"the gateway ended the watch of {self.namespace}/{self.id} without a result: ask again")
        return result

    async def info(self) -> pb.Run:
        """How the run stands, without its texts."""
        return (await self._get()).run

    async def pending(self) -> list[PendingCall]:
        """What the run waits for, oldest first; empty while it works."""
        answer = await self._get()
        return [await PendingCall.of(call, self.text) for call in answer.result.pending]

    async def conversation(self, version: int = 0) -> list[pb.Message]:
        """The conversation as it is stored, up to a version; 0 is the newest."""
        request = pb.GetConversationRequest(namespace=self.namespace, run_id=self.id, version=version)
        return list((await self._connection.call(self._stub.GetConversation, request)).messages)

    async def send(self, text: str, *, request_id: str | None = None) -> str:
        """Says something to the run. One that works reads it in its next request to the model, one that
        is parked wakes, one that has ended takes up work again. Returns the input's id, which the
        event `input.accepted` names."""
        return await self._input(request_id, user_message=pb.UserMessage(content=pb.Content(inline=text)))

    async def answer(self, call_id: str, text: str, *, error: bool = False, request_id: str | None = None) -> str:
        """Gives a call its result: of a tool that a client runs, or a question. error: the call failed,
        and text says how. ExistsError when it has an answer, PreconditionError when it does not wait."""
        answer = pb.ToolAnswer(call_id=call_id, result=pb.Content(inline=text), is_error=error)
        return await self._input(request_id, tool_answer=answer)

    async def approve(self, call_id: str, *, always: bool = False, request_id: str | None = None) -> str:
        """Lets a call run; always: and all later ones of its tool in this run."""
        decision = pb.APPROVAL_DECISION_RUN if always else pb.APPROVAL_DECISION_ONCE
        return await self._input(request_id, approval=pb.Approval(call_id=call_id, decision=decision))

    async def deny(self, call_id: str, reason: str = "", *, request_id: str | None = None) -> str:
        """Forbids a call. The model is told the reason."""
        approval = pb.Approval(call_id=call_id, decision=pb.APPROVAL_DECISION_DENY, reason=reason)
        return await self._input(request_id, approval=approval)

    async def set_mode(self, mode: str, *, request_id: str | None = None) -> str:
        """Changes the mode of work from the next call on: plan, execute or one of the agent's own."""
        return await self._input(request_id, mode_change=pb.ModeChange(mode=mode))

    async def interrupt(self, reason: str = "", *, request_id: str | None = None) -> str:
        """Kills what the run is doing and parks it. Returns when that is stored; `result` waits for it."""
        request = pb.InterruptRunRequest(
            namespace=self.namespace, run_id=self.id, request_id=request_id or _new_id(), reason=reason
        )
        return (await self._connection.call(self._stub.InterruptRun, request)).request_id

    async def resume(
        self, *, budgets: pb.Budgets | Mapping[str, Any] | None = None, request_id: str | None = None
    ) -> bool:
        """Lets a parked or cancelled run go on. budgets replace the present ones, such as
        {"tool_calls": 600}. False when it was running already; then only budgets have an effect."""
        request = pb.ResumeRunRequest(
            namespace=self.namespace,
            run_id=self.id,
            request_id=request_id or _new_id(),
            budgets=message(pb.Budgets, "budgets", budgets),
        )
        return not (await self._connection.call(self._stub.ResumeRun, request)).already_running

    async def cancel(self, reason: str = "", *, request_id: str | None = None) -> str:
        """Ends the run for good. Returns when that is stored; `result` waits for it."""
        request = pb.CancelRunRequest(
            namespace=self.namespace, run_id=self.id, request_id=request_id or _new_id(), reason=reason
        )
        return (await self._connection.call(self._stub.CancelRun, request)).request_id

    async def delete(self) -> None:
        """Deletes a run that rests or has ended, and all that is stored of it."""
        await self._connection.call(self._stub.DeleteRun, pb.DeleteRunRequest(namespace=self.namespace, run_id=self.id))

    async def text(self, content: pb.Content) -> str:
        """The text of a content, fetched where it was too large to travel."""
        if content.WhichOneof("value") != "blob":
            return content.inline
        return (await self._blob(content.blob)).decode()

    async def _blob(self, blob: pb.BlobRef) -> bytes:
        request = pb.GetBlobRequest(namespace=self.namespace, run_id=self.id, digest=blob.digest)
        data = b"".join([part.chunk for part in await self._connection.collect(self._stub.GetBlob, request)])
        if hashlib.sha256(data).hexdigest() != blob.digest:
            raise UnavailableError(f"blob {blob.digest} of {self.namespace}/{self.id} came with other bytes: ask again")
        return data

    async def _get(self) -> pb.GetRunResponse:
        request = pb.GetRunRequest(namespace=self.namespace, run_id=self.id)
        return await self._connection.call(self._stub.GetRun, request)

    async def _answer_call(self, call_id: str, text: str, error: bool, request_id: str) -> str:
        return await self.answer(call_id, text, error=error, request_id=request_id)

    async def _input(self, request_id: str | None, **given: Any) -> str:
        request = pb.SendInputRequest(
            namespace=self.namespace, run_id=self.id, request_id=request_id or _new_id(), **given
        )
        return (await self._connection.call(self._stub.SendInput, request)).request_id


async def _beside(updates: AsyncGenerator[Watched, None], serving: Serving | None) -> AsyncGenerator[Watched, None]:
    """The updates of a watch; a tool's call that cannot be answered ends them with its exception."""
    async with aclosing(updates):
        if serving is None:
            async for update in updates:
                yield update
            return
        while True:
            coming = asyncio.ensure_future(anext(updates))
            try:
                while not coming.done():
                    await serving.wait(coming)
                    serving.check()
            finally:
                if not coming.done():
                    coming.cancel()
                    await asyncio.wait([coming])
            try:
                update = coming.result()
            except StopAsyncIteration:
                return
            yield update


def _new_id() -> str:
    return f"py-{uuid.uuid4().hex}"
