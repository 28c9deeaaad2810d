"""One claimed schedule turned into the rows that its scan writes: the ledger's, the run's, the audit's.

Pure over its arguments; the dispatcher gathers the plans of a batch and writes them in a few statements.
"""

from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from gnomon.cadence import Cadence, Compiled, jitter
from gnomon.domain import misfire
from gnomon.domain.audit import Action
from gnomon.domain.grant import Grant
from gnomon.domain.ids import Kind, sibling
from gnomon.domain.misfire import Decision, Due, Slot, Start
from gnomon.domain.occurrence import Disposition, Reason
from gnomon.domain.run import SCHEDULED, Trigger
from gnomon.domain.schedule import CatchUp, Overlap, ScheduleStatus, SessionMode
from gnomon.services import slot_rows
from gnomon.services.gates import Verdict
from gnomon.stores import slots
from gnomon.stores.audit import NewEntry, new_entry
from gnomon.stores.run_rows import NewRun

ACTOR = slot_rows.ACTOR
# Looked up instead of called: this is done for each slot of each batch.
_OVERLAPS = {overlap.value: overlap for overlap in Overlap}
_ALLOW, _FIXED = Overlap.ALLOW.value, SessionMode.FIXED.value
_CATCH_UPS = {catch_up.value: catch_up for catch_up in CatchUp}


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the schedule leaves ``active`` with this scan."""

    status: ScheduleStatus
    reason: str
    action: Action
    error: str | None = None  # where its slots can't be computed at all


class Taken(NamedTuple):
    """What the grant of a run that is born claimed is made of, after the commit and off the writing thread."""

    due: slots.Due
    run: NewRun
    verdict: Verdict

    def grant(self, taken_at: float) -> Grant:
        """The grant; ``taken_at`` is the monotonic instant before the claim was asked for."""
        return slot_rows.grant(self.due, self.run, self.verdict, taken_at=taken_at)


@dataclass(slots=True)  # not frozen: one is made for each slot of each batch, and freezing doubles the cost
class Plan:
    """What one scan writes for one schedule."""

    schedule_id: str
    entry: slots.Entry | None
    run: NewRun | None
    taken: Taken | None
    advance: slots.Advance
    audit: tuple[NewEntry, ...]
    cancel_run_id: str | None = None
    stop: Stop | None = None

    @property
    def goes_on(self) -> bool:
        """Whether more is to be written than the slot itself."""
        return self.cancel_run_id is not None or self.stop is not None

    def lag_us(self) -> int:
        """How late the slot was seen that came due."""
        return self.advance.seen_at - self.advance.claimed_at

    def outcome(self) -> tuple[str, str]:
        """Disposition and reason of the slot, for the metrics."""
        assert self.entry is not None
        return self.entry.disposition, self.entry.reason or ""

    def without_slot(self) -> "Plan":
        """The plan of a slot that the ledger holds already: the schedule moves on, nothing starts (DSP-6).

        It is not completed by a run that was not made: the next scan decides anew, from what is recorded.
        """
        advance = self.advance._replace(
            fired=0, fired_at=None, in_flight_run_id=None, waiting_run_id=None, granted=0
        )
        gone = self.stop is not None and self.stop.status is ScheduleStatus.DISABLED
        return replace(
            self,
            entry=None,
            run=None,
            taken=None,
            advance=advance,
            audit=(),
            cancel_run_id=None,
            stop=self.stop if gone else None,
        )


@lru_cache(maxsize=20_000)
def _walk(cadence: str, anchor_at: int, holidays: frozenset[date]) -> Compiled:
    return Cadence.from_stored(cadence).compile(anchor_at, holidays)


def plan_slot(
    due: slots.Due,
    *,
    verdict: Verdict,
    holidays: frozenset[date],
    run_id: str,
    owner: str | None,
    claim_id: str,
) -> Plan:
    """What becomes of one due schedule. ``owner`` claims the run at its birth, ``None`` leaves it to the queue."""
    try:
        walk = _walk(due.cadence, due.anchor_at, holidays)
        seen = _seen(due, walk)
        decision = _decide(seen)
        if verdict.reason is not None:
            decision = misfire.refused(seen, decision, verdict.reason)
    except Exception as error:  # whatever a stored rule does, it stops no other schedule (DSP-9a)
        return _set_aside(due, f"{type(error).__name__}: {error}")
    slot, stop = decision.slot, _stop(decision)
    if slot is not None and slot.reason is Reason.TARGET_GONE:
        stop = Stop(ScheduleStatus.DISABLED, "its target was deleted", Action.DISABLE)
    if slot is None or slot.disposition is not Disposition.FIRED:
        return _unfired(due, decision, stop, verdict)
    return _fired(due, decision, slot, stop, verdict, run_id, owner, claim_id, holidays)


def _set_aside(due: slots.Due, error: str) -> Plan:
    stop = Stop(ScheduleStatus.ERROR, "its next slot can't be computed", Action.SET_ASIDE, error)
    return Plan(
        schedule_id=due.id,
        entry=None,
        run=None,
        taken=None,
        advance=slot_rows.advance(due, Decision(None, None, None)),
        audit=(),
        stop=stop,
    )


# Schedules of one cadence come due together, and one look sees them all at one instant.
_decide = lru_cache(maxsize=1_000)(misfire.decide)


def _seen(due: slots.Due, walk: Compiled) -> Due:
    max_runs = due.max_runs
    return Due(
        walk,
        due.next_fire_at,
        due.now,
        due.starts_at,
        due.ends_at,
        None if max_runs is None else max_runs - due.run_count,
        due.unfinished_run_id is not None,
        due.waiting_run_id is not None,
        due.recorded_until,
        _OVERLAPS[due.overlap],
        _CATCH_UPS[due.catch_up],
        due.misfire_grace_seconds,
    )


def _stop(decision: Decision) -> Stop | None:
    if decision.completed is None:
        return None
    return Stop(ScheduleStatus.COMPLETED, decision.completed, Action.COMPLETE)


def _unfired(due: slots.Due, decision: Decision, stop: Stop | None, verdict: Verdict) -> Plan:
    slot = decision.slot
    entries: tuple[NewEntry, ...] = ()
    if slot is not None:
        extra = verdict.detail if slot.reason is verdict.reason else None
        entries = (new_entry(ACTOR, Action.SKIP, "schedule", due.id, None, slot_rows.detail(slot, extra)),)
    return Plan(
        schedule_id=due.id,
        entry=None if slot is None else slot_rows.entry(due, slot, None, None),
        run=None,
        taken=None,
        advance=slot_rows.advance(due, decision),
        audit=entries,
        stop=stop,
    )


def _fired(  # noqa: PLR0917 - the parts of one decision, taken apart once
    due: slots.Due,
    decision: Decision,
    slot: Slot,
    stop: Stop | None,
    verdict: Verdict,
    run_id: str,
    owner: str | None,
    claim_id: str,
    holidays: frozenset[date],
) -> Plan:
    delay = 0
    if due.jitter_seconds:
        delay = jitter(due.id, slot.nominal, due.jitter_seconds, decision.next_fire_at)
    waits = slot.start is not Start.AT_ONCE
    scheduled_for = slot.nominal + delay
    if waits or scheduled_for > due.now:
        owner = None
    session_id = sibling(Kind.SESSION, run_id)
    if due.session_mode == _FIXED and due.session_id is not None:
        session_id = due.session_id
    fence = due.fence + 1 if owner is not None else 0
    run = NewRun(  # by place: by name it takes twice as long, and is done for each slot
        run_id,
        Trigger.SCHEDULE,
        SCHEDULED,
        due.target_kind,
        due.target_id,
        due.id,
        due.revision,
        slot.nominal,
        session_id,
        slot_rows.resolved(due.query, due, slot, holidays),
        scheduled_for,
        None if waits else scheduled_for,
        due.lease_seconds,
        due.unfinished_run_id if waits else None,
        due.overlap == _ALLOW,
        owner,
        claim_id if owner is not None else None,
        fence,
        dedup_key=slot_rows.dedup_key(due, slot),
    )
    advance = slot_rows.advance(
        due,
        decision,
        slot.nominal,
        None if waits else run_id,
        run_id if waits else None,
        int(owner is not None),
    )
    return Plan(
        due.id,
        slot_rows.entry(due, slot, run_id, session_id),
        run,
        None if owner is None else Taken(due, run, verdict),
        advance,
        slot_rows.entries(due, slot, run),
        due.unfinished_run_id if slot.start is Start.CANCEL_RUNNING else None,
        stop,
    )
