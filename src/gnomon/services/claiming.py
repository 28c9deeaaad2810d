"""The claim of queued runs, and the grants that come of it (RUN-1, RUN-4).

The target is judged again at the claim: it may have been deleted while the run was queued. Such a run is closed as
failed right here, in the same transaction.
"""

from collections.abc import Iterable

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
from gnomon.stores.database import Row, Tx
from gnomon.stores.run_rows import Closing

# What is due and was not claimed is in the hands of others, who will be done in a moment: looking again at once would
# only be in their way.
HELD_SECONDS = 0.01


async def claim_runs(  # noqa: PLR0917 - one claim, said in full
    tx: Tx, gates: Gates, owner: str, claim_id: str, places: int, taken_at: float
) -> list[Grant]:
    """Claim up to ``places`` queued runs for this process; those that can be invoked, ready to start."""
    rows = await runs.claim(tx, owner, claim_id, places)
    if not rows:
        return []
    verdicts = await gates.judge(tx, {(row["target_kind"], row["target_id"]) for row in rows})
    entries: list[NewEntry] = []
    grants: list[Grant] = []
    for row in rows:
        verdict = verdicts[row["target_kind"], row["target_id"]]
        entries.append(
            (owner, Action.CLAIM, "run", f'["{row["id"]}",{row["fence"]},{{"attempt":{row["attempt"]}}}]')
        )
        if verdict.resolved is None:
            entries.append(await _refuse(tx, row, verdict, owner))
        else:
            grants.append(_grant(row, verdict, taken_at))
    await audit.append_many(tx, entries)
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
