"""The decision against a plain list of slots: nothing lost, nothing twice, always onward (DSP-7, DSP-9, SCH-5)."""

from dataclasses import dataclass
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from gnomon.domain.misfire import Due, decide
from gnomon.domain.occurrence import Disposition
from gnomon.domain.schedule import CatchUp, Overlap
from support.slots import ListedSlots

S = 1_000_000
INSTANTS = st.integers(min_value=0, max_value=200).map(lambda n: n * 30 * S)


@st.composite
def dues(draw: st.DrawFn) -> Due:
    """Irregular slots, and a stored state that may be anything an edit, a crash or a lying clock leaves behind."""
    slots = draw(st.lists(INSTANTS, min_size=0, max_size=25))
    now = draw(INSTANTS) + draw(st.integers(0, 29)) * S
    stored = draw(st.one_of(st.sampled_from(slots) if slots else INSTANTS, INSTANTS))
    window = sorted(draw(st.tuples(INSTANTS, INSTANTS)))
    maybe: Any = draw(st.tuples(*[st.booleans()] * 4))
    return Due(
        walk=ListedSlots(slots),
        next_fire_at=min(stored, now),
        now=now,
        starts_at=window[0] if maybe[0] else None,
        ends_at=window[1] if maybe[1] else None,
        runs_left=draw(st.integers(0, 3)) if maybe[2] else None,
        in_flight=draw(st.booleans()),
        waiting=draw(st.booleans()),
        recorded_until=draw(INSTANTS) if maybe[3] else None,
        overlap=draw(st.sampled_from(list(Overlap))),
        catch_up=draw(st.sampled_from(list(CatchUp))),
        misfire_grace_seconds=draw(st.one_of(st.none(), st.integers(1, 4_000))),
    )


@dataclass
class Answered:
    """The brute-force oracle: which slots one scan answers for, by looking at each of them."""

    slots: list[int]

    @classmethod
    def by(cls, due: Due, slots: list[int]) -> "Answered":
        if due.runs_left is not None and due.runs_left <= 0:
            return cls([])
        if due.starts_at is not None and due.next_fire_at < due.starts_at:
            return cls([])
        ledger_is_sane = due.recorded_until is not None and due.recorded_until <= due.now
        return cls(
            [
                slot
                for slot in slots
                if due.next_fire_at <= slot <= due.now
                and (due.ends_at is None or slot <= due.ends_at)
                and not (ledger_is_sane and due.recorded_until is not None and slot <= due.recorded_until)
            ]
        )


def slots_of(due: Due) -> list[int]:
    assert isinstance(due.walk, ListedSlots)
    return due.walk.slots


@given(dues())
@settings(max_examples=400, deadline=None)
def test_each_slot_between_the_stored_instant_and_now_is_answered_for_exactly_once(due: Due) -> None:
    """DSP-7, DSP-9: one record, whose range and nominal instant together are the missed slots, each once."""
    expected = Answered.by(due, slots_of(due)).slots
    slot = decide(due).slot
    if not expected:
        event("nothing to answer for")
        beyond = due.ends_at is not None and slot is not None and slot.nominal > due.ends_at
        assert slot is None or (beyond and slot.disposition is Disposition.SKIPPED and slot.older is None)
        return
    assert slot is not None
    assert slot.nominal == expected[-1]
    older = expected[:-1]
    event(f"{min(len(older), 3)} older slots")
    assert slot.older == ((older[0], older[-1], len(older)) if older else None)


@given(dues())
@settings(max_examples=400, deadline=None)
def test_the_next_instant_is_a_slot_inside_the_window_strictly_after_now(due: Due) -> None:
    """DSP-7, SCH-5: no slot between now and the next instant is passed over; at the end there is none, and a reason.

    Casebook mis-14, mis-17, mis-26: however late, it lies ahead, and is a slot.
    """
    decision = decide(due)
    assert (decision.next_fire_at is None) == (decision.completed is not None)
    if decision.next_fire_at is None:
        return
    realigned = due.starts_at is not None and due.next_fire_at < due.starts_at
    assert due.starts_at is not None or not realigned
    start = (due.starts_at or 0) - 1 if realigned else due.now
    ahead = [slot for slot in slots_of(due) if slot > start]
    assert decision.next_fire_at == ahead[0]
    assert due.ends_at is None or decision.next_fire_at <= due.ends_at


@given(dues())
@settings(max_examples=400, deadline=None)
def test_it_completes_only_where_nothing_could_ever_fire_again(due: Due) -> None:
    """SCH-5."""
    decision = decide(due)
    if decision.completed is None:
        return
    left = due.runs_left
    if left is not None and decision.slot is not None and decision.slot.disposition is Disposition.FIRED:
        left -= 1
    start = due.now
    if due.starts_at is not None:
        start = max(start, due.starts_at - 1)
    ahead = [slot for slot in slots_of(due) if slot > start and (due.ends_at is None or slot <= due.ends_at)]
    assert left == 0 or not ahead


@given(dues())
@settings(max_examples=300, deadline=None)
def test_a_repeated_scan_records_nothing_and_agrees_on_what_is_next(due: Due) -> None:
    """DSP-6: a crash between two ticks, or a stored instant set back by hand, makes no second occurrence."""
    first = decide(due)
    if first.slot is None or (due.ends_at is not None and first.slot.nominal > due.ends_at):
        return
    left = due.runs_left
    if left is not None and first.slot.disposition is Disposition.FIRED:
        left -= 1
    again = decide(due._replace(recorded_until=first.slot.nominal, runs_left=left))
    assert again.slot is None
    assert again.next_fire_at == first.next_fire_at


@given(dues())
@settings(max_examples=300, deadline=None)
def test_only_a_slot_inside_its_grace_fires(due: Due) -> None:
    """DSP-7, SCH-14: the bound is worked out again from the plain list."""
    slot = decide(due).slot
    if slot is None or slot.disposition is not Disposition.FIRED:
        return
    following = [other for other in slots_of(due) if other > slot.nominal]
    if due.misfire_grace_seconds is not None:
        grace = due.misfire_grace_seconds * S
    elif following:
        grace = sorted([60 * S, (following[0] - slot.nominal) // 2, 3_600 * S])[1]
    else:
        grace = 3_600 * S
    if due.catch_up is CatchUp.NONE:
        grace = min(grace, 60 * S)
    assert due.now - slot.nominal <= grace
    assert not (due.in_flight and due.overlap is Overlap.SKIP)
