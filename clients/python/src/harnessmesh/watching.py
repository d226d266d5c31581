"""Watching a run over connections that break.

A gateway delivers the events of each run strictly by version. `Seen` records the delivered ones: it has the
position to resume at, and drops those that are delivered a second time. `watch` is the shell around it.
"""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TypeAlias

import grpc

from harnessmesh.connection import Connection, Retry
from harnessmesh.errors import InvalidError, from_rpc
from harnessmesh.events import Alert, Delta, ReasoningDelta, ToolOutput
from harnessmesh.gen import pb

#: An offset: the place in the run, and for each open run below it a part after a tilde.
_OFFSET = re.compile(r"(\d{1,20})(?:-(\d{1,9}))?((?:~[0-9.-]*)*)")
#: An index after the last event of any version.
_ALL = 1 << 30

#: Turn, attempt and try that wrote a text.
_Try: TypeAlias = tuple[int, int, int]
#: What a watch yields.
Watched: TypeAlias = pb.Event | pb.HarnessResult | Delta | ReasoningDelta | ToolOutput | Alert


@dataclass
class _Text:
    """The delivered part of the text that the model writes in a turn, or of its reasoning.

    by: the try that wrote the text that was delivered last.
    shown: what of it.
    """

    by: _Try = (0, 0, 0)
    shown: bytes = b""

    def piece(self, at: _Try, offset: int, text: str) -> tuple[int, str, bool] | None:
        """Records a piece and returns the offset and the text of its new part, and whether it rewinds. None
        if nothing is new, or if text before it is missing."""
        if not text or at < self.by:
            return None
        rewinds = False
        if at > self.by:
            if offset != 0:
                return None
            rewinds = at[0] == self.by[0] and self.shown != b""
            self.by, self.shown = at, b""
        if offset > len(self.shown):
            return None
        return self._add(text.encode()[len(self.shown) - offset :], rewinds)

    def whole(self, turn_number: int, text: str) -> tuple[int, str, bool] | None:
        """Records the complete text of a turn and returns the part that was not delivered piece by piece."""
        if turn_number != self.by[0]:
            self.shown = b""
        whole, rewinds = text.encode(), False
        if not whole.startswith(self.shown):
            self.shown, rewinds = b"", True
        rest = self._add(whole[len(self.shown) :], rewinds)
        self.by = (turn_number, _ALL, _ALL)  # pieces of this turn that arrive late are not new
        return rest

    def _add(self, new: bytes, rewinds: bool) -> tuple[int, str, bool] | None:
        offset = len(self.shown)
        self.shown += new
        return (offset, new.decode(), rewinds) if new else None


