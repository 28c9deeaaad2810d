"""The rows that one decided slot is written as: the ledger's, the schedule's, the audit's, and the grant of its run.

Pure over their arguments; which of them a scan writes is ``slot_plan``'s affair.
"""

from datetime import date
from functools import lru_cache

from gnomon.cadence import Cadence, preview
from gnomon.domain import dedup, placeholders
from gnomon.domain.audit import Action
from gnomon.domain.grant import Grant
from gnomon.domain.instants import from_micros, maybe_instant
from gnomon.domain.misfire import Decision, Slot
from gnomon.domain.retry import RetryPolicy
from gnomon.domain.run import Trigger
from gnomon.domain.schedule import OnLost, Overlap, SessionMode
from gnomon.domain.trace import trace_id
from gnomon.services.gates import Verdict
from gnomon.stores.audit import NewEntry, new_entry
from gnomon.stores.run_rows import NewRun
from gnomon.stores.slots import Advance, Due, Entry

ACTOR = "dispatcher"
# Looked up instead of called: this is done for each slot.
_FIXED, _SKIP = SessionMode.FIXED.value, Overlap.SKIP.value
_ON_LOSTS = {on_lost.value: on_lost for on_lost in OnLost}
_policy = lru_cache(maxsize=1_000)(RetryPolicy)


def entry(due: Due, slot: Slot, run_id: str | None, session_id: str | None) -> Entry:
    """The ledger's row of a slot (DSP-6)."""
    first, last, count = slot.older or (None, None, None)
    return Entry(
        due.id,
        slot.nominal,
        due.revision,
        slot.disposition,
        slot.reason,
        first,
        last,
        count,
        run_id,
        session_id,
    )


def advance(  # noqa: PLR0917 - a row has as many columns as it has
    due: Due,
    decision: Decision,
    fired_at: int | None = None,
    in_flight: str | None = None,
    waiting: str | None = None,
    granted: int = 0,
) -> Advance:
    """The schedule moved on: what the scan changes of it."""
    slot, following = decision.slot, decision.next_fire_at
    return Advance(
        due.id,
        due.next_fire_at,
        # a schedule that stops keeps its instant until the stop clears it, in the same transaction
        due.next_fire_at if following is None else following,
        None if slot is None else slot.nominal,
        fired_at,
        int(fired_at is not None),
        in_flight,
        waiting,
        granted,
        due.now,
        due.revision,
        due.run_count,
        due.fence,
        due.in_flight_run_id,
        due.waiting_run_id,
    )


def detail(slot: Slot, extra: str | None = None) -> dict[str, object]:
    """What an audit entry says of a slot."""
    detail: dict[str, object] = {"nominal_fire_at": slot.nominal}
    if slot.reason is not None:
        detail["reason"] = slot.reason.value
    if slot.older is not None:
        detail["coalesced"] = slot.older[2]
    if extra is not None:
        detail["detail"] = extra
    return detail


def entries(due: Due, slot: Slot, run: NewRun) -> tuple[NewEntry, ...]:
    """One entry for each slot: the claim where the run is born claimed, else that it was fired into the queue."""
    if run.owner is not None:
        older = "" if slot.older is None else f'"coalesced":{slot.older[2]},'
        claimed = (
            f'["{run.id}",{run.fence},{{"nominal_fire_at":{slot.nominal},{older}"schedule_id":"{due.id}"}}]'
        )
        return ((run.owner, Action.CLAIM, "run", claimed),)
    return (new_entry(ACTOR, Action.FIRE, "schedule", due.id, None, {**detail(slot), "run_id": run.id}),)


def resolved(template: str, due: Due, slot: Slot, holidays: frozenset[date]) -> str:
    """A query with the slot put in (SCH-6)."""
    if not placeholders.uses_slot(template):
        return template
    cadence = Cadence.from_stored(due.cadence)
    at = from_micros(slot.nominal)
    shown = preview(
        cadence, from_micros(slot.nominal - 1), 1, anchor=from_micros(due.anchor_at), holidays=holidays
    )
    facts = placeholders.SlotFacts(
        nominal_fire_at=at,
        local_date=shown[0].local_time[:10],
        last_run_at=maybe_instant(due.last_fire_at),
        run_count=due.run_count,
    )
    return placeholders.resolve(template, facts)


def dedup_key(due: Due, slot: Slot) -> str | None:
    """The key of a slot's effect as its run keeps it; none where the schedule declares none (IDM-1)."""
    template = due.dedup_key
    if template is None:
        return None
    own = dedup.of_schedule(due.id, maybe_instant(due.last_fire_at), due.run_count)
    return dedup.render(template, from_micros(slot.nominal), Cadence.from_stored(due.cadence).zone, own=own)


def tells(overlap: str, failure_streak: int) -> bool:
    """Whether a schedule learns of a run's end even where it ends well.

    Under ``skip`` nobody waits for it or works beside it, and no edit changes that while it is unfinished (SCH-10). Its
    lock is off by itself, and no other run of the schedule can have begun a streak since the claim.
    """
    return overlap != _SKIP or failure_streak > 0


def grant(due: Due, run: NewRun, verdict: Verdict, *, taken_at: float) -> Grant:
    """The grant of a run that is born claimed."""
    assert verdict.resolved is not None  # a slot fires only where the gates found its target
    return Grant(
        run.id,
        Trigger.SCHEDULE,
        verdict.resolved,
        run.schedule_id,
        run.nominal_fire_at,
        run.session_id,
        due.session_mode == _FIXED,
        run.query,
        run.fence,
        1,
        run.lease_seconds,
        due.timeout_seconds,
        _policy(due.max_attempts, due.backoff_seconds, due.backoff_max_seconds),
        _ON_LOSTS[due.on_lost],
        run.dedup_key,
        trace_id(run.id),
        half_done=False,
        parallel=run.parallel,
        tells=tells(due.overlap, due.failure_streak),
        taken_at=taken_at,
    )
