"""A due schedule and the present instant: what becomes of the slot, and which slot is next (DSP-7, DSP-8, SCH-5).

All instants are integers of microseconds (this runs once for each claimed schedule). Pure: the dispatcher feeds it and
writes down what it says.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol

from gnomon.domain.instants import SECOND
from gnomon.domain.occurrence import Disposition, Reason
from gnomon.domain.schedule import CatchUp, Overlap

GRACE_SECONDS = (60, 3_600)  # SCH-14: half the distance to the next slot, but within these
_GRACE_US = (GRACE_SECONDS[0] * SECOND, GRACE_SECONDS[1] * SECOND)
ON_TIME_SECONDS = 60  # with catch_up none, a slot this late still counts as on time: two ticks


class Walk(Protocol):
    """The part of a compiled cadence that the decision needs."""

    def next_after(self, micros: int, /) -> int | None:
        """The first slot strictly after."""
        ...

    def latest_at(self, micros: int, /) -> int | None:
        """The last slot at or before."""
        ...

    def count_between(self, start: int, end: int, /) -> tuple[int, int, int] | None:
        """The first, the last and the number of the slots in [start, end)."""
        ...


class Due(NamedTuple):
    """A claimed schedule, reduced to what decides. ``recorded_until`` is the newest slot already in the ledger."""

    walk: Walk
    next_fire_at: int
    now: int
    starts_at: int | None
    ends_at: int | None
    runs_left: int | None
    in_flight: bool
    waiting: bool  # a run of a slot before this one already waits for the one in flight
    recorded_until: int | None
    overlap: Overlap
    catch_up: CatchUp
    misfire_grace_seconds: int | None


class Start(StrEnum):
    """How a fired slot's run enters the queue."""

    AT_ONCE = "at_once"
    AFTER_RUNNING = "after_running"  # queue_one: waits for the run in flight
    CANCEL_RUNNING = "cancel_running"  # the run in flight is asked to stop, this one waits for it


@dataclass(slots=True)  # not frozen: one is made for each slot, and freezing triples the cost
class Slot:
    """The one slot that this scan records; ``older`` is (first, last, count) of the missed ones before it."""

    nominal: int
    disposition: Disposition
    reason: Reason | None
    start: Start
    older: tuple[int, int, int] | None


@dataclass(slots=True)  # not frozen: one is made for each slot, and freezing triples the cost
class Decision:
    """What to write: at most one slot, the next instant, and why the schedule is finished where it is."""

    slot: Slot | None
    next_fire_at: int | None
    completed: str | None


def grace_micros(nominal: int, following: int | None, misfire_grace_seconds: int | None) -> int:
    """How late a slot may be claimed and still fire: as set, or half the distance to the next slot within bounds."""
    if misfire_grace_seconds is not None:
        return misfire_grace_seconds * SECOND
    low, high = _GRACE_US
    half = high if following is None else (following - nominal) // 2
    return low if half < low else min(half, high)


def decide(due: Due) -> Decision:
    """What becomes of a schedule whose ``next_fire_at`` has come.

    The slot comes from the cadence, never from the stored instant alone: a stored instant that is no slot (edited by
    hand, written under a clock that lied) realigns the schedule and fires nothing.
    """
    if due.runs_left is not None and due.runs_left <= 0:
        return Decision(None, None, "max_runs reached")
    if due.starts_at is not None and due.next_fire_at < due.starts_at:
        return _onward(due, None, due.starts_at - 1)
    newest = due.walk.latest_at(due.now if due.ends_at is None else min(due.now, due.ends_at))
    first = _first(due)
    if newest is None or newest < first:
        return _past_the_end(due) if due.ends_at is not None else _onward(due, None, due.now)
    following = due.walk.next_after(newest)
    older = None if first == newest else due.walk.count_between(first, newest)
    slot = _judge(due, newest, following, older)
    fired = slot.disposition is Disposition.FIRED
    if fired and due.runs_left == 1:
        return Decision(slot, None, "max_runs reached")
    return _next(due, slot, following)


def refused(due: Due, decision: Decision, reason: Reason) -> Decision:
    """The decision once a gate has refused its slot: skipped for ``reason``, which uses up no run (SCH-9)."""
    if decision.slot is None or decision.slot.disposition is not Disposition.FIRED:
        return decision
    skipped = replace(decision.slot, disposition=Disposition.SKIPPED, reason=reason, start=Start.AT_ONCE)
    return replace(decide(due._replace(runs_left=None)), slot=skipped)


def _first(due: Due) -> int:
    """The earliest instant this scan answers for: nothing that the ledger already holds."""
    recorded = due.recorded_until
    if recorded is None or recorded > due.now:
        return due.next_fire_at
    return max(due.next_fire_at, recorded + 1)


def _judge(due: Due, nominal: int, following: int | None, older: tuple[int, int, int] | None) -> Slot:
    allowed = grace_micros(nominal, following, due.misfire_grace_seconds)
    if due.catch_up is CatchUp.NONE:
        allowed = min(allowed, ON_TIME_SECONDS * SECOND)
    if due.now - nominal > allowed:
        return Slot(nominal, Disposition.MISSED, Reason.MISSED, Start.AT_ONCE, older)
    if not due.in_flight or due.overlap is Overlap.ALLOW:
        return Slot(nominal, Disposition.FIRED, None, Start.AT_ONCE, older)
    if due.overlap is Overlap.SKIP or due.waiting:
        return Slot(nominal, Disposition.SKIPPED, Reason.ALREADY_RUNNING, Start.AT_ONCE, older)
    start = Start.AFTER_RUNNING if due.overlap is Overlap.QUEUE_ONE else Start.CANCEL_RUNNING
    return Slot(nominal, Disposition.FIRED, None, start, older)


def _past_the_end(due: Due) -> Decision:
    """No slot is left inside the window; one that was stored beyond it is recorded as skipped."""
    stale = due.walk.latest_at(due.next_fire_at)
    if due.ends_at is not None and stale == due.next_fire_at and due.next_fire_at > due.ends_at:
        slot = Slot(stale, Disposition.SKIPPED, Reason.OUTSIDE_WINDOW, Start.AT_ONCE, None)
        return Decision(slot, None, "the window is over")
    return _onward(due, None, due.now)


def _onward(due: Due, slot: Slot | None, from_micros: int) -> Decision:
    return _next(due, slot, due.walk.next_after(from_micros))


def _next(due: Due, slot: Slot | None, following: int | None) -> Decision:
    if following is None:
        return Decision(slot, None, "no slot is left")
    if due.ends_at is not None and following > due.ends_at:
        return Decision(slot, None, "the window is over")
    return Decision(slot, following, None)
