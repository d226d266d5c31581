"""The events that `Seen` passes on, without a gateway."""

import random
from typing import Any

from harnessmesh import Delta, ReasoningDelta, pb
from harnessmesh.watching import Seen


def delta(turn: int, attempt: int, try_number: int, offset: int, text: str) -> pb.Delta:
    by: dict[str, Any] = {"turn_number": turn, "attempt": attempt, "try": try_number}
    return pb.Delta(offset=offset, text=text, **by)


def test_a_watch_goes_on_behind_the_version_before_the_last_event() -> None:
    seen = Seen.after(7)
    assert seen.resume == 7
    assert seen.event(pb.Event(id="9-0", version=9))
    assert seen.resume == 8
    assert not seen.event(pb.Event(id="9-0", version=9))
    assert seen.event(pb.Event(id="9-1", version=9))
    assert Seen.after("9-1").resume == 8
    assert not Seen.after("9-1").event(pb.Event(id="9-1", version=9))
    assert Seen.after("0-0").resume == 0


def test_every_break_of_a_stream_leaves_each_event_delivered_once() -> None:
    stored = [(version, index) for version in range(1, 12) for index in range(version % 4)]
    chance = random.Random(7)
    for _ in range(200):
        seen = Seen.after(0)
        delivered: list[tuple[int, int]] = []
        while len(delivered) < len(stored):
            behind = [at for at in stored if at[0] > seen.resume]
            for version, index in behind[: chance.randint(0, len(behind))]:
                if seen.event(pb.Event(id=f"{version}-{index}", version=version)):
                    delivered.append((version, index))
        assert delivered == stored


def test_text_comes_once_and_begins_anew_with_a_later_try() -> None:
    seen = Seen.after(0)
    assert seen.delta(delta(1, 1, 1, 0, "Grüße ")) == Delta(1, 1, 1, 0, "Grüße ")
    assert seen.delta(delta(1, 1, 1, 0, "Grüße ")) is None
    assert seen.delta(delta(1, 1, 1, 0, "Grüße aus")) == Delta(1, 1, 1, 8, "aus")
    assert seen.delta(delta(1, 1, 1, 40, "nach einer Lücke")) is None
    assert seen.delta(delta(1, 1, 2, 5, "mitten im zweiten Versuch")) is None
    assert seen.delta(delta(1, 1, 2, 0, "Noch ")) == Delta(1, 1, 2, 0, "Noch ", rewinds=True)
    assert seen.delta(delta(1, 1, 1, 11, " Oslo")) is None
    assert seen.delta(delta(1, 2, 1, 0, "einmal")) == Delta(1, 2, 1, 0, "einmal", rewinds=True)
    assert seen.delta(delta(2, 1, 1, 0, "Danach")) == Delta(2, 1, 1, 0, "Danach")


def test_the_pieces_of_a_turn_add_up_to_its_response() -> None:
    seen = Seen.after(0)
    assert seen.response(1, "Nothing was seen.") == Delta(1, 0, 0, 0, "Nothing was seen.")
    assert seen.delta(delta(1, 1, 1, 0, "Nothing")) is None
    assert seen.delta(delta(2, 1, 1, 0, "The be")) == Delta(2, 1, 1, 0, "The be")
    assert seen.response(2, "The beginning was seen.") == Delta(2, 0, 0, 6, "ginning was seen.")
    assert seen.delta(delta(3, 1, 1, 0, "All of it.")) == Delta(3, 1, 1, 0, "All of it.")
    assert seen.response(3, "All of it.") is None
    assert seen.delta(delta(4, 1, 1, 0, "One try")) == Delta(4, 1, 1, 0, "One try")
    assert seen.response(4, "Another") == Delta(4, 0, 0, 0, "Another", rewinds=True)


def thought(turn: int, attempt: int, try_number: int, offset: int, reasoning: str) -> pb.Delta:
    by: dict[str, Any] = {"turn_number": turn, "attempt": attempt, "try": try_number}
    return pb.Delta(reasoning_offset=offset, reasoning=reasoning, **by)


def test_reasoning_and_text_are_counted_separately() -> None:
    seen = Seen.after(0)
    assert seen.reasoning(thought(1, 1, 1, 0, "Grüße ")) == ReasoningDelta(1, 1, 1, 0, "Grüße ")
    assert seen.delta(thought(1, 1, 1, 0, "Grüße ")) is None
    assert seen.reasoning(delta(1, 1, 1, 0, "Yes")) is None
    assert seen.delta(delta(1, 1, 1, 0, "Yes")) == Delta(1, 1, 1, 0, "Yes")
    assert seen.reasoning(thought(1, 1, 1, 0, "Grüße ")) is None
    assert seen.reasoning(thought(1, 1, 1, 40, "nach einer Lücke")) is None
    assert seen.delta(delta(1, 1, 1, 3, ".")) == Delta(1, 1, 1, 3, ".")
    assert seen.reasoning(thought(1, 1, 2, 0, "Noch")) == ReasoningDelta(1, 1, 2, 0, "Noch", rewinds=True)
    assert seen.delta(delta(1, 1, 2, 0, "No.")) == Delta(1, 1, 2, 0, "No.", rewinds=True)
    assert seen.reasoned(1, "Noch etwas") == ReasoningDelta(1, 0, 0, 4, " etwas")
    assert seen.response(1, "No.") is None
    assert seen.reasoning(thought(1, 1, 2, 4, " etwas")) is None
    assert seen.reasoned(2, "Not streamed") == ReasoningDelta(2, 0, 0, 0, "Not streamed")
    assert seen.reasoned(3, "") is None
    both = thought(4, 1, 1, 0, "hm")
    both.text = "ja"
    assert seen.reasoning(both) == ReasoningDelta(4, 1, 1, 0, "hm")
    assert seen.delta(both) == Delta(4, 1, 1, 0, "ja")


def test_a_result_that_is_told_again_is_not_new_until_something_happens() -> None:
    seen, parked = Seen.after(0), pb.HarnessResult(status=pb.RUN_STATUS_PARKED)
    assert seen.result(parked)
    assert not seen.result(parked)
    assert seen.event(pb.Event(id="3-0", version=3))
    assert seen.result(parked)


def test_a_watch_of_a_tree_goes_on_with_the_offset_and_counts_the_texts_of_each_run() -> None:
    seen = Seen.after("5-1~0.6-0.3-1")
    request = pb.WatchRunRequest()
    seen.ask(request)
    assert (request.after, request.after_version, seen.token) == ("5-1~0.6-0.3-1", 0, "5-1~0.6-0.3-1")
    assert seen.event(pb.Event(id="a-1/3-2", version=3, run_id="a-1", offset="5-1~0.6-0.3-2"))
    assert (seen.version, seen.token) == (5, "5-1~0.6-0.3-2")
    assert not seen.event(pb.Event(id="5-1", version=5, offset="5-1"))
    assert seen.event(pb.Event(id="6-0", version=6))
    seen.ask(request)
    assert (request.after, request.after_version, seen.token) == ("", 5, "6-0")
    below = delta(1, 1, 1, 0, "Below")
    below.run_id = "a-1"
    assert seen.delta(delta(1, 1, 1, 0, "Above")) == Delta(1, 1, 1, 0, "Above")
    assert seen.delta(below) == Delta(1, 1, 1, 0, "Below", run_id="a-1")
    assert seen.response(1, "Above") is None
    assert seen.response(1, "Below.", "a-1") == Delta(1, 0, 0, 5, ".", run_id="a-1")
