"""One run: follow it, steer it, answer it."""

import asyncio
import hashlib
import json
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Literal, TypeAlias

from harnessmesh.connection import Connection
from harnessmesh.errors import HarnessError, UnavailableError
from harnessmesh.events import Alert, Delta, Event, PendingCall, ReasoningDelta, Result, ToolOutput, Update
from harnessmesh.gen import pb
from harnessmesh.messages import message
from harnessmesh.serving import Serving
from harnessmesh.tools import Tool
from harnessmesh.watching import Seen, Watched, watch

#: When an iteration ends: when the run has ended; when it has ended or is parked; when all stored events were yielded.
Until: TypeAlias = Literal["end", "rest", "now"]
_UNTIL = {"end": pb.WATCH_UNTIL_END, "rest": pb.WATCH_UNTIL_REST, "now": pb.WATCH_UNTIL_NOW}


class Run:
    """A run, as `Client.start` and `Client.attach` return it. The run lives in its log, not in this
    object: any number of objects, in any number of processes, may refer to one run.

    id, namespace: which run.
    existed: the same request had started it before.
    position: token of the last event that `events` has yielded here, "" before the first.
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
        self, after: int | str = 0, *, until: Until = "end", deltas: bool = True, tree: bool = True
    ) -> AsyncGenerator[Update, None]:
        """Yields what happens in the run: stored events from `after` on, then live ones, with the model's
        text and reasoning between them, and a Result whenever the run is parked or has ended.

        after: the `token` of an event, such as "14-0", or a version that was seen in full. 0 is the start.
            After a version, what sub-agents have done that work there is yielded from their start.
        until: "end": when the run has ended; a run that is parked is waited for. "rest": when it has
            ended or is parked. "now": when all that is stored has been yielded.
        deltas: also yield the model's text and reasoning, while they are written, alerts about the text,
            and the output of commands while they run. Before its
            `model.response` the Deltas and ReasoningDeltas of a turn have added up to the complete text
            and reasoning, also where they were not streamed.
        tree: also yield what happens in the runs of sub-agents; `run_id` of an update names its run.

        A connection that breaks is reopened, and the iteration continues where it was: each event is
        yielded once and in order. No part of a text is yielded twice, unless the model rewrites it:
        then a Delta `rewinds`.

        The client's tools run while the iteration does, also for sub-agents that may call them. A park that waits for them alone yields no
        Result.

        Raises UnavailableError when the gateway is away for longer than the client's patience,
        NotFoundError when there is no such run.
        """
        seen = Seen.after(after)
        serving = Serving(self._tools, self._text_of, self._answer_call) if self._tools and until != "now" else None
        request = pb.WatchRunRequest(
            namespace=self.namespace,
            run_id=self.id,
            until=pb.WATCH_UNTIL_END if serving and until == "rest" else _UNTIL[until],
            no_deltas=not deltas,
            tree=tree,
        )
        try:
            async with aclosing(_run_tools_during(watch(self._connection, request, seen), serving)) as updates:
                async for update in updates:
                    if isinstance(update, Delta | ReasoningDelta | ToolOutput | Alert):
                        yield update
                    elif isinstance(update, pb.Event):
                        if serving:
                            serving.announced(update, seen.attached)
                        if deltas and update.HasField("model_response"):
                            response, turn, below = update.model_response, update.turn_number, update.run_id
                            thought = await self._text_of(response.reasoning, below)
                            text = await self._text_of(response.text, below)
                            for rest in (seen.reasoned(turn, thought, below), seen.response(turn, text, below)):
                                if rest is not None:
                                    yield rest
                        self.position = update.offset or update.id
                        yield Event.of(update)
                    elif not (serving and serving.parked(update)):
                        result = await Result.of(update, self._text_of)
                        if serving and not result.continues:
                            await serving.finish()
                        yield result
                        if until == "rest" and serving and not result.continues:
                            return
        finally:
            if serving:
                await serving.stop()

    async def result(self) -> Result:
        """Waits until the run has ended or is parked, and returns its result. The client's tools run
        meanwhile; a park that waits for them alone is not a result."""
        after = (await self.info()).version
        result: Result | None = None
        async with aclosing(self.events(after, until="rest", deltas=False, tree=bool(self._tools))) as updates:
            async for update in updates:
                if isinstance(update, Result):
                    result = update
        if result is None:
            raise HarnessError(
                f"the gateway ended the watch of {self.namespace}/{self.id} without a result; call result again"
            )
        return result

    async def info(self) -> pb.Run:
        """Returns the state of the run, without its texts."""
        return (await self._get()).run

    async def pending(self) -> list[PendingCall]:
        """Returns the calls that the run and the runs below it wait for; empty while it works."""
        answer = await self._get()
        return [await PendingCall.of(call, self._text_of) for call in answer.result.pending]

    async def conversation(self, version: int = 0) -> list[pb.Message]:
        """Returns the stored conversation up to a version; 0 is the newest."""
        request = pb.GetConversationRequest(namespace=self.namespace, run_id=self.id, version=version)
        return list((await self._connection.call(self._stub.GetConversation, request)).messages)

    async def context(self, version: int = 0, *, page_size: int = 1000) -> pb.GetContextResponse:
        """Returns the request sent to the model at a version, or the next one: all pages in one response.
        At the version of a `model.response` it is the request that the response answers, and
        `digest_matches` reports whether it has the digest that the run has recorded. 0 is the newest.
        page_size: messages that one call fetches, at most 1,000."""
        request = pb.GetContextRequest(namespace=self.namespace, run_id=self.id, version=version, page_size=page_size)
        whole = await self._connection.call(self._stub.GetContext, request)
        while whole.next_page_token:
            request.page_token = whole.next_page_token
            page = await self._connection.call(self._stub.GetContext, request)
            whole.items.extend(page.items)
            whole.next_page_token = page.next_page_token
            if page.HasField("digest_matches"):
                whole.digest_matches = page.digest_matches
        return whole

    async def send(self, text: str, *, request_id: str | None = None) -> str:
        """Sends the run a message. A working run includes it in its next request to the model, a parked
        one resumes, one that has ended reopens. Returns the input's id, which the event
        `input.accepted` names."""
        return await self._input(request_id, user_message=pb.UserMessage(content=pb.Content(inline=text)))

    async def answer(
        self, call_id: str, text: str, *, error: bool = False, request_id: str | None = None, run_id: str = ""
    ) -> str:
        """Answers a call: of a tool that a client runs, or a question. error: the call failed, and text is
        the error. run_id: the run of a sub-agent whose call it is, needed only where several runs below
        wait for a call of this id. Raises ExistsError when the call has an answer, PreconditionError when it does not
        wait for one."""
        answer = pb.ToolAnswer(call_id=call_id, result=pb.Content(inline=text), is_error=error)
        return await self._input(request_id, run_id, tool_answer=answer)

    async def accept(
        self,
        call_id: str,
        values: Mapping[str, Any] | str = "",
        *,
        round: int = 0,
        request_id: str | None = None,
        run_id: str = "",
    ) -> str:
        """Answers the question of a server. values: those of its form, or the value of its only field as
        text; by the id of each request if it has several, with None for one that is declined; nothing once its
        address was visited. round: that of the question, so that another one of the call is not answered
        by it. Raises InvalidError, which names a field that does not fit. run_id: as in `answer`."""
        text = values if isinstance(values, str) else json.dumps(dict(values))
        answer = pb.ToolAnswer(
            call_id=call_id, result=pb.Content(inline=text), action=pb.ANSWER_ACTION_ACCEPT, round=round
        )
        return await self._input(request_id, run_id, tool_answer=answer)

    async def decline(self, call_id: str, *, round: int = 0, request_id: str | None = None, run_id: str = "") -> str:
        """Declines the question of a server: the person does not want to answer. round, run_id: as in `accept`."""
        answer = pb.ToolAnswer(call_id=call_id, action=pb.ANSWER_ACTION_DECLINE, round=round)
        return await self._input(request_id, run_id, tool_answer=answer)

    async def dismiss(self, call_id: str, *, round: int = 0, request_id: str | None = None, run_id: str = "") -> str:
        """Closes the question of a server without a choice, the action CANCEL. round, run_id: as in `accept`."""
        answer = pb.ToolAnswer(call_id=call_id, action=pb.ANSWER_ACTION_CANCEL, round=round)
        return await self._input(request_id, run_id, tool_answer=answer)

    async def approve(
        self, call_id: str, *, always: bool = False, digest: str = "", request_id: str | None = None, run_id: str = ""
    ) -> str:
        """Approves a call; with always, also all later calls of its tool in its run. run_id: as in `answer`.
        digest: of the call that was shown, as `PendingCall` has it: the approval counts for this call only. Calls
        that lists have shortened are not approved without."""
        decision = pb.APPROVAL_DECISION_RUN if always else pb.APPROVAL_DECISION_ONCE
        approval = pb.Approval(call_id=call_id, decision=decision, digest=digest)
        return await self._input(request_id, run_id, approval=approval)

    async def deny(self, call_id: str, reason: str = "", *, request_id: str | None = None, run_id: str = "") -> str:
        """Denies a call. The model receives the reason. run_id: as in `answer`."""
        approval = pb.Approval(call_id=call_id, decision=pb.APPROVAL_DECISION_DENY, reason=reason)
        return await self._input(request_id, run_id, approval=approval)

    async def set_mode(self, mode: str, *, request_id: str | None = None) -> str:
        """Changes the mode of work from the next call on: plan, execute or a mode that the agent defines."""
        return await self._input(request_id, mode_change=pb.ModeChange(mode=mode))

    async def give_feedback(self, good: bool, *, request_id: str | None = None) -> str:
        """Gives feedback on the result of the run, which has ended. The last feedback counts."""
        return await self._input(request_id, feedback=pb.Feedback(thumb=pb.THUMB_UP if good else pb.THUMB_DOWN))

    async def interrupt(self, reason: str = "", *, request_id: str | None = None) -> str:
        """Kills the calls that run and parks the run. Returns when the request is stored; `result` waits for its effect."""
        request = pb.InterruptRunRequest(
            namespace=self.namespace, run_id=self.id, request_id=request_id or _new_id(), reason=reason
        )
        return (await self._connection.call(self._stub.InterruptRun, request)).request_id

    async def resume(
        self, *, budgets: pb.Budgets | Mapping[str, Any] | None = None, request_id: str | None = None
    ) -> bool:
        """Resumes a parked or cancelled run. budgets replace the current ones, such as
        {"tool_calls": 600}. Returns False when it was running already; then only budgets have an effect."""
        request = pb.ResumeRunRequest(
            namespace=self.namespace,
            run_id=self.id,
            request_id=request_id or _new_id(),
            budgets=message(pb.Budgets, "budgets", budgets),
        )
        return not (await self._connection.call(self._stub.ResumeRun, request)).already_running

    async def cancel(self, reason: str = "", *, request_id: str | None = None) -> str:
        """Ends the run. Returns when the request is stored; `result` waits for its effect."""
        request = pb.CancelRunRequest(
            namespace=self.namespace, run_id=self.id, request_id=request_id or _new_id(), reason=reason
        )
        return (await self._connection.call(self._stub.CancelRun, request)).request_id

    async def delete(self) -> None:
        """Deletes a run that is parked or has ended, with all that is stored of it."""
        await self._connection.call(self._stub.DeleteRun, pb.DeleteRunRequest(namespace=self.namespace, run_id=self.id))

    async def text(self, content: pb.Content, *, run_id: str = "") -> str:
        """Returns the text of a content; fetches it if it is stored in a blob. run_id: the run of a
        sub-agent that it comes from, "" for the run itself."""
        if content.WhichOneof("value") != "blob":
            return content.inline
        return (await self._blob(content.blob, run_id or self.id)).decode()

    async def _text_of(self, content: pb.Content, run_id: str) -> str:
        return await self.text(content, run_id=run_id)

    async def _blob(self, blob: pb.BlobRef, run_id: str) -> bytes:
        request = pb.GetBlobRequest(namespace=self.namespace, run_id=run_id, digest=blob.digest)
        data = b"".join([part.chunk for part in await self._connection.collect(self._stub.GetBlob, request)])
        if hashlib.sha256(data).hexdigest() != blob.digest:
            raise UnavailableError(
                f"blob {blob.digest} of {self.namespace}/{self.id} arrived with other bytes; read it again"
            )
        return data

    async def _get(self) -> pb.GetRunResponse:
        request = pb.GetRunRequest(namespace=self.namespace, run_id=self.id)
        return await self._connection.call(self._stub.GetRun, request)

    async def _answer_call(self, call_id: str, text: str, error: bool, request_id: str, run_id: str) -> str:
        return await self.answer(call_id, text, error=error, request_id=request_id, run_id=run_id)

    async def _input(self, request_id: str | None, run_id: str = "", **given: Any) -> str:
        request = pb.SendInputRequest(
            namespace=self.namespace, run_id=run_id or self.id, request_id=request_id or _new_id(), **given
        )
        return (await self._connection.call(self._stub.SendInput, request)).request_id


async def _run_tools_during(
    updates: AsyncGenerator[Watched, None], serving: Serving | None
) -> AsyncGenerator[Watched, None]:
    """Yields the updates of a watch. A tool call whose result cannot be sent ends them with its exception."""
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
