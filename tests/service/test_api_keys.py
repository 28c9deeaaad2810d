"""The key service: what opens, what never touches the database, what two processes agree on (SEC-3)."""

import asyncio
from dataclasses import replace

import pytest

from gnomon.domain.api_key import KeyKind, make_text
from gnomon.domain.caller import Caller, system
from gnomon.domain.errors import Refused, Unauthenticated, Unavailable
from gnomon.domain.target import TargetKind
from gnomon.services.api_keys import ApiKeys, NewKey
from gnomon.services.mint import Mint
from gnomon.stores import api_keys
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support import rows

ANA = system("ana")


def keys_over(database: Database, clock: FrozenClock, seed: int = 1, tenant: str | None = None) -> ApiKeys:
    entropy = SeededEntropy(seed)
    return ApiKeys(database, clock, Mint(clock, entropy), entropy, tenant=tenant)


@pytest.fixture
def keys(database: Database, clock: FrozenClock) -> ApiKeys:
    return keys_over(database, clock)


async def made(keys: ApiKeys, caller: Caller = ANA, **written: object) -> NewKey:
    found = await keys.create(caller, written or {"scopes": ["*"]})
    assert isinstance(found, NewKey)
    return found


async def refusal(keys: ApiKeys, text: str) -> str:
    with pytest.raises(Unauthenticated) as caught:
        await keys.authenticate(text)
    assert not text or text[-8:] not in caught.value.message
    return caught.value.code


async def test_a_key_opens_what_it_was_made_for(keys: ApiKeys, database: Database) -> None:
    key = await made(keys, scopes=["runs:read", "runs:read", "tasks:*"])
    caller = await keys.authenticate(key.text)
    assert (caller.actor, caller.key_id) == (key.key.id, key.key.id)
    assert caller.scopes == ("runs:read", "tasks:*")
    assert (caller.target, caller.tenant) == (None, None)
    await rows.add(database, "teams", rows.TEAM, slug="crew")
    bound = await made(keys, target={"kind": "team", "id": "crew"})
    caller = await keys.authenticate(bound.text)
    assert caller.target is not None
    assert (caller.target.kind, caller.target.id) == (TargetKind.TEAM, rows.TEAM["id"])
    assert caller.scopes == ()


async def test_a_key_may_serve_one_role(keys: ApiKeys) -> None:
    """SEC-3: it works for that role alone, and makes no key that would serve another."""
    scopes = ["instances:connect", "tasks:claim", "keys:write"]
    key = await made(keys, scopes=scopes, role="pm")
    assert (key.key.role, (await keys.get(key.key.id)).role) == ("pm", "pm")
    caller = await keys.authenticate(key.text)
    caller.require_role("pm")
    with pytest.raises(Refused, match='serves the role "pm", not "dev"') as refused:
        caller.require_role("dev")
    assert (refused.value.code, refused.value.data) == ("key_bound_to_role", {"role": "pm"})
    assert (await made(keys, caller, scopes=["tasks:claim"], role="pm")).key.role == "pm"
    for other in ({"role": "dev"}, {}):
        with pytest.raises(Refused, match="serves the role"):
            await keys.create(caller, {"scopes": ["tasks:claim"], **other})
    (await keys.authenticate((await made(keys)).text)).require_role("whatever")


async def test_two_processes_that_start_at_once_agree(database: Database, clock: FrozenClock) -> None:
    """SEC-3: one pepper, whoever drew it."""
    several = [keys_over(database, clock, seed) for seed in range(5)]
    texts = [key.text for key in await asyncio.gather(*(made(keys) for keys in several))]
    for keys in several:
        for text in texts:
            await keys.authenticate(text)


async def test_of_processes_that_start_at_once_one_makes_the_first_key(
    database: Database, clock: FrozenClock
) -> None:
    """OPS-3: nobody has to ask which of several admin keys is the one to keep."""
    starts = [keys_over(database, clock, seed) for seed in range(4)]
    given = {"scopes": ["*"]}
    found = [
        key
        for key in await asyncio.gather(*(keys.create_first(ANA, given) for keys in starts))
        if key is not None
    ]
    assert len(found) == 1
    assert (await starts[0].authenticate(found[0].text)).key_id == found[0].key.id
    assert await starts[0].create_first(ANA, given) is None


