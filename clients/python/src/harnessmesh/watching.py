"""Watching a run over connections that break.

A gateway delivers strictly by version. `Seen` is what was delivered so far: it says where to go on,
and keeps what comes a second time from being yielded twice. `watch` is the shell around it.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TypeAlias

import grpc

from harnessmesh.connection import Again, Connection
from harnessmesh.errors import InvalidError, from_rpc, is_passing
from harnessmesh.events import Delta
from harnessmesh.gen import pb

#: Behind the last event of any version.
_ALL = 1 << 30

#: Turn, attempt and try that wrote a text.
_Try: TypeAlias = tuple[int, int, int]
#: What a watch yields.
Watched: TypeAlias = pb.Event | pb.HarnessResult | Delta


@dataclass
class Seen:
    """What was delivered of a run.

    version, index: the last event; index _ALL when the whole version was.
    attached: version of the log when the connection at hand began to watch, 0 before any did. What is
        up to there is history, of which others may have taken care.
    _try, _shown: the text that was delivered last, and what of it.
    _result: the rest that was delivered, None once something happened.
    """

    version: int = 0
    index: int = _ALL
    attached: int = 0
    _try: _Try = (0, 0, 0)
    _shown: bytes = b""
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

    def delta(self, delta: pb.Delta) -> Delta | None:
        """Takes a piece of text in, and returns what is new of it. None when nothing is, or something
        before it is missing."""
        at = (delta.turn_number, delta.attempt, getattr(delta, "try"))
        if at < self._try:
            return None
        rewinds = False
        if at > self._try:
            if delta.offset != 0:
                return None
            rewinds = at[0] == self._try[0] and self._shown != b""
            self._try, self._shown = at, b""
        if delta.offset > len(self._shown):
            return None
        return self._add(at, delta.text.encode()[len(self._shown) - delta.offset :], rewinds)

    def response(self, turn_number: int, text: str) -> Delta | None:
        """Takes the whole text of a turn in, and returns what of it was not delivered piece by piece."""
        if turn_number != self._try[0]:
            self._shown = b""
        whole, rewinds = text.encode(), False
        if not whole.startswith(self._shown):
            self._shown, rewinds = b"", True
        rest = self._add((turn_number, 0, 0), whole[len(self._shown) :], rewinds)
        self._try = (turn_number, _ALL, _ALL)  # what comes late of this turn is not new
        return rest

    def _add(self, at: _Try, new: bytes, rewinds: bool) -> Delta | None:
        offset = len(self._shown)
        self._shown += new
        return Delta(*at, offset=offset, text=new.decode(), rewinds=rewinds) if new else None

    def result(self, result: pb.HarnessResult) -> bool:
        """Takes a result in; False when the same rest was delivered before."""
        raw = result.SerializeToString(deterministic=True)
        if raw == self._result:
            return False
        self._result = raw
        return True


async def watch(connection: Connection, request: pb.WatchRunRequest, seen: Seen) -> AsyncGenerator[Watched, None]:
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
                    seen.attached = attached
                elif case == "event" and seen.event(update.event):
                    yield update.event
                elif case == "delta":
                    piece = seen.delta(update.delta)
                    if piece is not None:
                        yield piece
                elif case == "result":
                    stands = await _stands(connection, request, seen, attached, update.result)
                    if stands and seen.result(update.result):
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
