"""What becomes of queued runs that were claimed: grants to start, and what was claimed for nothing (RUN-1, RUN-4).

The target is judged again after the claim: it may have been deleted while the run was queued. Such a run is closed as
failed right here, under its own fence.
"""

from collections.abc import Iterable, Sequence

from gnomon.domain.audit import Action
from gnomon.domain.grant import Grant
from gnomon.domain.lease import HEADROOM_SECONDS
from gnomon.domain.retry import RetryPolicy
from gnomon.domain.run import RunError, RunStatus, Trigger
from gnomon.domain.schedule import OnLost, Overlap, SessionMode
from gnomon.domain.trace import trace_id
from gnomon.services import slot_rows
from gnomon.services.ending import released
from gnomon.services.gates import Gates, Verdict
from gnomon.services.settling import Closed, settle
from gnomon.stores import audit, runs
from gnomon.stores.audit import NewEntry, new_entry
from gnomon.stores.database import Database, Row, Tx
from gnomon.stores.run_rows import Closing

# What is due and was not claimed is in the hands of others, who will be done in a moment: looking again at once would
# only be in their way.
HELD_SECONDS = 0.01


async def granted(
    database: Database, gates: Gates, owner: str, rows: Sequence[Row], taken_at: float
) -> list[Grant]:
    """What can be invoked of the runs that were claimed, ready to start; the others are closed."""
    if not rows:
        return []
    targets = {(row["target_kind"], row["target_id"]) for row in rows}
    verdicts = await database.look(lambda tx: gates.judge(tx, targets))
    grants: list[Grant] = []
    refused: list[tuple[Row, Verdict]] = []
    for row in rows:
        verdict = verdicts[row["target_kind"], row["target_id"]]
        if verdict.resolved is None:
            refused.append((row, verdict))
        else:
            grants.append(_grant(row, verdict, taken_at))
    if refused:
        await database.write_guarded(lambda tx: _refuse_all(tx, refused, owner))
    return grants


async def give_back(tx: Tx, owner: str, held: Iterable[tuple[str, int]]) -> set[str]:
    """Give claims (run, fence) under which nothing was sent back to the queue; the runs that were still held."""
    fences = dict(held)
    given = await runs.give_back(tx, owner, fences.items())
    back = [
        released(run_id, fence, owner, RunStatus.QUEUED)
        for run_id, fence in fences.items()
        if run_id in given
    ]
    await audit.append_many(tx, back)
    return given


async def _refuse_all(tx: Tx, refused: Sequence[tuple[Row, Verdict]], owner: str) -> None:
    await audit.append_many(tx, [await _refuse(tx, row, verdict, owner) for row, verdict in refused])


async def _refuse(tx: Tx, row: Row, verdict: Verdict, owner: str) -> NewEntry:
    code = "target_invalid" if verdict.reason is None else verdict.reason.value
    error = RunError(code, verdict.detail or "The target can't be invoked.")
    ending = Closing(
        row["id"], owner, row["fence"], RunStatus.FAILED, 0, error_code=error.code, error=error.message
    )
    await runs.close(tx, [ending])
    await tx.send()
    await settle(tx, [Closed(row["id"], row["schedule_id"], row["trigger_kind"], RunStatus.FAILED, error)])
    return new_entry(
        owner, Action.RELEASE, "run", row["id"], row["fence"], {"status": "failed", "reason": code}
    )


def _grant(row: Row, verdict: Verdict, taken_at: float) -> Grant:
    assert verdict.resolved is not None
    scheduled = row["schedule_id"] is not None
    resolved = verdict.resolved
    if scheduled:  # the schedule's own word wins over its agent's
        timeout = row["timeout_seconds"]
    elif resolved.agent is not None:
        timeout = resolved.agent.timeout_seconds
    else:
        timeout = max(1, row["lease_seconds"] - HEADROOM_SECONDS)
    return Grant(
        run_id=row["id"],
        trigger=Trigger(row["trigger_kind"]),
        resolved=resolved,
        schedule_id=row["schedule_id"],
        nominal_fire_at=row["nominal_fire_at"],
        session_id=row["session_id"],
        continues_session=row["session_mode"] == SessionMode.FIXED or not scheduled,
        query=row["query"],
        fence=row["fence"],
        attempt=row["attempt"],
        lease_seconds=row["lease_seconds"],
        timeout_seconds=timeout,
        retry=RetryPolicy(row["max_attempts"], row["backoff_seconds"], row["backoff_max_seconds"])
        if scheduled
        else RetryPolicy(),
        on_lost=OnLost(row["on_lost"]) if scheduled else OnLost.FAIL,
        dedup_key=row["dedup_key"],
        trace_id=row["trace_id"] or trace_id(row["id"]),
        half_done=bool(row["half_done"]),
        parallel=row["overlap"] == Overlap.ALLOW,
        tells=scheduled and slot_rows.tells(row["overlap"], row["failure_streak"]),
        taken_at=taken_at,
    )