async def test_a_tenant_s_key_opens_its_own_database_alone(database: Database, clock: FrozenClock) -> None:
    """SEC-3, SEC-5, casebook sec-11: even where both stand in one file, as after a wrong restore."""
    master, acme = keys_over(database, clock, 1), keys_over(database, clock, 2, tenant="acme")
    system_key, tenant_key = await made(master), await made(acme)
    assert (await acme.authenticate(tenant_key.text)).tenant == "acme"
    assert await refusal(master, tenant_key.text) == "key_unknown"
    assert await refusal(acme, system_key.text) == "key_unknown"


async def test_a_malformed_key_never_reaches_the_database(
    keys: ApiKeys, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reliability 3: neither a look-up nor a path comes of it."""
    good = (await made(keys)).text

    async def touched(*_: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr(database, "read", touched)
    monkeypatch.setattr(database, "write", touched)
    for text in ("", "gnk_", good[:-1], good.replace("master", "../../x"), good.replace("_", "-")):
        assert await refusal(keys, text) == "key_malformed"


async def test_a_good_checksum_with_a_wrong_secret_opens_nothing(keys: ApiKeys) -> None:
    """Reliability 5."""
    await made(keys)
    for bits in range(50):
        assert await refusal(keys, make_text("master", KeyKind.SCOPES, bits << 100)) == "key_unknown"


async def test_a_hash_that_was_changed_in_the_database_opens_nothing(
    keys: ApiKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash that was found is compared again, in constant time, with the one that was asked for."""
    key = await made(keys)
    real = api_keys.by_hash

    async def another(*args: object) -> api_keys.Found | None:
        found = await real(*args)  # type: ignore[arg-type]
        return None if found is None else replace(found, hash=bytes(32))

    monkeypatch.setattr(api_keys, "by_hash", another)
    assert await refusal(keys, key.text) == "key_unknown"


async def test_a_database_that_can_not_note_the_use_still_opens(
    keys: ApiKeys, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk lets people read what is there."""
    key = await made(keys)

    async def full(*_: object) -> None:
        raise Unavailable("full", code="disk_full")

    monkeypatch.setattr(database, "write", full)
    assert (await keys.authenticate(key.text)).key_id == key.key.id


async def test_the_operator_s_token_opens_everything_and_is_no_key(
    database: Database, clock: FrozenClock
) -> None:
    entropy = SeededEntropy()
    keys = ApiKeys(database, clock, Mint(clock, entropy), entropy, operator_token="drawn for this process")
    assert (await keys.authenticate("drawn for this process")).may("keys:write")
    assert await refusal(keys, "drawn for this proces") == "key_malformed"
    assert await refusal(keys_over(database, clock), "drawn for this process") == "key_malformed"


async def test_the_random_part_is_never_the_same(keys: ApiKeys) -> None:
    texts = {(await made(keys)).text for _ in range(50)}
    assert len({text.split("_")[3] for text in texts}) == 50


async def test_every_change_is_in_the_audit_under_its_maker(keys: ApiKeys, database: Database) -> None:
    """SEC-7: and nothing secret with it."""
    key = await made(keys)
    await keys.edit(ANA, key.key.id, {"name": "ci"})
    await keys.edit(ANA, key.key.id, {"name": "ci"})
    await keys.revoke(ANA, key.key.id)
    entries = await rows.execute(
        database, "SELECT actor, action, subject_id, detail FROM audit_entries ORDER BY seq"
    )
    assert [(entry["actor"], entry["action"]) for entry in entries] == [
        ("ana", "CREATE"),
        ("ana", "UPDATE"),
        ("ana", "REVOKE"),
    ]
    assert {entry["subject_id"] for entry in entries} == {key.key.id}
    assert key.text.split("_")[3] not in repr(entries)


async def test_a_key_lasts_over_a_restart(
    database: Database, neighbour: Database, clock: FrozenClock
) -> None:
    text = (await made(keys_over(database, clock))).text
    assert (await keys_over(neighbour, clock, 9).authenticate(text)).may("*")
