"""What became of slots and runs, for reading: one method per query of ``sql/history.sql``. Writes nothing."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from gnomon.domain import dedup
from gnomon.domain.filters import RunFilter, RunPlace
from gnomon.domain.ids import Kind, sibling
from gnomon.domain.instants import from_micros, maybe_instant
from gnomon.domain.invocation import Usage
from gnomon.domain.occurrence import Coalesced, Disposition, Occurrence, Reason
from gnomon.domain.run import TERMINAL, Attempt, Run, RunError, RunStatus, Trigger
from gnomon.domain.target import Target, TargetKind
from gnomon.domain.trace import trace_id
from gnomon.stores.database import Row, Tx, Value


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A schedule's status from an instant (microseconds) on, with who set it and why."""

    at: int
    status: str
    by: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One line of a run's event stream."""

    seq: int
    at: int
    kind: str
    data: dict[str, object]


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs of one schedule and where the rest begin; ``rest`` is ``None`` where there is no more."""

    runs: list[Run]
    rest: RunPlace | None = field(default=None)


async def occurrences(  # noqa: PLR0917 - a page of a filtered list
    tx: Tx, schedule_id: str, before: int, since: int, disposition: Disposition | None, limit: int
) -> list[Occurrence]:
    """The ledger of a schedule in [since, before), the newest slot first."""
    rows = await tx.all(
        "history.occurrences",
        schedule_id=schedule_id,
        before=before,
        since=since,
        disposition=disposition,
        limit=limit,
    )
    return [_occurrence(row) for row in rows]


async def occurrence(tx: Tx, schedule_id: str, nominal: int) -> Occurrence | None:
    """The record of one slot."""
    row = await tx.one("history.occurrence", schedule_id=schedule_id, nominal_fire_at=nominal)
    return None if row is None else _occurrence(row)


async def covering(tx: Tx, schedule_id: str, nominal: int) -> Occurrence | None:
    """The record whose coalesced range holds an instant (DSP-7).

    It need not be the next one: where the clock was set back, slots were recorded inside the range as well.
    """
    row = await tx.one("history.covering", schedule_id=schedule_id, nominal_fire_at=nominal)
    return None if row is None else _occurrence(row)


async def occurrence_after(tx: Tx, schedule_id: str, nominal: int) -> Occurrence | None:
    """The first record after an instant."""
    row = await tx.one("history.occurrence_after", schedule_id=schedule_id, nominal_fire_at=nominal)
    return None if row is None else _occurrence(row)


async def status_before(tx: Tx, schedule_id: str, at: int) -> StatusChange | None:
    """The last change of status before an instant; ``None`` where the schedule was as it was made: active."""
    row = await tx.one("history.status_before", schedule_id=schedule_id, at=at)
    return None if row is None else _change(row)


async def status_from(tx: Tx, schedule_id: str, at: int) -> StatusChange | None:
    """The first change of status at or after an instant."""
    row = await tx.one("history.status_from", schedule_id=schedule_id, at=at)
    return None if row is None else _change(row)


async def ledger_floor(tx: Tx) -> int:
    """The instant before which retention may have taken slots out of the ledger (DSP-9a)."""
    row = await tx.one("history.floor")
    return 0 if row is None else int(row["occurrences_before"])


async def run(tx: Tx, run_id: str) -> tuple[Run, str | None] | None:
    """A run with all its attempts, and its answer in full (RUN-9, RUN-11)."""
    row = await tx.one("history.run", id=run_id)
    if row is None:
        return None
    return (await _with_attempts(tx, [row]))[0], row["output"]


async def run_status(tx: Tx, run_id: str) -> Row | None:
    """What decides over a run: status, fence, schedule, trigger, whether it was asked to stop."""
    return await tx.one("history.run_status", id=run_id)


async def closed_as(  # noqa: PLR0917 - who, what, and how long
    tx: Tx, run_id: str, owner: str, fence: int, status: RunStatus, duration_us: int
) -> bool:
    """Whether a run was closed so by this holder, under this fence, after exactly so long (RUN-5a)."""
    given: dict[str, Value] = {"id": run_id, "owner": owner, "fence": fence, "duration_us": duration_us}
    return await tx.one("history.closed_as", status=status, **given) is not None


async def tried_as(tx: Tx, run_id: str, attempt: int, fence: int, outcome: RunStatus) -> bool:
    """Whether an attempt under this fence was put on record with this outcome (RUN-5a)."""
    given: dict[str, Value] = {"id": run_id, "attempt": attempt, "fence": fence, "outcome": outcome}
    return await tx.one("history.tried_as", **given) is not None


async def runs(tx: Tx, chosen: RunFilter, before: str, limit: int) -> list[Run]:
    """Runs with ids before ``before``, the newest first. Reads previews, no full answer."""
    rows = await tx.all(
        "history.runs",
        before=before,
        status=chosen.status,
        trigger_kind=chosen.trigger,
        target_id=chosen.target,
        limit=limit,
    )
    return await _with_attempts(tx, rows)


async def runs_of_schedule(
    tx: Tx, schedule_id: str, status: RunStatus | None, place: RunPlace, limit: int
) -> RunPage:
    """The runs of a schedule, the newest first: those of its slots by the ledger, those people started by their id."""
    by_slot = await tx.all(
        "history.scheduled_runs",
        schedule_id=schedule_id,
        before=place.before_slot,
        status=status,
        limit=limit + 1,
    )
    by_id = await tx.all(
        "history.unscheduled_runs",
        schedule_id=schedule_id,
        before=place.before_id,
        status=status,
        limit=limit + 1,
    )
    merged: list[Row] = []
    while len(merged) < limit and (by_slot or by_id):
        newer = by_slot if not by_id or (by_slot and by_slot[0]["id"] > by_id[0]["id"]) else by_id
        merged.append(newer.pop(0))
    rest = None
    if by_slot or by_id:
        slots = [row["nominal_fire_at"] for row in merged if row["nominal_fire_at"] is not None]
        ids = [row["id"] for row in merged if row["nominal_fire_at"] is None]
        rest = RunPlace(min([place.before_slot, *slots]), min([place.before_id, *ids]))
    return RunPage(await _with_attempts(tx, merged), rest)


async def run_events(tx: Tx, run_id: str, after: int, limit: int) -> list[RunEvent]:
    """What a run reported after ``after``, in order (TGT-2)."""
    rows = await tx.all("history.run_events", run_id=run_id, after=after, limit=limit)
    return [RunEvent(row["seq"], row["at"], row["kind"], json.loads(row["data"])) for row in rows]


async def _with_attempts(tx: Tx, rows: Iterable[Row]) -> list[Run]:
    found = list(rows)
    several = [
        row["id"]
        for row in found
        if row["attempt"] > 1 or row["half_done"] or (row["status"] == "queued" and row["attempt"] > 0)
    ]
    earlier: dict[str, list[Attempt]] = {}
    if several:
        for row in await tx.all("history.attempts", run_ids=json.dumps(several)):
            earlier.setdefault(row["run_id"], []).append(
                Attempt(
                    number=row["number"],
                    fence=row["fence"],
                    worker=row["worker"],
                    started_at=maybe_instant(row["started_at"]),
                    finished_at=maybe_instant(row["finished_at"]),
                    outcome=RunStatus(row["outcome"]),
                    error=_error(row),
                )
            )
    return [_run(row, earlier.get(row["id"], [])) for row in found]


def _error(row: Row) -> RunError | None:
    return None if row["error_code"] is None else RunError(row["error_code"], row["error"] or "")


def _run(row: Row, earlier: list[Attempt]) -> Run:
    status = RunStatus(row["status"])
    attempts = list(earlier)
    kept = {(attempt.number, attempt.fence) for attempt in earlier}
    if row["attempt"] and status is not RunStatus.QUEUED and (row["attempt"], row["fence"]) not in kept:
        attempts.append(
            Attempt(
                number=row["attempt"],
                fence=row["fence"],
                worker=row["owner"],
                started_at=maybe_instant(
                    row["started_at"] if row["attempt_at"] is None else row["attempt_at"]
                ),
                finished_at=maybe_instant(row["finished_at"]),
                outcome=status if status in TERMINAL else None,
                error=_error(row),
            )
        )
    nominal = maybe_instant(row["nominal_fire_at"])
    return Run(
        id=row["id"],
        trigger=Trigger(row["trigger_kind"]),
        status=status,
        target=Target(TargetKind(row["target_kind"]), row["target_id"]),
        schedule_id=row["schedule_id"],
        revision=row["revision"],
        nominal_fire_at=nominal,
        session_id=_session_id(row),
        scheduled_for=from_micros(row["scheduled_for"]),
        started_at=maybe_instant(row["started_at"]),
        finished_at=maybe_instant(row["finished_at"]),
        duration_seconds=None if row["duration_us"] is None else row["duration_us"] / 1_000_000,
        fence=row["fence"],
        attempts=tuple(attempts),
        possibly_half_done=bool(row["half_done"]),
        cancel_requested_at=maybe_instant(row["cancel_at"]),
        trace_id=row["trace_id"] or trace_id(row["id"]),
        usage=Usage(
            row["model_calls"] or 0, row["input_tokens"] or 0, row["output_tokens"] or 0, row["cost"] or 0.0
        ),
        response_preview=row["response_preview"],
        error=_error(row),
        invoked_by=row["invoked_by"],
        api_key_id=row["api_key_id"],
        source=row["source"],
        idempotency_key=row["id"],
        dedup_key=dedup.of_run(row["dedup_key"], row["schedule_id"], nominal),
    )


def _session_id(row: Row) -> str | None:
    """A run's session: its own where none is named; none any more where it was erased (RUN-12)."""
    named: str | None = row["session_id"]
    return sibling(Kind.SESSION, row["id"]) if named is None else named or None


def _occurrence(row: Row) -> Occurrence:
    coalesced = None
    if row["coalesced_count"] is not None:
        coalesced = Coalesced(
            from_micros(row["coalesced_first"]), from_micros(row["coalesced_last"]), row["coalesced_count"]
        )
    return Occurrence(
        schedule_id=row["schedule_id"],
        nominal_fire_at=from_micros(row["nominal_fire_at"]),
        revision=row["revision"],
        disposition=Disposition(row["disposition"]),
        reason=None if row["reason"] is None else Reason(row["reason"]),
        coalesced=coalesced,
        run_id=row["run_id"],
        session_id=row["session_id"],
        links_erased_at=maybe_instant(row["links_erased_at"]),
        created_at=from_micros(row["created_at"]),
    )


def _change(row: Row) -> StatusChange:
    return StatusChange(row["at"], row["status"], row["changed_by"], row["reason"])
