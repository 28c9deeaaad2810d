"""API keys and the centre's own secrets. One method per query of ``sql/api_keys.sql``."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from gnomon.domain.api_key import ApiKey
from gnomon.domain.instants import from_micros, maybe_instant, maybe_micros
from gnomon.domain.target import Target, TargetKind
from gnomon.stores.database import Row, Tx


@dataclass(frozen=True, slots=True)
class Found:
    """A key found by its hash, and the database's clock at that moment (microseconds)."""

    key: ApiKey
    hash: bytes
    now: int


async def secret(tx: Tx, name: str) -> bytes | None:
    """A secret of the centre."""
    row = await tx.one("api_keys.secret", name=name)
    return None if row is None else bytes(row["value"])


async def keep_secret(tx: Tx, name: str, value: bytes) -> bytes:
    """Keep a secret unless there is one; the one that stands."""
    await tx.run("api_keys.keep_secret", name=name, value=value)
    kept = await secret(tx, name)
    assert kept is not None
    return kept


async def insert(tx: Tx, key: ApiKey, digest: bytes) -> int:
    """Insert a key under the hash of its text; the instant of its making, by the database's clock."""
    row = await tx.one(
        "api_keys.insert",
        id=key.id,
        name=key.name,
        hash=digest,
        hint=key.hint,
        scopes=json.dumps(key.scopes),
        target_kind=None if key.target is None else key.target.kind.value,
        target_id=None if key.target is None else key.target.id,
        role=key.role,
        created_by=key.created_by,
        expires_at=maybe_micros(key.expires_at),
    )
    assert row is not None
    created_at: int = row["created_at"]
    return created_at


async def by_hash(tx: Tx, digest: bytes) -> Found | None:
    """The key of this hash, whether it still opens anything or not."""
    row = await tx.one("api_keys.by_hash", hash=digest)
    return None if row is None else Found(_key(row), bytes(row["hash"]), row["now"])


async def by_id(tx: Tx, key_id: str) -> ApiKey | None:
    """A key that is not revoked."""
    row = await tx.one("api_keys.by_id", id=key_id)
    return None if row is None else _key(row)


async def page(tx: Tx, after: str, limit: int, *, revoked: bool) -> list[ApiKey]:
    """Keys in the order of their making, after an id; with the revoked ones or without."""
    rows = await tx.all("api_keys.page", after=after, limit=limit, revoked=int(revoked))
    return [_key(row) for row in rows]


async def count(tx: Tx) -> int:
    """How many keys there are that are not revoked."""
    row = await tx.one("api_keys.count")
    assert row is not None
    number: int = row["count"]
    return number


async def edit(tx: Tx, key: ApiKey) -> None:
    """Write name and expiry."""
    await tx.run("api_keys.edit", id=key.id, name=key.name, expires_at=maybe_micros(key.expires_at))


async def use(tx: Tx, key_id: str, rest_us: int) -> bool:
    """Note that a key is used, unless that was noted less than ``rest_us`` ago."""
    return await tx.run("api_keys.use", id=key_id, rest_us=rest_us) == 1


async def revoke(tx: Tx, key_id: str) -> bool:
    """Revoke a key; whether it was not yet."""
    return await tx.one("api_keys.revoke", id=key_id) is not None


async def closed(tx: Tx, ids: Iterable[str]) -> set[str]:
    """Those of the keys that open nothing any more: revoked, expired, or gone."""
    wanted = list(ids)
    rows = await tx.tuples("api_keys.still_open", ids=json.dumps(wanted))
    return set(wanted) - {row[0] for row in rows}


async def revoke_of_target(tx: Tx, target: Target) -> list[str]:
    """Revoke every key that is bound to a target; their ids."""
    rows = await tx.all("api_keys.revoke_of_target", kind=target.kind.value, target_id=target.id)
    return [row["id"] for row in rows]


def _key(row: Row) -> ApiKey:
    kind = row["target_kind"]
    return ApiKey(
        id=row["id"],
        name=row["name"],
        hint=row["hint"],
        scopes=tuple(json.loads(row["scopes"])),
        target=None if kind is None else Target(TargetKind(kind), row["target_id"]),
        created_at=from_micros(row["created_at"]),
        created_by=row["created_by"],
        expires_at=maybe_instant(row["expires_at"]),
        last_used_at=maybe_instant(row["last_used_at"]),
        revoked_at=maybe_instant(row["revoked_at"]),
        role=row["role"],
    )
