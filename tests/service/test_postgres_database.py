"""Transactions over PostgreSQL: all or nothing, side by side as if one after the other, bounded waits (OPS-1, DSP-5)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from gnomon.domain.errors import Unavailable
from gnomon.stores import processes, runs, slots
from gnomon.stores.database import CheckViolation, Tx, UniqueViolation, Value
from gnomon.stores.postgres import database, pool, transaction
from gnomon.stores.postgres.address import Address
from gnomon.testing.clock import FrozenClock
from support.postgres import FrozenPostgres, execute, open_empty
from support.rows import AT, OCCURRENCE, RUN, RUNNING, add_run, add_schedule
from support.rows import execute as rows

pytestmark = pytest.mark.anyio
ATTEMPT = {
    "run_id": RUN["id"],
    "fence": 7,
    "owner": "prc_1",
    "outcome": "failed",
    "error_code": None,
    "error": None,
}
ENDING = {
    "id": RUN["id"],
    "fence": 7,
    "status": "succeeded",
    "model_calls": None,
    "input_tokens": None,
    "output_tokens": None,
    "cost": None,
    "response_preview": None,
    "error_code": None,
    "error": None,
    "output": None,
}


@pytest.fixture
async def store(postgres_address: Address, clock: FrozenClock) -> AsyncIterator[FrozenPostgres]:
    opened = await open_empty(postgres_address, clock)
    yield opened
    await opened.close()


async def start(tx: Tx, name: str = "prc_1") -> None:
    await processes.start(tx, name, "host", 1, "0", "zone")


async def started(store: FrozenPostgres) -> list[str]:
    return [row["id"] for row in await rows(store, "SELECT id FROM processes ORDER BY id")]


async def add_one(tx: Tx) -> None:
    """Read, then write what was read and one more: what a writer beside it would spoil."""
    (row,) = await execute(tx, "SELECT revision FROM schedules", {})
    await execute(tx, "UPDATE schedules SET revision = :n", {"n": row["revision"] + 1})


async def test_a_transaction_is_all_or_nothing(store: FrozenPostgres) -> None:
    """DSP-5."""

    async def fails(tx: Tx) -> None:
        await start(tx)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await store.write(fails)
    assert await started(store) == []
    await store.write(start)
    assert await started(store) == ["prc_1"]


async def test_writers_side_by_side_are_as_if_one_came_after_the_other(store: FrozenPostgres) -> None:
    """The services are written for that."""
    await add_schedule(store)
    await asyncio.gather(*(store.write(add_one) for _ in range(8)))
    [row] = await rows(store, "SELECT revision FROM schedules")
    assert row["revision"] == 1 + 8


async def test_guarded_writers_that_wait_in_a_circle_are_untied(store: FrozenPostgres) -> None:
    for run_id in ("run_a", "run_b"):
        await add_run(store, id=run_id)
    met = asyncio.Barrier(2)

    async def touch(tx: Tx, first: str, second: str, meet: list[None]) -> None:
        text = "UPDATE runs SET attempt = attempt + 1 WHERE id = :id"
        await execute(tx, text, {"id": first})
        if meet:
            meet.pop()
            await met.wait()
        await execute(tx, text, {"id": second})

    one, other = [None], [None]
    await asyncio.gather(
        store.write_guarded(lambda tx: touch(tx, "run_a", "run_b", one)),
        store.write_guarded(lambda tx: touch(tx, "run_b", "run_a", other)),
    )
    found = await rows(store, "SELECT attempt FROM runs")
    assert [row["attempt"] for row in found] == [2, 2]


async def test_whoever_keeps_an_attempt_has_its_run_until_it_is_back_in_the_queue(
    store: FrozenPostgres,
) -> None:
    """RUN-6, RUN-9: a close beside it waits and lands nowhere; no attempt is kept of a run that went another way."""
    mine = {"owner": "prc_1", "fence": 7, "lease_until": AT + 9}
    await add_run(store, **{**RUN, **RUNNING, **mine})
    closes: list[asyncio.Task[bool]] = []

    async def close(tx: Tx) -> bool:
        return await runs.close_by_fence(tx, ENDING) is not None

    async def retry(tx: Tx) -> bool:
        kept = await runs.insert_attempt(tx, **ATTEMPT)
        closes.append(asyncio.create_task(store.write_guarded(close)))
        done, _ = await asyncio.wait(closes, timeout=0.3)
        assert not done, "it waits for the run"
        return kept and await runs.requeue(tx, RUN["id"], 7, AT, owner="prc_1", half_done=False)

    assert await store.write_guarded(retry)
    assert not await closes[0]
    assert [row["outcome"] for row in await rows(store, "SELECT outcome FROM attempts")] == ["failed"]
    assert [row["status"] for row in await rows(store, "SELECT status FROM runs")] == ["queued"]


async def test_a_write_that_always_loses_gives_up_in_words(store: FrozenPostgres) -> None:
    tried = []

    async def loses(_tx: Tx) -> None:
        tried.append(1)
        raise asyncpg.SerializationError("could not serialize access")

    with pytest.raises(Unavailable) as caught:
        await store.write(loses)
    assert (caught.value.code, len(tried)) == ("busy", database.TRIES)


async def test_a_read_is_one_snapshot_and_writes_nothing(store: FrozenPostgres) -> None:
    async def looks_twice(tx: Tx) -> tuple[int, int]:
        first = await tx.all("processes.zone_data")
        await store.write(start)
        return len(first), len(await tx.all("processes.zone_data"))

    assert await store.read(looks_twice) == (0, 0)
    with pytest.raises(Unavailable) as caught:
        await store.read(lambda tx: start(tx, "prc_2"))
    assert caught.value.code == "read_only"


async def test_what_the_schema_refuses_is_told_as_a_fact(store: FrozenPostgres) -> None:
    await store.write(start)
    with pytest.raises(UniqueViolation) as caught:
        await store.write(start)
    assert caught.value.where.startswith("processes")
    with pytest.raises(CheckViolation):
        await add_run(store, priority=3)


async def test_an_error_that_was_swallowed_commits_nothing(store: FrozenPostgres) -> None:
    """PostgreSQL answers such a COMMIT with a ROLLBACK."""
    await store.write(start)

    async def swallows(tx: Tx) -> None:
        await start(tx, "prc_2")
        try:
            await start(tx)
        except asyncpg.UniqueViolationError:
            return

    with pytest.raises(Unavailable):
        await store.write(swallows)
    assert await started(store) == ["prc_1"]


async def test_a_lock_is_waited_for_within_bounds(
    store: FrozenPostgres, postgres_address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_run(store)
    other = await asyncpg.connect(postgres_address.dsn)
    await other.execute(f"BEGIN; SELECT 1 FROM {postgres_address.schema}.runs FOR UPDATE")
    monkeypatch.setattr(transaction, "LOCK_SECONDS", 0.02)
    with pytest.raises(Unavailable) as caught:
        await store.write(lambda tx: execute(tx, "UPDATE runs SET attempt = 1", {}))
    assert caught.value.code == "busy"
    await other.close()


async def test_a_claim_waits_for_no_lock(store: FrozenPostgres, postgres_address: Address) -> None:
    """DSP-3: what others hold is left to them, runs and schedules alike."""
    for number in (1, 2, 3):
        schedule_id = f"sch_{number}"
        await add_schedule(store, id=schedule_id)
        await add_run(store, id=f"run_{number}", schedule_id=schedule_id)
    other = await asyncpg.connect(postgres_address.dsn)
    await other.execute(
        f"BEGIN; SET search_path TO {postgres_address.schema}; "
        "SELECT 1 FROM runs WHERE id = 'run_1' FOR UPDATE; SELECT 1 FROM schedules WHERE id = 'sch_2' FOR UPDATE"
    )
    claimed = await store.write_guarded(lambda tx: runs.claim(tx, "prc_mine", "clm_1", 9))
    assert [row["id"] for row in claimed] == ["run_3"]
    held = await rows(store, "SELECT id FROM runs WHERE status = 'running'")
    assert [row["id"] for row in held] == ["run_3"]
    await other.close()


NOT_COALESCED: dict[str, Value] = {
    "reason": None,
    "coalesced_first": None,
    "coalesced_last": None,
    "coalesced_count": None,
}


def moved_on(schedule_id: str) -> dict[str, Value]:
    """The step of a schedule that was seen as ``support.rows`` makes it."""
    seen: dict[str, Value] = {
        "seen_at": AT,
        "seen_revision": 1,
        "seen_runs": 0,
        "seen_fence": 0,
        "seen_in_flight": None,
    }
    step: dict[str, Value] = {
        "id": schedule_id,
        "claimed_at": AT,
        "next_fire_at": AT + 3_600_000_000,
        "recorded_until": AT,
    }
    left: dict[str, Value] = {
        "fired_at": AT,
        "fired": 1,
        "in_flight_run_id": "run_x",
        "waiting_run_id": None,
        "granted": 1,
    }
    return {**step, **left, **seen, "seen_waiting": None}


async def test_a_scan_takes_no_schedule_that_others_hold(
    store: FrozenPostgres, postgres_address: Address
) -> None:
    """DSP-3: nobody waits while it stamps leases."""
    for number in (1, 2):
        await add_schedule(store, id=f"sch_{number}")
    other = await asyncpg.connect(postgres_address.dsn)
    await other.execute(
        f"BEGIN; SELECT 1 FROM {postgres_address.schema}.schedules WHERE id = 'sch_1' FOR UPDATE"
    )
    claimed = await store.write_guarded(lambda tx: slots.claim_due(tx, 9, hold=True))
    assert [each.id for each in claimed] == ["sch_2"]
    seen = await store.look(lambda tx: slots.claim_due(tx, 9))
    assert [each.id for each in seen] == ["sch_1", "sch_2"], "planned without a lock"
    steps = [moved_on(f"sch_{number}") for number in (1, 2)]
    landed = await store.write_guarded(lambda tx: slots.advance(tx, steps))
    assert landed.ids == {"sch_2"}, "and left alone when it is written"
    await other.close()


async def write_down(tx: Tx, steps: list[dict[str, Value]], entries: list[dict[str, Value]]) -> None:
    landed = await slots.advance(tx, steps)
    await slots.enter(tx, entries, landed, [str(entry["schedule_id"]) for entry in entries])


async def test_a_write_of_what_was_planned_is_one_trip(store: FrozenPostgres) -> None:
    """P9: neither BEGIN nor COMMIT stands around a statement that is all of the work."""
    await add_schedule(store, id="sch_1")
    steps, slot = [moved_on("sch_1")], {**OCCURRENCE, "schedule_id": "sch_1", **NOT_COALESCED}
    await store.look(slots.next_due)
    # once before, so that the driver has asked all that it asks at a first time
    with pytest.raises(UniqueViolation):
        await store.write_guarded(lambda tx: write_down(tx, steps, [slot, slot]))
    raw = await store._pool.take()
    said: list[str] = []
    raw.add_query_logger(lambda query: said.append(query.query))
    store._pool.give(raw)

    await store.write_guarded(lambda tx: write_down(tx, steps, [slot]))
    await store.look(slots.next_due)
    await asyncio.sleep(0)  # the driver tells its logger a step later
    write, look = [text for text in said if "gnomon.now_us" not in text]
    assert write.startswith("WITH step_1 AS (UPDATE contract.schedules")
    assert "min(next_fire_at)" in look


async def test_of_claims_side_by_side_each_run_goes_to_one(store: FrozenPostgres) -> None:
    """RUN-3."""
    for number in range(30):
        await add_run(store, id=f"run_{number:02}")

    async def claim(owner: int) -> None:
        await store.write_guarded(lambda tx: runs.claim(tx, f"prc_{owner}", f"clm_{owner}", 10))

    await asyncio.gather(*(claim(owner) for owner in range(5)))
    found = await rows(store, "SELECT owner, fence, attempt FROM runs WHERE status = 'running'")
    assert {(row["fence"], row["attempt"]) for row in found} == {(1, 1)}
    left = await rows(store, "SELECT id FROM runs WHERE status = 'queued'")
    assert len(found) + len(left) == 30
    assert len(found) >= 20


async def test_a_run_that_came_to_wait_while_another_ended_is_freed(
    store: FrozenPostgres, postgres_address: Address
) -> None:
    """DSP-8: the end sees what was queued behind it while it waited for the schedule."""
    await add_schedule(store, in_flight_run_id="run_1")
    schedule_id = (await rows(store, "SELECT id FROM schedules"))[0]["id"]
    await add_run(store, **{**RUNNING, "id": "run_1", "schedule_id": schedule_id})
    other = await asyncpg.connect(postgres_address.dsn)
    await other.execute(
        f"BEGIN; SET search_path TO {postgres_address.schema}; SELECT 1 FROM schedules FOR UPDATE"
    )
    ending = dict.fromkeys(("model_calls", "input_tokens", "output_tokens", "cost", "response_preview"))
    ending |= {"id": "run_1", "owner": "prc_mine", "fence": 7, "status": "succeeded", "duration_us": 1}
    ending |= {"error_code": None, "error": None, "output": None}
    settled = {"run_id": "run_1", "schedule_id": schedule_id, "clears": 1}

    async def close(tx: Tx) -> None:
        landed = await runs.close(tx, [ending])
        await tx.send()
        assert landed.ids == {"run_1"}
        await runs.settle(tx, [settled], parallel=False)

    closing = asyncio.create_task(store.write_guarded(close))
    await until_waiting(other)
    values = {**RUN, "id": "run_2", "schedule_id": schedule_id, "claimable_at": None, "waits_for": "run_1"}
    columns = ", ".join(values)
    places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    await other.execute(f"INSERT INTO runs ({columns}) VALUES ({places})", *values.values())
    await other.execute("UPDATE schedules SET waiting_run_id = 'run_2'")
    await other.execute("COMMIT")
    await closing
    await other.close()
    [waiting] = await rows(store, "SELECT claimable_at, waits_for FROM runs WHERE id = 'run_2'")
    assert (waiting["claimable_at"], waiting["waits_for"]) == (AT, None)
    [schedule] = await rows(store, "SELECT in_flight_run_id, waiting_run_id FROM schedules")
    assert (schedule["in_flight_run_id"], schedule["waiting_run_id"]) == ("run_2", None)


async def until_waiting(other: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Until some session waits for a lock."""
    async with asyncio.timeout(10):
        while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            pass


