"""Watching a run over connections that break.

A gateway delivers strictly by version. `Seen` is what was delivered so far: it says where to go on,
and keeps what comes a second time from being yielded twice. `watch` is the shell around it.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import grpc

from harnessmesh.connection import Again, Connection
from harnessmesh.errors import InvalidError, from_rpc, is_passing
from harnessmesh.gen import pb

#: Behind the last event of any version.
_ALL = 1 << 30

_Try = tuple[int, int, int]


@dataclass
class Seen:
    """What was delivered of a run.

    version, index: the last event; index _ALL when the whole version was.
    attached: version of the log when the watch began, 0 before.
    """

    version: int = 0
    index: int = _ALL
    attached: int = 0
    _text: _Try = (0, 0, 0)
    _end: int = 0
    _result: bytes | None = field(default=None, repr=False)

    @staticmethod
    def after(position: int | str) -> "Seen":
        """Begins behind a version that was seen in full, or behind an event's id. An InvalidError for
        anything else."""
        if isinstance(position, int) and not isinstance(position, bool) and position >= 0:
            return Seen(position)
        if isinstance(position, str):
            version, _, index = position.partition("-")
            if version.isdecimal() and index.isdecimal():
                return Seen(int(version), int(index))
        raise InvalidError(f"after: {position!r} is neither a version, such as 14, nor an event's id, such as '14-0'")

    @property
    def resume(self) -> int:
        """The version to go on behind: the last one may hold more events."""
        return self.version if self.index == _ALL else max(self.version - 1, 0)

    def event(self, event: pb.Event) -> bool:
        """Takes an event in; False when it was delivered before."""
        at = (event.version, int(event.id.rpartition("-")[2] or 0))
        if at <= (self.version, self.index):
            return False
        self.version, self.index = at
        self._result = None
        return True

    def delta(self, delta: pb.Delta) -> tuple[str, bool] | None:
        """Takes a piece of text in: what is new of it, and whether it voids what was delivered of its
        turn before. None when there is nothing new, or something before it is missing."""
        at = (delta.turn_number, delta.attempt, getattr(delta, "try"))
        if at < self._text:
            return None
        rewinds = False
        if at > self._text:
            if delta.offset != 0:
                return None
            rewinds = at[0] == self._text[0] and self._end > 0
            self._text, self._end = at, 0
        if delta.offset > self._end:
            return None
        new = delta.text.encode()[self._end - delta.offset :]
        self._end += len(new)
        return (new.decode(), rewinds) if new else None

    def result(self, result: pb.HarnessResult) -> bool:
        """Takes a result in; False when the same rest was delivered before."""
        raw = result.SerializeToString(deterministic=True)
        if raw == self._result:
            return False
        self._result = raw
        return True


async def watch(
    connection: Connection, request: pb.WatchRunRequest, seen: Seen
) -> AsyncGenerator[pb.Event | pb.HarnessResult | tuple[pb.Delta, str, bool], None]:
    """Yields what happens in a run behind what was seen, each thing once, until the gateway says that
    the watch is over. A connection that breaks is taken up again, for `patience` seconds each time.

    A result is yielded only if the run rests like that now: one that it has left again is history, of
    which the events tell.
    """
    again = Again(connection.patience)
    while True:
        request.after_version = seen.resume
        call = connection.stub.WatchRun(request, metadata=connection.metadata())
        attached = 0
        try:
            async for response in call:
                again.reset()
                update = response.update
                case = update.WhichOneof("update")
                if case == "attached":
                    attached = update.attached.version
                    seen.attached = seen.attached or attached
                elif case == "event" and seen.event(update.event):
                    yield update.event
                elif case == "delta":
                    piece = seen.delta(update.delta)
                    if piece is not None:
                        yield update.delta, *piece
                elif case == "result" and await _stands(connection, request, seen, attached, update.result):
                    if seen.result(update.result):
                        yield update.result
            return
        except grpc.aio.AioRpcError as error:
            if not is_passing(error) or not await again.wait():
                raise from_rpc(error, connection.address) from None
        finally:
            call.cancel()


async def _stands(
    connection: Connection, request: pb.WatchRunRequest, seen: Seen, attached: int, result: pb.HarnessResult
) -> bool:
    """Says that a result is how the run stands. Behind the newest version it is; before, where results
    come along with the history, the run is asked."""
    if seen.version >= attached:
        return True
    question = pb.GetRunRequest(namespace=request.namespace, run_id=request.run_id)
    now = await connection.call(connection.stub.GetRun, question)
    return now.HasField("result") and now.result == result
