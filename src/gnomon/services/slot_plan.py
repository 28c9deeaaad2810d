"""One claimed schedule turned into the rows that its scan writes: the ledger's, the run's, the audit's.

Pure over its arguments; the dispatcher gathers the plans of a batch and writes them in a few statements.
"""

from collections.abc import Mapping
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
from gnomon.stores.audit import NewEntry
from gnomon.stores.database import Row, Value
from gnomon.stores.runs import NewRun

ACTOR = slot_rows.ACTOR
# Looked up instead of called: this is done for each slot of each batch.
_OVERLAPS = {overlap.value: overlap for overlap in Overlap}
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

    row: Row
    run: NewRun
    verdict: Verdict

    def grant(self, taken_at: float) -> Grant:
        """The grant; ``taken_at`` is the monotonic instant before the claim was asked for."""
        return slot_rows.grant(self.row, self.run, self.verdict, taken_at=taken_at)


@dataclass(slots=True)  # not frozen: one is made for each slot of each batch, and freezing doubles the cost
class Plan:
    """What one scan writes for one schedule."""

    schedule_id: str
    occurrence: Mapping[str, Value] | None
    run: NewRun | None
    taken: Taken | None
    advance: Mapping[str, Value]
    audit: tuple[NewEntry, ...]
    cancel_run_id: str | None = None
    stop: Stop | None = None

    @property
    def goes_on(self) -> bool:
        """Whether more is to be written than the slot itself."""
        return self.cancel_run_id is not None or self.stop is not None

    def lag_us(self) -> int:
        """How late the slot was seen that came due."""
        seen_at, due_at = self.advance["seen_at"], self.advance["claimed_at"]
        assert isinstance(seen_at, int)
        assert isinstance(due_at, int)
        return seen_at - due_at

    def outcome(self) -> tuple[str, str]:
        """Disposition and reason of the slot, for the metrics."""
        assert self.occurrence is not None
        return str(self.occurrence["disposition"]), str(self.occurrence["reason"] or "")

    def without_slot(self) -> "Plan":
        """The plan of a slot that the ledger holds already: the schedule moves on, nothing starts (DSP-6).

        It is not completed by a run that was not made: the next scan decides anew, from what is recorded.
        """
        advance = {
            **self.advance,
            "fired": 0,
            "fired_at": None,
            "in_flight_run_id": None,
            "waiting_run_id": None,
            "granted": 0,
        }
        gone = self.stop is not None and self.stop.status is ScheduleStatus.DISABLED
        return replace(
            self,
            occurrence=None,
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
    row: Row,
    *,
    verdict: Verdict,
    holidays: frozenset[date],
    run_id: str,
    owner: str | None,
    claim_id: str,
) -> Plan:
    """What becomes of one due schedule. ``owner`` claims the run at its birth, ``None`` leaves it to the queue."""
    try:
        walk = _walk(row["cadence"], row["anchor_at"], holidays)
        due = _due(row, walk)
        decision = misfire.decide(due)
        if verdict.reason is not None:
            decision = misfire.refused(due, decision, verdict.reason)
    except Exception as error:  # whatever a stored rule does, it stops no other schedule (DSP-9a)
        return _set_aside(row, f"{type(error).__name__}: {error}")
    slot, stop = decision.slot, _stop(decision)
    if slot is not None and slot.reason is Reason.TARGET_GONE:
        stop = Stop(ScheduleStatus.DISABLED, "its target was deleted", Action.DISABLE)
    if slot is None or slot.disposition is not Disposition.FIRED:
        return _unfired(row, decision, stop, verdict)
    return _fired(row, decision, slot, stop, verdict, run_id, owner, claim_id, holidays)


def _set_aside(row: Row, error: str) -> Plan:
    stop = Stop(ScheduleStatus.ERROR, "its next slot can't be computed", Action.SET_ASIDE, error)
    return Plan(
        schedule_id=row["id"],
        occurrence=None,
        run=None,
        taken=None,
        advance=slot_rows.advance(row, Decision(None, None, None)),
        audit=(),
        stop=stop,
    )


def _due(row: Row, walk: Compiled) -> Due:
    max_runs = row["max_runs"]
    return Due(
        walk=walk,
        next_fire_at=row["next_fire_at"],
        now=row["now"],
        starts_at=row["starts_at"],
        ends_at=row["ends_at"],
        runs_left=None if max_runs is None else max_runs - row["run_count"],
        in_flight=row["in_flight_run_id"] is not None,
        waiting=row["waiting_run_id"] is not None,
        recorded_until=row["recorded_until"],
        overlap=_OVERLAPS[row["overlap"]],
        catch_up=_CATCH_UPS[row["catch_up"]],
        misfire_grace_seconds=row["misfire_grace_seconds"],
    )


def _stop(decision: Decision) -> Stop | None:
    if decision.completed is None:
        return None
    return Stop(ScheduleStatus.COMPLETED, decision.completed, Action.COMPLETE)


def _unfired(row: Row, decision: Decision, stop: Stop | None, verdict: Verdict) -> Plan:
    slot = decision.slot
    entries: tuple[NewEntry, ...] = ()
    if slot is not None:
        extra = verdict.detail if slot.reason is verdict.reason else None
        entries = (NewEntry(ACTOR, Action.SKIP, "schedule", row["id"], None, slot_rows.detail(slot, extra)),)
    return Plan(
        schedule_id=row["id"],
        occurrence=None if slot is None else slot_rows.occurrence(row, slot, None, None),
        run=None,
        taken=None,
        advance=slot_rows.advance(row, decision),
        audit=entries,
        stop=stop,
    )


def _fired(  # noqa: PLR0917 - the parts of one decision, taken apart once
    row: Row,
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
    if row["jitter_seconds"]:
        delay = jitter(row["id"], slot.nominal, row["jitter_seconds"], decision.next_fire_at)
    waits = slot.start is not Start.AT_ONCE
    scheduled_for = slot.nominal + delay
    if waits or scheduled_for > row["now"]:
        owner = None
    fixed = row["session_mode"] == SessionMode.FIXED
    session_id = row["session_id"] if fixed else sibling(Kind.SESSION, run_id)
    fence = row["fence"] + 1 if owner is not None else 0
    run = NewRun(
        id=run_id,
        trigger=Trigger.SCHEDULE,
        priority=SCHEDULED,
        target_kind=row["target_kind"],
        target_id=row["target_id"],
        schedule_id=row["id"],
        revision=row["revision"],
        nominal_fire_at=slot.nominal,
        session_id=session_id,
        query=slot_rows.resolved(row["query"], row, slot, holidays),
        scheduled_for=scheduled_for,
        claimable_at=None if waits else scheduled_for,
        lease_seconds=row["lease_seconds"],
        waits_for=row["in_flight_run_id"] if waits else None,
        parallel=row["overlap"] == Overlap.ALLOW,
        owner=owner,
        claim_id=claim_id if owner is not None else None,
        fence=fence,
        dedup_key=slot_rows.dedup_key(row, slot),
    )
    advance = slot_rows.advance(row, decision) | {
        "fired_at": slot.nominal,
        "fired": 1,
        "waiting_run_id" if waits else "in_flight_run_id": run_id,
        "granted": int(owner is not None),
    }
    return Plan(
        schedule_id=row["id"],
        occurrence=slot_rows.occurrence(row, slot, run_id, session_id),
        run=run,
        taken=None if owner is None else Taken(row, run, verdict),
        advance=advance,
        audit=slot_rows.entries(row, slot, run),
        cancel_run_id=row["in_flight_run_id"] if slot.start is Start.CANCEL_RUNNING else None,
        stop=stop,
    )
