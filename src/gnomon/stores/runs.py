"""Runs: the queue, claims, renewals, closes, sweeps. One method per query of ``sql/runs.sql``.

Each write by a holder is one conditional statement that carries its fence; what it returns says whether it held.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from gnomon.domain.audit import Action
from gnomon.domain.invocation import Usage
from gnomon.domain.run import RunError, RunStatus
from gnomon.stores import audit
from gnomon.stores.database import Landed, Row, Rows, Tx, Value
from gnomon.stores.run_rows import NewRun

Parameters = Mapping[str, Value]


async def insert(
    tx: Tx, runs: Sequence[NewRun], landed: Landed | None = None, of: Sequence[str] = ()
) -> None:
    """Insert runs, each with its query: the seed of its checkpoints, and a session with the first of them (DSP-5)."""
    await tx.later("runs.insert", [run.row() for run in runs], landed, of)


async def claim(tx: Tx, owner: str, claim_id: str, limit: int) -> list[Row]:
    """Claim queued runs whose instant has come, the interactive before the scheduled, the oldest first (RUN-1).

    With its entries in the audit. It is the last that a transaction says.
    """
    if tx.at_once:
        return await tx.last("runs.claim_at_once", owner=owner, claim_id=claim_id, limit=limit)
    found = await tx.tuples("runs.claimable", limit=limit)
    grants = Counter(schedule_id for _, schedule_id in found if schedule_id is not None)
    fences = {
        schedule_id: list(range(fence - grants[schedule_id] + 1, fence + 1))
        for schedule_id, fence in await tx.many(
            "runs.grant_fence",
            [{"schedule_id": schedule_id, "grants": count} for schedule_id, count in grants.items()],
        )
    }
    claimed = await tx.many(
        "runs.claim",
        [
            {
                "id": run_id,
                "owner": owner,
                "claim_id": claim_id,
                "fence": fences[schedule_id].pop(0) if schedule_id in fences else 0,
            }
            for run_id, schedule_id in found
        ],
    )
    by_id = {row["id"]: row for row in await by_ids(tx, [row[0] for row in claimed])}
    rows = [by_id[run_id] for run_id, _ in found if run_id in by_id]
    await audit.append_many(
        tx,
        [
            (owner, Action.CLAIM, "run", f'["{row["id"]}",{row["fence"]},{{"attempt":{row["attempt"]}}}]')
            for row in rows
        ],
    )
    return rows


async def by_ids(tx: Tx, ids: Iterable[str]) -> list[Row]:
    """What a grant needs to know of each run, with the policies of its schedule."""
    return await tx.all("runs.claimed", ids=json.dumps(list(ids)))


async def next_claimable(tx: Tx) -> int | None:
    """Microseconds until the next queued run may be claimed; ``None`` where none is queued."""
    row = await tx.one("runs.next_claimable")
    return None if row is None else row["wait_us"]


async def renew(tx: Tx, owner: str, held: Iterable[tuple[str, int]]) -> set[str]:
    """Renew leases, guarded on owner and fence; the runs that were still held (RUN-4)."""
    rows: list[Parameters] = [{"id": run_id, "owner": owner, "fence": fence} for run_id, fence in held]
    return {row[0] for row in await tx.many("runs.renew", rows)}


async def close(tx: Tx, endings: Rows, *, plain: bool = False) -> Landed:
    """Close runs as their holder (RUN-6); ``plain``: their schedules learn nothing from it, and are not touched."""
    return await tx.guard("runs.close_plain" if plain else "runs.close", endings)


async def close_by_fence(tx: Tx, ending: Parameters) -> Row | None:
    """Close a running run for whoever shows its fence: a target that completes it itself."""
    return await tx.one("runs.close_by_fence", **ending)


async def close_queued(
    tx: Tx, run_id: str, status: str, error_code: str | None = None, error: str | None = None
) -> Row | None:
    """Close a run that nobody has claimed."""
    return await tx.one("runs.close_queued", id=run_id, status=status, error_code=error_code, error=error)


async def requeue(
    tx: Tx, run_id: str, fence: int, claimable_at: int, *, owner: str | None, half_done: bool
) -> bool:
    """Put a running run back into the queue for its next attempt, or to be resumed (RUN-8)."""
    row = await tx.one(
        "runs.requeue",
        id=run_id,
        fence=fence,
        claimable_at=claimable_at,
        owner=owner,
        half_done=int(half_done),
    )
    return row is not None


async def spend(tx: Tx, run_id: str, fence: int, usage: Usage) -> None:
    """Put on a run's account what an attempt spent that is not its last one (RUN-9)."""
    await tx.run("runs.spend", id=run_id, fence=fence, **asdict(usage))


async def spent_on_nodes(tx: Tx, run_id: str, fence: int) -> list[Usage]:
    """What the nodes cost that were finished under a fence (TGT-3)."""
    found = await tx.tuples("runs.spent_on_nodes", run_id=run_id, fence=fence)
    return [Usage(**json.loads(usage)) for (usage,) in found]


async def give_back(tx: Tx, owner: str, held: Iterable[tuple[str, int]]) -> set[str]:
    """Give unstarted claims back to the queue, as if they had not been made (DSP-10)."""
    rows: list[Parameters] = [{"id": run_id, "owner": owner, "fence": fence} for run_id, fence in held]
    return {row[0] for row in await tx.many("runs.give_back", rows)}