async def test_a_zero_byte_becomes_what_can_be_stored(store: FrozenPostgres) -> None:
    await store.write(lambda tx: start(tx, "prc_a\x00b"))
    assert await started(store) == ["prc_a\ufffdb"]


async def test_half_a_pair_of_surrogates_is_refused_as_on_the_other_engine(store: FrozenPostgres) -> None:
    with pytest.raises(UnicodeEncodeError):
        await store.write(lambda tx: start(tx, "prc_\ud800"))
    assert await started(store) == []


async def test_of_many_only_so_many_have_a_connection(
    postgres_address: Address, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds none waits for its turn, and not for ever."""
    small = database.PostgresDatabase(postgres_address, clock, connections=1)
    held, go = asyncio.Event(), asyncio.Event()

    async def holds(_tx: Tx) -> None:
        held.set()
        await go.wait()

    holder = asyncio.create_task(small.read(holds))
    await held.wait()
    monkeypatch.setattr(pool, "WAIT_SECONDS", 0.02)
    with pytest.raises(Unavailable) as caught:
        await small.read(processes.zone_data)
    assert caught.value.code == "busy"
    monkeypatch.setattr(pool, "WAIT_SECONDS", 10)
    waiting = asyncio.create_task(small.read(processes.zone_data))
    go.set()
    await asyncio.gather(holder, waiting)
    await small.close()


async def test_a_caller_who_goes_away_leaves_nothing_and_takes_no_connection_along(
    postgres_address: Address, clock: FrozenClock
) -> None:
    small = FrozenPostgres(postgres_address, clock)
    begun = asyncio.Event()

    async def sleeps(tx: Tx) -> None:
        await start(tx, "prc_away")
        begun.set()
        await execute(tx, "SELECT pg_sleep(60)", {})

    caller = asyncio.create_task(small.write(sleeps))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert "prc_away" not in await started(small)
    await small.close()


async def test_nothing_is_answered_after_the_end(postgres_address: Address, clock: FrozenClock) -> None:
    closed = await open_empty(postgres_address, clock)
    await closed.write(start)
    await closed.close()
    with pytest.raises(Unavailable) as caught:
        await closed.write(start)
    assert caught.value.code == "stopping"


Work = Callable[[Tx], Awaitable[object]]


@pytest.mark.parametrize("how", ["write", "write_guarded", "read"])
async def test_no_state_is_left_in_a_session(store: FrozenPostgres, how: str) -> None:
    """A pooler may give the next transaction to another server connection, and this one to somebody else."""
    run: Callable[[Work], Awaitable[object]] = getattr(store, how)
    await run(processes.now)
    raw = await store._pool.take()
    try:
        assert await raw.fetchval("SHOW search_path") == '"$user", public'
        assert await raw.fetchval("SHOW lock_timeout") == "0"
    finally:
        store._pool.give(raw)
