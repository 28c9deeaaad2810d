"""Idempotency keys and the sealed answers kept under them. One method per query of ``sql/idempotency.sql``."""

from dataclasses import dataclass

from gnomon.stores.database import Tx


@dataclass(frozen=True, slots=True)
class Kept:
    """What stands under a key: the fingerprint of its first request; no answer while that is still going on."""

    fingerprint: str
    answer: bytes | None


async def reserve(tx: Tx, scope: str, key: str, fingerprint: str, lasts_us: int) -> bool:
    """Take the key for this transaction's effect; whether nobody had it (or had it too long ago)."""
    row = await tx.one(
        "idempotency.reserve", scope=scope, key=key, fingerprint=fingerprint, lasts_us=lasts_us
    )
    return row is not None


async def find(tx: Tx, scope: str, key: str) -> Kept | None:
    """What stands under the key."""
    row = await tx.one("idempotency.find", scope=scope, key=key)
    return None if row is None else Kept(row["fingerprint"], row["answer"])


async def keep(tx: Tx, scope: str, key: str, answer: bytes) -> None:
    """Keep the answer under the reserved key."""
    await tx.run("idempotency.keep", scope=scope, key=key, answer=answer)


async def clean(tx: Tx, limit: int) -> int:
    """Forget up to ``limit`` expired keys; how many there were."""
    return await tx.run("idempotency.clean", limit=limit)
