"""One effect for each Idempotency-Key, also between processes and while the first is still going on (IDM-2)."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from gnomon.domain.errors import Conflict, Invalid
from gnomon.services.dedup import EVERY_TICKS, LASTS_SECONDS, Cleaning, Once, Replay, begin, end, run_once
from gnomon.stores import processes
from gnomon.stores.database import Database, Tx
from gnomon.testing.clock import FrozenClock
from support import rows

ONCE = Once("key_1 POST /v1/things", "order-1", "print", b"s" * 64, lambda record: {"body": record})


async def effect(tx: Tx) -> str:
    """Something that must happen once."""
    await processes.start(tx, f"prc_{uuid4().hex}", "here", 1, "0", "2026f")
    return "made"


async def effects(database: Database) -> int:
    return len(await rows.execute(database, "SELECT * FROM processes"))


async def test_of_many_at_once_over_two_connections_one_takes_effect(
    database: Database, neighbour: Database
) -> None:
    """Casebook ide-01, ide-03."""
    asked = [
        one.write(lambda tx: run_once(tx, ONCE, effect)) for one in (database, neighbour) for _ in range(10)
    ]
    found = await asyncio.gather(*asked)
    assert found.count("made") == 1
    assert found.count(Replay({"body": "made"})) == 19
    assert await effects(database) == 1


async def test_while_the_first_goes_on_a_repeat_is_told_to_wait(database: Database) -> None:
    """CONTRACT: still running is 409."""
    assert await database.write(lambda tx: begin(tx, ONCE)) is None
    with pytest.raises(Conflict) as caught:
        await database.write(lambda tx: run_once(tx, ONCE, effect))
    assert caught.value.code == "idempotency_key_in_use"
    await database.write(lambda tx: end(tx, ONCE, "done"))
    assert await database.write(lambda tx: run_once(tx, ONCE, effect)) == Replay({"body": "done"})
    assert await effects(database) == 0


async def test_another_body_is_refused_and_nothing_happens(database: Database) -> None:
    """Casebook ide-02."""
    await database.write(lambda tx: run_once(tx, ONCE, effect))
    other = replace(ONCE, fingerprint="another")
    with pytest.raises(Invalid) as caught:
        await database.write(lambda tx: run_once(tx, other, effect))
    assert caught.value.code == "idempotency_key_reused"
    assert await effects(database) == 1


async def test_another_caller_s_secret_opens_no_kept_answer(database: Database) -> None:
    """SEC-3: nothing is given out, and nothing happens a second time."""
    await database.write(lambda tx: run_once(tx, ONCE, effect))
    other = replace(ONCE, seal=b"t" * 64)
    with pytest.raises(Conflict):
        await database.write(lambda tx: run_once(tx, other, effect))
    assert await effects(database) == 1


async def test_an_effect_that_fails_leaves_the_key_free(database: Database) -> None:
    """Casebook ide-06."""

    async def fails(tx: Tx) -> str:
        await effect(tx)
        raise Invalid("no")

    with pytest.raises(Invalid):
        await database.write(lambda tx: run_once(tx, ONCE, fails))
    assert await effects(database) == 0
    assert await database.write(lambda tx: run_once(tx, ONCE, effect)) == "made"


async def test_without_a_key_every_request_takes_effect(database: Database) -> None:
    for _ in range(2):
        assert await database.write(lambda tx: run_once(tx, None, effect)) == "made"
    assert await effects(database) == 2


async def test_expired_keys_go_once_in_so_many_sweeps(database: Database, clock: FrozenClock) -> None:
    """P18: an idle process asks for little, and an expired key is none, gone or not."""

    async def kept() -> int:
        return len(await rows.execute(database, "SELECT * FROM idempotency_keys"))

    cleaning = Cleaning(database)
    await cleaning.tick()
    await database.write(lambda tx: run_once(tx, ONCE, effect))
    clock.advance(LASTS_SECONDS + 1)
    for _ in range(EVERY_TICKS - 1):
        await cleaning.tick()
    assert await kept() == 1
    await cleaning.tick()
    assert await kept() == 0
