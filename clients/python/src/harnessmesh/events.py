"""What an iteration over a run yields: events, pieces of the model's text and reasoning, and the run's results."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any, TypeAlias, cast

from google.protobuf.timestamp_pb2 import Timestamp

from harnessmesh.gen import pb

#: What happened: one message for each name in docs/events.md.
EventData: TypeAlias = (
    pb.SessionStart | pb.SessionPause | pb.SessionResume | pb.SessionComplete | pb.PlanDraft | pb.PlanCommit
    | pb.StepStart | pb.StepEnd | pb.ModelResponse | pb.ModelRetry | pb.ToolCalled | pb.ToolResult | pb.ToolError
    | pb.ToolDenied | pb.BudgetWarn | pb.ContinuationPrompt | pb.StopRejected | pb.ContextPressure
    | pb.ContextUsage | pb.Repaired | pb.ApprovalRequested | pb.ApprovalAnswered | pb.InputAccepted
    | pb.InputRejected | pb.RunInterrupted | pb.RunCancelled | pb.WorkerTakeover | pb.ExecutorMissing
    | pb.ExecutorError | pb.StallDetected | pb.DoomLoopDetected | pb.GuidanceInjected | pb.WorkItemChanged
    | pb.DeliverablesUpdated | pb.ContractEvaluated | pb.HookResult | pb.HookError | pb.ModeChanged
)  # fmt: skip

#: Fetches a text that may be stored in a blob of the run, or of a run below it that is named.
Texts: TypeAlias = Callable[[pb.Content, str], Awaitable[str]]


@dataclass(frozen=True)
class Event:
    """Something that was committed to the run's log; docs/events.md lists all of them.

    name: the dotted name, such as "tool.call"; "unknown" for an event of a newer server.
    id: VERSION-INDEX, unique in the run; RUN/VERSION-INDEX in an event of a sub-agent's run.
    token: pass it to `Run.events(after=…)` to continue after this event.
    version: version of the record that contains it, in its run; one record may contain several events.
    time: when the record was made, UTC.
    turn_number: the turn that it belongs to, 0 before the first.
    max_turns: the turn after which the run ends.
    data: what happened; None for an event of a newer server.
    run_id: the run of the sub-agent that it happened in; "" for the run that is followed. So the next
        four.
    parent_run_id: the run whose call started it.
    call_id: that call.
    agent: the name of the sub-agent.
    depth: how many runs are above it; 0 for the run that is followed.
    """

    name: str
    id: str
    version: int
    time: datetime
    turn_number: int
    max_turns: int
    data: EventData | None
    token: str = ""
    run_id: str = ""
    parent_run_id: str = ""
    call_id: str = ""
    agent: str = ""
    depth: int = 0

    @staticmethod
    def of(event: pb.Event) -> "Event":
        case = event.WhichOneof("event")
        return Event(
            name=name_of(case) if case else "unknown",
            id=event.id,
            version=event.version,
            time=_utc(event.time),
            turn_number=event.turn_number,
            max_turns=event.max_turns,
            data=cast(EventData, getattr(event, case)) if case else None,
            token=event.offset or event.id,
            run_id=event.run_id,
            parent_run_id=event.parent_run_id,
            call_id=event.call_id,
            agent=event.agent,
            depth=event.depth,
        )


@dataclass(frozen=True)
class Delta:
    """A piece of the model's text. The pieces of a turn, from the last that `rewinds` on, add up to the
    text of its event `model.response`, which follows them.

    attempt, try_number: which try of the turn wrote it; both 0 when it was not streamed but taken
        from the response.
    offset: bytes (UTF-8) of the text that came before.
    rewinds: the text of this turn that was yielded before is void, and this piece starts it again: an
        earlier try broke off, or another worker took over the turn.
    run_id: the run of a sub-agent that it belongs to; "" for the run that is followed.
    """

    turn_number: int
    attempt: int
    try_number: int
    offset: int
    text: str
    rewinds: bool = False
    run_id: str = ""


@dataclass(frozen=True)
class ReasoningDelta:
    """A piece of the model's reasoning, as the provider tells it to people. The fields are those of
    `Delta`. The pieces of a turn, from the last that `rewinds` on, add up to `reasoning` of its event
    `model.response`, which follows them.
    """

    turn_number: int
    attempt: int
    try_number: int
    offset: int
    text: str
    rewinds: bool = False
    run_id: str = ""


@dataclass(frozen=True)
class ToolOutput:
    """Output of the command of a running call, at most ten pieces a second. Pieces may be skipped;
    the result of the call follows with `tool.result` or `tool.error`.
    """

    turn_number: int
    call_id: str
    #: Bytes of the output that came before.
    offset: int
    text: str
    #: The run of a sub-agent that the call belongs to; "" for the run that is followed.
    run_id: str = ""


@dataclass(frozen=True)
class Alert:
    """An alert of the monitor while the model writes its text: the fields of `quality.alert`.
    That event follows with the response and has what counts. It repeats each alert of the try that
    succeeded.
    """

    turn_number: int
    attempt: int
    try_number: int
    #: "critical" or "warning".
    severity: str
    #: Characters of the text that were checked.
    checkpoint: int
    issue: str
    suggestion: str
    #: The run of a sub-agent that it belongs to; "" for the run that is followed.
    run_id: str = ""


class Status(str, Enum):
    """The status of a run."""

    RUNNING = "RUNNING"
    PARKED = "PARKED"
    DONE = "DONE"
    STALLED = "STALLED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @staticmethod
    def of(status: pb.RunStatus.ValueType) -> "Status":
        return Status(pb.RunStatus.Name(status).removeprefix("RUN_STATUS_"))


@dataclass(frozen=True)
class PendingCall:
    """A call that waits for an answer from outside.

    arguments: a JSON value, or the text where the model wrote something else.
    kind: approval, client_tool, question or review.
    why: why it has to wait, or the question, for the person that answers.
    deadline: when it fails without an answer, UTC; None means never.
    run_id: the run of a sub-agent that waits; "" for the run itself.
    question: what a server of tools asks, with its requests and its round; None for other calls. `Run.accept`,
    `Run.decline` and `Run.dismiss` answer it.
    digest: of what is shown here, for `Run.approve`; "" for calls that wait for no approval.
    """

    call_id: str
    tool: str
    arguments: Any
    kind: str
    why: str
    turn_number: int
    deadline: datetime | None
    run_id: str = ""
    question: pb.ServerQuestion | None = None
    digest: str = ""

    @staticmethod
    async def of(call: pb.PendingCall, text: Texts) -> "PendingCall":
        return PendingCall(
            call_id=call.call_id,
            tool=call.tool,
            arguments=parse_arguments(await text(call.arguments, call.run_id)),
            kind=call.kind,
            why=call.why,
            turn_number=call.turn_number,
            deadline=_utc(call.deadline) if call.HasField("deadline") else None,
            run_id=call.run_id,
            question=call.question if call.HasField("question") else None,
            digest=call.preview.digest,
        )


@dataclass(frozen=True)
class Deliverable:
    """Something that the agent made for the user, with its complete text."""

    item_id: str
    title: str
    content: str


@dataclass(frozen=True)
class Result:
    """The state of a run that is parked or has ended. Texts are complete.

    accepted: the work counts as done: the agent declared it done and no gate rejected it.
    reason: a kind of docs/events.md, such as agent_done, approval or budget_exceeded:turns.
    message: the same for people, one sentence.
    answer: the agent's last text.
    summary: the summary with which the agent declared the work done.
    pending: the calls that wait, while it is parked.
    wake_at: when a parked run resumes by itself, UTC; None means never.
    raw: the protocol's message, with coverage, usage and the facts of the reason.
    """

    status: Status
    accepted: bool
    reason: str
    message: str
    answer: str
    summary: str
    turn_count: int
    tool_calls: int
    pending: tuple[PendingCall, ...]
    wake_at: datetime | None
    deliverables: tuple[Deliverable, ...]
    raw: pb.HarnessResult = field(repr=False)

    @property
    def continues(self) -> bool:
        """True if the run is parked and continues by itself: for a wait, or while sub-agents work."""
        kind, waits = self.raw.reason.kind, self.raw.reason.details.run_id
        return self.status is Status.PARKED and (kind == "wait" or (kind == "agent" and not waits))

    @property
    def ended(self) -> bool:
        """True if the run has ended: only a message, or after a cancel a resume, reopens it."""
        return self.status is not Status.PARKED

    @staticmethod
    async def of(result: pb.HarnessResult, text: Texts) -> "Result":
        return Result(
            status=Status.of(result.status),
            accepted=result.accepted,
            reason=result.reason.kind,
            message=result.reason.message,
            answer=await text(result.answer, ""),
            summary=await text(result.summary, ""),
            turn_count=result.turn_count,
            tool_calls=result.tool_calls,
            pending=tuple([await PendingCall.of(call, text) for call in result.pending]),
            wake_at=_utc(result.wake_at) if result.HasField("wake_at") else None,
            deliverables=tuple(
                [
                    Deliverable(item_id=d.item_id, title=d.title, content=await text(d.content, ""))
                    for d in result.deliverables
                ]
            ),
            raw=result,
        )


#: What `Run.events` yields.
Update: TypeAlias = Event | Delta | ReasoningDelta | ToolOutput | Alert | Result


def name_of(case: str) -> str:
    """Returns the dotted name of a case of Event.event: its last underscore is the dot, after quality the first."""
    if case.startswith("quality_"):
        return case.replace("_", ".", 1)
    head, _, tail = case.rpartition("_")
    return f"{head}.{tail}" if head else tail


def parse_arguments(text: str) -> Any:
    """Returns a call's arguments: the JSON value, or the text if they are not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _utc(time: Timestamp) -> datetime:
    return time.ToDatetime(tzinfo=timezone.utc)
