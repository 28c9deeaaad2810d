"""API keys and the centre's own secrets on every engine (SEC-3)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gnomon.domain.api_key import ApiKey
from gnomon.domain.target import Target, TargetKind
from gnomon.stores import api_keys
from gnomon.stores.database import CheckViolation, Database, UniqueViolation
from gnomon.testing.clock import FrozenClock
from support.databases import START

KEY = ApiKey("key_1", "ci", "abcd", ("agents:read", "runs:*"), None, START, "cli", None, None, None)
BOUND = replace(KEY, id="key_2", scopes=(), target=Target(TargetKind.TEAM, "tea_1"))
MINUTE = 60_000_000


async def test_a_key_is_found_by_its_hash_alone(database: Database, clock: FrozenClock) -> None:
    await database.write(lambda tx: api_keys.insert(tx, KEY, b"one"))
    await database.write(lambda tx: api_keys.insert(tx, BOUND, b"two"))
    found = await database.read(lambda tx: api_keys.by_hash(tx, b"two"))
    assert found is not None
    assert (found.key, found.hash, found.now) == (BOUND, b"two", clock.micros())
    assert await database.read(lambda tx: api_keys.by_hash(tx, b"three")) is None
    with pytest.raises(UniqueViolation):
        await database.write(lambda tx: api_keys.insert(tx, replace(KEY, id="key_3"), b"one"))


async def test_a_key_never_has_scopes_and_a_target(database: Database) -> None:
    """SEC-3: the schema itself refuses it."""
    both = replace(BOUND, scopes=("*",))
    with pytest.raises(CheckViolation):
        await database.write(lambda tx: api_keys.insert(tx, both, b"x"))


async def test_a_revoked_key_is_revoked_once_and_still_known_by_its_hash(database: Database) -> None:
    await database.write(lambda tx: api_keys.insert(tx, KEY, b"one"))
    assert await database.write(lambda tx: api_keys.revoke(tx, KEY.id))
    assert not await database.write(lambda tx: api_keys.revoke(tx, KEY.id))
    assert await database.read(lambda tx: api_keys.by_id(tx, KEY.id)) is None
    found = await database.read(lambda tx: api_keys.by_hash(tx, b"one"))
    assert found is not None
    assert found.key.revoked_at == START
    assert await database.read(lambda tx: api_keys.page(tx, "", 9, revoked=False)) == []
    assert len(await database.read(lambda tx: api_keys.page(tx, "", 9, revoked=True))) == 1
    assert await database.read(api_keys.count) == 0


async def test_use_is_noted_at_most_once_in_a_while(database: Database, clock: FrozenClock) -> None:
    """SEC-3: last use, without a write for each request."""
    await database.write(lambda tx: api_keys.insert(tx, KEY, b"one"))
    assert await database.write(lambda tx: api_keys.use(tx, KEY.id, MINUTE))
    clock.advance(59)
    assert not await database.write(lambda tx: api_keys.use(tx, KEY.id, MINUTE))
    clock.advance(1)
    assert await database.write(lambda tx: api_keys.use(tx, KEY.id, MINUTE))
    found = await database.read(lambda tx: api_keys.by_id(tx, KEY.id))
    assert found is not None
    assert found.last_used_at == START + timedelta(minutes=1)


async def test_the_keys_of_a_target_are_revoked_together(database: Database) -> None:
    """SCH-12's like: what is bound to a deleted target opens nothing."""
    await database.write(lambda tx: api_keys.insert(tx, KEY, b"one"))
    await database.write(lambda tx: api_keys.insert(tx, BOUND, b"two"))
    same_id = Target(TargetKind.AGENT, "tea_1")
    assert await database.write(lambda tx: api_keys.revoke_of_target(tx, same_id)) == []
    assert BOUND.target is not None
    target = BOUND.target
    assert await database.write(lambda tx: api_keys.revoke_of_target(tx, target)) == [BOUND.id]
    assert await database.read(api_keys.count) == 1


async def test_name_and_expiry_can_be_edited(database: Database) -> None:
    await database.write(lambda tx: api_keys.insert(tx, KEY, b"one"))
    wanted = replace(KEY, name="deploy", expires_at=START + timedelta(days=1))
    await database.write(lambda tx: api_keys.edit(tx, wanted))
    assert await database.read(lambda tx: api_keys.by_id(tx, KEY.id)) == wanted


async def test_the_first_secret_of_a_name_stands(database: Database) -> None:
    """Two processes that start at once agree on one pepper."""
    assert await database.read(lambda tx: api_keys.secret(tx, "pepper")) is None
    assert await database.write(lambda tx: api_keys.keep_secret(tx, "pepper", b"\x00first")) == b"\x00first"
    assert await database.write(lambda tx: api_keys.keep_secret(tx, "pepper", b"second")) == b"\x00first"


async def test_which_keys_have_ended_is_asked_for_many_at_once(
    database: Database, clock: FrozenClock
) -> None:
    """SEC-3: revoked, expired, or not there; a role is kept with a key."""
    for name, end in (("open", None), ("ends", START + timedelta(seconds=5)), ("revoked", None)):
        key = replace(KEY, id=name, expires_at=end, role="pm")
        await database.write(lambda tx, key=key: api_keys.insert(tx, key, key.id.encode()))  # type: ignore[misc]
    await database.write(lambda tx: api_keys.revoke(tx, "revoked"))
    asked = ["open", "ends", "revoked", "nobody"]
    assert await database.read(lambda tx: api_keys.closed(tx, asked)) == {"revoked", "nobody"}
    clock.advance(5)
    assert await database.read(lambda tx: api_keys.closed(tx, asked)) == {"ends", "revoked", "nobody"}
    found = await database.read(lambda tx: api_keys.by_id(tx, "open"))
    assert found is not None
    assert found.role == "pm"
