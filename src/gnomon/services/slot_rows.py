"""The rows that one decided slot is written as: the ledger's, the schedule's, the audit's, and the grant of its run.

Pure over their arguments; which of them a scan writes is ``slot_plan``'s affair.
"""

from datetime import date

from gnomon.cadence import Cadence, preview
from gnomon.domain import dedup, placeholders
from gnomon.domain.audit import Action
from gnomon.domain.grant import Grant
from gnomon.domain.instants import from_micros, maybe_instant
from gnomon.domain.misfire import Decision, Slot
from gnomon.domain.retry import RetryPolicy
from gnomon.domain.run import Trigger
from gnomon.domain.schedule import OnLost, SessionMode
from gnomon.domain.trace import trace_id
from gnomon.services.gates import Verdict
from gnomon.stores.audit import NewEntry
from gnomon.stores.database import Row, Value
from gnomon.stores.runs import NewRun

ACTOR = "dispatcher"
_ON_LOSTS = {on_lost.value: on_lost for on_lost in OnLost}  # looked up instead of called: done for each slot


def occurrence(row: Row, slot: Slot, run_id: str | None, session_id: str | None) -> dict[str, Value]:
    """The ledger's row of a slot (DSP-6)."""
    first, last, count = slot.older or (None, None, None)
    return {
        "schedule_id": row["id"],
        "nominal_fire_at": slot.nominal,
        "revision": row["revision"],
        "disposition": slot.disposition,
        "reason": slot.reason,
        "coalesced_first": first,
        "coalesced_last": last,
        "coalesced_count": count,
        "run_id": run_id,
        "session_id": session_id,
    }


def advance(row: Row, decision: Decision) -> dict[str, Value]:
    """The schedule moved on: what the scan changes of it."""
    return {
        "id": row["id"],
        "claimed_at": row["next_fire_at"],
        # a schedule that stops keeps its instant until the stop clears it, in the same transaction
        "next_fire_at": decision.next_fire_at if decision.next_fire_at is not None else row["next_fire_at"],
        "recorded_until": None if decision.slot is None else decision.slot.nominal,
        "fired_at": None,
        "fired": 0,
        "in_flight_run_id": None,
        "waiting_run_id": None,
        "granted": 0,
        "seen_at": row["now"],
        "seen_revision": row["revision"],
        "seen_runs": row["run_count"],
        "seen_fence": row["fence"],
        "seen_in_flight": row["in_flight_run_id"],
        "seen_waiting": row["waiting_run_id"],
    }


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


def entries(row: Row, slot: Slot, run: NewRun) -> tuple[NewEntry, ...]:
    """One entry for each slot: the claim where the run is born claimed, else that it was fired into the queue."""
    if run.owner is not None:
        older = "" if slot.older is None else f'"coalesced":{slot.older[2]},'
        claimed = f'{{"nominal_fire_at":{slot.nominal},{older}"schedule_id":"{row["id"]}"}}'
        return (NewEntry(run.owner, Action.CLAIM, "run", run.id, run.fence, claimed),)
    return (NewEntry(ACTOR, Action.FIRE, "schedule", row["id"], None, {**detail(slot), "run_id": run.id}),)


def resolved(template: str, row: Row, slot: Slot, holidays: frozenset[date]) -> str:
    """A query with the slot put in (SCH-6)."""
    if not placeholders.uses_slot(template):
        return template
    cadence = Cadence.from_stored(row["cadence"])
    at = from_micros(slot.nominal)
    shown = preview(
        cadence, from_micros(slot.nominal - 1), 1, anchor=from_micros(row["anchor_at"]), holidays=holidays
    )
    facts = placeholders.SlotFacts(
        nominal_fire_at=at,
        local_date=shown[0].local_time[:10],
        last_run_at=maybe_instant(row["last_fire_at"]),
        run_count=row["run_count"],
    )
    return placeholders.resolve(template, facts)


def dedup_key(row: Row, slot: Slot) -> str | None:
    """The key of a slot's effect as its run keeps it; none where the schedule declares none (IDM-1)."""
    template: str | None = row["dedup_key"]
    if template is None:
        return None
    own = dedup.of_schedule(row["id"], maybe_instant(row["last_fire_at"]), row["run_count"])
    return dedup.render(
        template, from_micros(slot.nominal), Cadence.from_stored(row["cadence"]).zone, own=own
    )


def grant(row: Row, run: NewRun, verdict: Verdict, *, taken_at: float) -> Grant:
    """The grant of a run that is born claimed."""
    assert verdict.resolved is not None  # a slot fires only where the gates found its target
    return Grant(
        run_id=run.id,
        trigger=Trigger.SCHEDULE,
        resolved=verdict.resolved,
        schedule_id=run.schedule_id,
        nominal_fire_at=run.nominal_fire_at,
        session_id=run.session_id,
        continues_session=row["session_mode"] == SessionMode.FIXED,
        query=run.query,
        fence=run.fence,
        attempt=1,
        lease_seconds=run.lease_seconds,
        timeout_seconds=row["timeout_seconds"],
        retry=RetryPolicy(row["max_attempts"], row["backoff_seconds"], row["backoff_max_seconds"]),
        on_lost=_ON_LOSTS[row["on_lost"]],
        dedup_key=run.dedup_key,
        trace_id=trace_id(run.id),
        half_done=False,
        parallel=run.parallel,
        taken_at=taken_at,
    )