async def under_claim(tx: Tx, owner: str, claim_id: str) -> list[tuple[str, int]]:
    """The runs (id, fence) that this owner holds by this claim: asked where the claim's answer was lost (RUN-5a)."""
    return [(row[0], row[1]) for row in await tx.tuples("runs.under_claim", owner=owner, claim_id=claim_id)]


async def insert_attempt(tx: Tx, **attempt: Value) -> bool:
    """Keep the record of the present attempt before the run goes on to another (RUN-9); whether it is still held so."""
    return await tx.one("runs.insert_attempt", **attempt) is not None


async def settle(tx: Tx, rows: Sequence[Parameters], *, parallel: bool = True) -> None:
    """Take the lock of ended runs off their schedules, let whoever waits for them go (RUN-3, DSP-8).

    ``parallel``: whether any of them may have run beside others of its schedule, one of which then is in flight.
    """
    for wave in _waves(rows):
        await tx.later("runs.settle", wave)
    if parallel:
        await tx.run("runs.settle_parallel", ids=json.dumps([row["schedule_id"] for row in rows]))
    await tx.later("runs.free_waiting", [{"run_id": row["run_id"]} for row in rows])


def _waves(rows: Sequence[Parameters]) -> Iterable[list[Parameters]]:
    """The rows in lists that name each schedule once: a set statement takes one row for each row that it changes."""
    left = list(rows)
    while left:
        wave = {row["schedule_id"]: row for row in reversed(left)}
        yield list(reversed(wave.values()))
        left = [row for row in left if wave[row["schedule_id"]] is not row]


async def streaks(tx: Tx, schedule_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Failure streak and its limit, by schedule; a schedule that is gone has none."""
    found = await tx.tuples("runs.streaks", ids=json.dumps(sorted(schedule_ids)))
    return {row[0]: (row[1], row[2]) for row in found}


async def move_streaks(tx: Tx, moved: Iterable[tuple[str, int, str, str]]) -> None:
    """Set streaks and keep the last failures (SCH-8): schedule, its streak, code and sentence of the error."""
    await tx.later("runs.move_streak", moved)


async def expired(tx: Tx, heartbeat_timeout_us: int, calm_us: int | None, limit: int) -> list[Row]:
    """Running runs whose lease is over or whose process is silent, and why (RUN-7).

    Those that a target took with a 202 and that nobody watches any more are among them once they are out of time.

    ``calm_us`` is how long ago the clock last jumped: what looks expired by a lease longer than that is left alone
    (RUN-5b); ``None`` where it never did.
    """
    return await tx.all(
        "runs.expired", heartbeat_timeout_us=heartbeat_timeout_us, calm_us=calm_us, limit=limit
    )


async def elsewhere(tx: Tx, owner: str, heartbeat_timeout_us: int) -> tuple[int, int | None]:
    """How many runs other processes hold, and until when at the longest, if none of those renews again (RUN-7)."""
    row = await tx.one("runs.elsewhere", owner=owner, heartbeat_timeout_us=heartbeat_timeout_us)
    assert row is not None  # it counts
    return row["runs"], row["until"]


async def lose(tx: Tx, run_id: str, fence: int, status: RunStatus, error: RunError) -> bool:
    """Close an expired run, as lost or as what its deadline made of it; whether it still ran under that fence."""
    row = await tx.one(
        "runs.lose", id=run_id, fence=fence, status=status, error_code=error.code, error=error.message
    )
    return row is not None


async def cancels(tx: Tx, owner: str) -> list[tuple[str, str]]:
    """The runs of this process that somebody wants cancelled, and who."""
    return [(row[0], row[1]) for row in await tx.tuples("runs.cancels", owner=owner)]


async def ask_cancel(tx: Tx, run_id: str, by: str) -> Row | None:
    """Ask for a running run to be cancelled; its status, or ``None`` where it is over."""
    return await tx.one("runs.ask_cancel", id=run_id, by=by)


async def held_by(tx: Tx, owner: str) -> set[tuple[str, int]]:
    """The runs that a process holds, each with its fence."""
    return {(row[0], row[1]) for row in await tx.tuples("runs.held_by", owner=owner)}


async def defer(tx: Tx, run_id: str, owner: str, fence: int, timeout_us: int) -> bool:
    """Note that the target completes the run itself: not the silence of this process ends it, but its timeout."""
    row = await tx.one("runs.defer", id=run_id, owner=owner, fence=fence, timeout_us=timeout_us)
    return row is not None


async def still_running(tx: Tx, ids: Iterable[str]) -> set[str]:
    """Those of the runs that are not closed."""
    return {row[0] for row in await tx.tuples("runs.unfinished", ids=json.dumps(list(ids)))}


async def history_of_session(tx: Tx, session_id: str, run_id: str, limit: int) -> list[tuple[str, str]]:
    """The turns (query, answer) of a session before this run, the oldest first, at most ``limit``."""
    rows = await tx.tuples("runs.history_of_session", session_id=session_id, run_id=run_id, limit=limit)
    return [(row[0], row[1]) for row in reversed(rows)]


async def checkpoints(tx: Tx, run_id: str) -> list[Row]:
    """The finished nodes of a team's run (TGT-3)."""
    return await tx.all("runs.checkpoints", run_id=run_id)


async def checkpoint(tx: Tx, **node: Value) -> bool:
    """Keep a finished node, if the run is still held under that fence or the node was kept before."""
    return await tx.one("runs.checkpoint", **node) is not None


async def events(tx: Tx, rows: Sequence[Parameters]) -> None:
    """Append to the runs' event streams; a zombie's, and any past the bound, change nothing."""
    await tx.many("runs.event", rows)