@dataclass
class Seen:
    """The delivered events of a run and of the runs below it.

    version, index: the last event of the run; index _ALL when the version was delivered completely.
    offset: the gateway's offset after the last event, "" in a run without sub-agents.
    attached: version of the log when the current connection started to watch, 0 before the first.
        Events up to there are history, which other clients may have handled.
    _texts, _thoughts: the text and the reasoning that were delivered last, by run; "" is the run itself.
    _result: the result that was delivered last, None after a later event.
    """

    version: int = 0
    index: int = _ALL
    attached: int = 0
    offset: str = ""
    _texts: dict[str, _Text] = field(default_factory=dict, repr=False)
    _thoughts: dict[str, _Text] = field(default_factory=dict, repr=False)
    _result: bytes | None = field(default=None, repr=False)

    @staticmethod
    def after(position: int | str) -> "Seen":
        """Starts after a version that was seen in full, or after an event, by its token. Raises InvalidError
        for anything else."""
        if isinstance(position, int) and not isinstance(position, bool) and position >= 0:
            return Seen(position)
        if isinstance(position, str):
            place = _OFFSET.fullmatch(position)
            if place and (place[2] or place[3]):
                return Seen(int(place[1]), int(place[2] or _ALL), offset=position if place[3] else "")
        raise InvalidError(
            f"after: {position!r} is neither a version, such as 14, nor an event's token, such as '14-0'"
        )

    def ask(self, request: pb.WatchRunRequest) -> None:
        """Sets where a watch starts: by the offset, or by the version."""
        request.after = self.offset
        request.after_version = 0 if self.offset else self.resume

    @property
    def token(self) -> str:
        """What `after` takes to continue after the last event."""
        return self.offset or (str(self.version) if self.index == _ALL else f"{self.version}-{self.index}")

    @property
    def resume(self) -> int:
        """The version to resume after: the last one may contain more events."""
        return self.version if self.index == _ALL else max(self.version - 1, 0)

    def event(self, event: pb.Event) -> bool:
        """Records an event. Returns False if it was delivered before. One of a run below comes once,
        because its offset is resumed."""
        if event.run_id:
            self.offset = event.offset
            return True
        at = (event.version, int(event.id.rpartition("-")[2] or 0))
        if at <= (self.version, self.index):
            return False
        self.version, self.index = at
        self.offset, self._result = event.offset, None
        return True

    def delta(self, delta: pb.Delta) -> Delta | None:
        """Records a piece of text and returns the new part of it. None if nothing is new, or if text
        before it is missing."""
        at = _try_of(delta)
        new = self._texts.setdefault(delta.run_id, _Text()).piece(at, delta.offset, delta.text)
        return Delta(*at, *new, run_id=delta.run_id) if new else None

    def reasoning(self, delta: pb.Delta) -> ReasoningDelta | None:
        """Records a piece of reasoning and returns the new part of it, as `delta` does for text."""
        at = _try_of(delta)
        new = self._thoughts.setdefault(delta.run_id, _Text()).piece(at, delta.reasoning_offset, delta.reasoning)
        return ReasoningDelta(*at, *new, run_id=delta.run_id) if new else None

    def response(self, turn_number: int, text: str, run_id: str = "") -> Delta | None:
        """Records the complete text of a turn and returns the part that was not delivered piece by piece."""
        new = self._texts.setdefault(run_id, _Text()).whole(turn_number, text)
        return Delta(turn_number, 0, 0, *new, run_id=run_id) if new else None

    def reasoned(self, turn_number: int, text: str, run_id: str = "") -> ReasoningDelta | None:
        """Records the complete reasoning of a turn, as `response` does for the text."""
        new = self._thoughts.setdefault(run_id, _Text()).whole(turn_number, text)
        return ReasoningDelta(turn_number, 0, 0, *new, run_id=run_id) if new else None

    def result(self, result: pb.HarnessResult) -> bool:
        """Records a result. Returns False if the same result was delivered before."""
        raw = result.SerializeToString(deterministic=True)
        if raw == self._result:
            return False
        self._result = raw
        return True


def _try_of(delta: pb.Delta) -> _Try:
    return delta.turn_number, delta.attempt, getattr(delta, "try")


async def watch(connection: Connection, request: pb.WatchRunRequest, seen: Seen) -> AsyncGenerator[Watched, None]:
    """Yields the events of a run after those that were seen, each once, until the gateway ends the
    watch. A connection that breaks is reopened, for up to `patience` seconds each time.

    A result is yielded only if it is current: one that the run has left again is history, and its
    events contain it.
    """
    retry = Retry(connection.patience)
    while True:
        seen.ask(request)
        call = connection.stub.WatchRun(request, metadata=connection.metadata())
        attached = 0
        try:
            async for response in call:
                retry.reset()
                connection.answered = True
                update = response.update
                case = update.WhichOneof("update")
                if case == "attached":
                    attached = update.attached.version
                    seen.attached = attached
                elif case == "event" and seen.event(update.event):
                    yield update.event
                elif case == "delta" and update.delta.HasField("tool_output"):
                    output = update.delta.tool_output
                    yield ToolOutput(
                        update.delta.turn_number, output.call_id, output.offset, output.text, update.delta.run_id
                    )
                elif case == "delta" and update.delta.HasField("alert"):
                    alert, at = update.delta.alert, _try_of(update.delta)
                    yield Alert(
                        *at, alert.severity, alert.checkpoint, alert.issue, alert.suggestion, update.delta.run_id
                    )
                elif case == "delta":
                    for piece in (seen.reasoning(update.delta), seen.delta(update.delta)):
                        if piece is not None:
                            yield piece
                elif case == "result":
                    current = await _is_current(connection, request, seen, attached, update.result)
                    if current and seen.result(update.result):
                        yield update.result
            return
        except grpc.aio.AioRpcError as error:
            if not connection.may_pass(error) or not await retry.wait():
                raise from_rpc(error, connection.address) from None
        finally:
            call.cancel()


async def _is_current(
    connection: Connection, request: pb.WatchRunRequest, seen: Seen, attached: int, result: pb.HarnessResult
) -> bool:
    """Reports whether a result is the run's current one. After the newest version it is; before it, results
    are part of the history, so the gateway is queried."""
    if seen.version >= attached:
        return True
    question = pb.GetRunRequest(namespace=request.namespace, run_id=request.run_id)
    now = await connection.call(connection.stub.GetRun, question)
    return now.HasField("result") and now.result == result
