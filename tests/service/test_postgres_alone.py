"""Statements that stand alone: beside others at work on the same rows, under a role's own settings, cut off in the middle."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from gnomon.domain.errors import Unavailable
from gnomon.stores import runs, slots
from gnomon.stores.database import Landed, Tx, Value
from gnomon.stores.postgres.address import Address
from gnomon.stores.postgres.connection import Raw
from gnomon.testing.clock import FrozenClock
from support.postgres import FrozenPostgres, open_empty
from support.rows import AT, RUNNING, add_run, add_schedule
from support.rows import execute as rows

pytestmark = pytest.mark.anyio
ENDING: dict[str, Value] = {
    "owner": "prc_mine",
    "fence": 7,
    "status": "succeeded",
    "duration_us": 5,
    **dict.fromkeys(("model_calls", "input_tokens", "output_tokens", "cost")),
    **dict.fromkeys(("response_preview", "error_code", "error", "output")),
}


@pytest.fixture
async def store(postgres_address: Address, clock: FrozenClock) -> AsyncIterator[FrozenPostgres]:
    opened = await open_empty(postgres_address, clock)
    yield opened
    await opened.close()


@pytest.fixture
async def other(postgres_address: Address) -> AsyncIterator[Raw]:
    """Somebody else's session, in the schema."""
    raw = await asyncpg.connect(postgres_address.dsn)
    await raw.execute(f"SET search_path TO {postgres_address.schema}")
    yield raw
    await raw.close()


async def in_flight(store: FrozenPostgres, *numbers: int) -> None:
    for number in numbers:
        await add_schedule(store, id=f"sch_{number}", in_flight_run_id=f"run_{number}")
        await add_run(store, **{**RUNNING, "id": f"run_{number}", "schedule_id": f"sch_{number}"})


async def end(tx: Tx, *numbers: int) -> Landed:
    """The common end of these runs."""
    return await runs.close(tx, [ENDING | {"id": f"run_{number}"} for number in numbers], plain=True)


async def move(tx: Tx, *names: str) -> None:
    """Move these schedules by an hour, in one statement."""
    await slots.realign(tx, [{"id": name, "claimed_at": AT, "next_fire_at": AT + 3_600} for name in names])


async def moved(store: FrozenPostgres) -> list[str]:
    found = await rows(store, "SELECT id FROM schedules WHERE next_fire_at > :at ORDER BY id", at=AT)
    return [row["id"] for row in found]


async def until_waiting(other: Raw) -> None:
    """Until some session waits for a lock."""
    async with asyncio.timeout(10):
        while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            pass


async def test_the_common_end_waits_for_no_schedule(store: FrozenPostgres, other: Raw) -> None:
    """RUN-3: a statement that stands alone has no bound of its own for locks, and holds up the ends of others."""
    await in_flight(store, 1, 2)
    await other.execute("BEGIN; SELECT 1 FROM schedules WHERE id = 'sch_1' FOR UPDATE")
    async with asyncio.timeout(5):
        landed = await store.write_guarded(lambda tx: end(tx, 1, 2))
    assert landed.ids == {"run_1", "run_2"}
    await other.execute("ROLLBACK")


async def test_a_run_that_was_renewed_while_its_end_waited_ends_all_the_same(
    store: FrozenPostgres, other: Raw
) -> None:
    """RUN-3: it is still under the same fence."""
    await in_flight(store, 1)
    await other.execute("BEGIN; UPDATE runs SET lease_until = lease_until + 1")
    ending = asyncio.create_task(store.write_guarded(lambda tx: end(tx, 1)))
    await until_waiting(other)
    await other.execute("COMMIT")
    assert (await ending).ids == {"run_1"}


@pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
async def test_a_role_s_own_isolation_makes_nothing_wrong(
    store: FrozenPostgres, other: Raw, clock: FrozenClock, isolation: str
) -> None:
    """What stands alone is what the server was set to: it loses more often then, and is run again."""
    await in_flight(store, 1)
    dsn = f"{store.address.dsn}?default_transaction_isolation={isolation.replace(' ', '%20')}&search_path=pg_temp"
    stern = FrozenPostgres(replace(store.address, dsn=dsn), clock)
    await other.execute("BEGIN; UPDATE runs SET trace_id = 'x'")
    ending = asyncio.create_task(stern.write_guarded(lambda tx: end(tx, 1)))
    await until_waiting(other)
    await other.execute("COMMIT")
    assert (await ending).ids == {"run_1"}
    assert [row["trace_id"] for row in await rows(store, "SELECT trace_id FROM runs")] == ["x"]
    await stern.close()


async def test_what_stands_alone_and_waits_in_a_circle_is_untied(
    store: FrozenPostgres, other: Raw, clock: FrozenClock
) -> None:
    """40P01 is no doubt: nothing of it happened, and it is run again."""
    for name in ("sch_1", "sch_2"):
        await add_schedule(store, id=name)
    soon = FrozenPostgres(replace(store.address, dsn=f"{store.address.dsn}?deadlock_timeout=100ms"), clock)
    await other.execute(
        "SET deadlock_timeout TO 60000; BEGIN; UPDATE schedules SET fence = 1 WHERE id = 'sch_2'"
    )
    moving = asyncio.create_task(soon.write_guarded(lambda tx: move(tx, "sch_1", "sch_2")))
    await until_waiting(other)
    await other.execute("UPDATE schedules SET fence = 1 WHERE id = 'sch_1'")
    await other.execute("COMMIT")
    await moving
    assert await moved(store) == ["sch_1", "sch_2"]
    await soon.close()


async def test_what_stands_alone_and_is_cut_off_takes_its_connection_along(
    store: FrozenPostgres, other: Raw
) -> None:
    """RUN-5a: it may land after all; nobody else gets a connection on which it is still under way."""
    await add_schedule(store, id="sch_1")
    await other.execute("BEGIN; UPDATE schedules SET fence = 1")
    await store.look(slots.next_due)
    moving = asyncio.create_task(store.write_guarded(lambda tx: move(tx, "sch_1")))
    await until_waiting(other)
    moving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await moving
    assert store._pool._idle == []
    assert await store.look(slots.next_due) == 0
    await other.execute("COMMIT")


async def test_a_statement_that_the_server_ended_was_not_carried_out(
    store: FrozenPostgres, other: Raw, clock: FrozenClock
) -> None:
    """RUN-5a: a time limit of the role's is an answer, and no doubt."""
    await add_schedule(store, id="sch_1")
    hasty = FrozenPostgres(replace(store.address, dsn=f"{store.address.dsn}?statement_timeout=300ms"), clock)
    await other.execute("BEGIN; UPDATE schedules SET fence = 1")
    with pytest.raises(Unavailable) as caught:
        await hasty.write_guarded(lambda tx: move(tx, "sch_1"))
    assert caught.value.code == "busy"
    assert len(hasty._pool._idle) == 1
    await other.execute("COMMIT")
    assert await moved(store) == []
    await hasty.close()
