"""Idempotency keys on every engine: one holder at a time, answers kept, expiry by the database's clock (IDM-2)."""

from functools import partial

from gnomon.stores import idempotency
from gnomon.stores.database import Database
from gnomon.stores.idempotency import Kept
from gnomon.testing.clock import FrozenClock

DAY = 86_400_000_000


async def test_a_key_is_taken_once_and_keeps_its_answer(database: Database) -> None:
    assert await database.write(lambda tx: idempotency.reserve(tx, "scope", "k", "print", DAY))
    assert not await database.write(lambda tx: idempotency.reserve(tx, "scope", "k", "other", DAY))
    assert await database.read(lambda tx: idempotency.find(tx, "scope", "k")) == Kept("print", None)
    await database.write(lambda tx: idempotency.keep(tx, "scope", "k", b"\x00answer"))
    assert await database.read(lambda tx: idempotency.find(tx, "scope", "k")) == Kept("print", b"\x00answer")


async def test_the_same_key_in_another_scope_is_another_key(database: Database) -> None:
    """Reliability 61: the same key on another route, or of another caller."""
    for scope in ("a POST /x", "a POST /y", "b POST /x"):
        assert await database.write(
            partial(idempotency.reserve, scope=scope, key="k", fingerprint="print", lasts_us=DAY)
        )


async def test_an_expired_key_can_be_taken_again_and_is_empty_then(
    database: Database, clock: FrozenClock
) -> None:
    """Casebook ide-06: a day later it is a new request."""
    await database.write(lambda tx: idempotency.reserve(tx, "scope", "k", "print", DAY))
    await database.write(lambda tx: idempotency.keep(tx, "scope", "k", b"answer"))
    clock.advance(86_399)
    assert not await database.write(lambda tx: idempotency.reserve(tx, "scope", "k", "print", DAY))
    clock.advance(1)
    assert await database.write(lambda tx: idempotency.reserve(tx, "scope", "k", "new", DAY))
    assert await database.read(lambda tx: idempotency.find(tx, "scope", "k")) == Kept("new", None)


async def test_only_expired_keys_are_cleaned_in_batches(database: Database, clock: FrozenClock) -> None:
    for n in range(5):
        await database.write(
            partial(idempotency.reserve, scope="scope", key=str(n), fingerprint="print", lasts_us=DAY)
        )
    clock.advance(86_400)
    await database.write(lambda tx: idempotency.reserve(tx, "scope", "young", "print", DAY))
    assert await database.write(lambda tx: idempotency.clean(tx, 3)) == 3
    assert await database.write(lambda tx: idempotency.clean(tx, 3)) == 2
    assert await database.write(lambda tx: idempotency.clean(tx, 3)) == 0
    assert await database.read(lambda tx: idempotency.find(tx, "scope", "young")) is not None
