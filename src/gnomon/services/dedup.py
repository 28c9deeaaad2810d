"""One effect for each Idempotency-Key: the answer is kept in the same transaction as the effect (IDM-2).

A scope is the caller, the method and the path. Answers are sealed with the caller's own secret, so that a database in
the wrong hands shows no key that was handed out once (SEC-3). Knows no status code: an answer is whatever the edge that
asked renders, and gets back.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from gnomon.domain.errors import Conflict, Invalid
from gnomon.domain.instants import SECOND
from gnomon.domain.sealing import seal, unseal
from gnomon.stores import idempotency
from gnomon.stores.database import Database, Tx

T = TypeVar("T")
Answer = dict[str, Any]
LASTS_SECONDS = 24 * 3_600
EVERY_TICKS = 10
CLEAN_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Once:
    """One request that may take effect once.

    ``fingerprint`` stands for its body, ``seal`` is the caller's secret (up to 64 bytes), ``render`` makes the
    JSON-safe answer of the record that the effect gave.
    """

    scope: str
    key: str
    fingerprint: str
    seal: bytes
    render: Callable[[Any], Answer]

    @classmethod
    def under(
        cls, key: str, scope: str, seal: bytes, body: object, render: Callable[[Any], Answer]
    ) -> "Once":
        """The effect of a request with this JSON body; two spellings of one body are the same body."""
        canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
        mark = hashlib.blake2b(canonical.encode(), key=seal, digest_size=16).hexdigest()
        return cls(scope, key, mark, seal, render)


@dataclass(frozen=True, slots=True)
class Replay:
    """The answer that the first request with this key got."""

    answer: Answer


async def run_once(tx: Tx, once: Once | None, effect: Callable[[Tx], Awaitable[T]]) -> T | Replay:
    """Let ``effect`` happen in this transaction unless its key has been used; what it gave, or the kept answer.

    Raises:
        Invalid: ``idempotency_key_reused``, the key came with another body before.
        Conflict: ``idempotency_key_in_use``, the first request with the key is still going on.
    """
    if once is None:
        return await effect(tx)
    found = await begin(tx, once)
    if found is not None:
        return found
    record = await effect(tx)
    await end(tx, once, record)
    return record


async def begin(tx: Tx, once: Once) -> Replay | None:
    """Take the key, or give the answer kept under it. An effect of several transactions commits this with its first.

    Raises:
        Invalid: as ``run_once``.
        Conflict: as ``run_once``.
    """
    if await idempotency.reserve(tx, once.scope, once.key, once.fingerprint, LASTS_SECONDS * SECOND):
        return None
    kept = await idempotency.find(tx, once.scope, once.key)
    assert kept is not None
    if kept.fingerprint != once.fingerprint:
        raise Invalid(
            "This Idempotency-Key came with another body before. Use a new key for a new request.",
            code="idempotency_key_reused",
        )
    if kept.answer is None:
        raise Conflict(
            "The first request with this Idempotency-Key is still going on. Ask again in a moment.",
            code="idempotency_key_in_use",
        )
    text = unseal(once.seal, kept.answer)
    if text is None:
        raise Conflict(
            "The answer kept under this Idempotency-Key can't be read with this API key.",
            code="idempotency_key_in_use",
        )
    answer: Answer = json.loads(text)
    return Replay(answer)


async def end(tx: Tx, once: Once, record: object) -> None:
    """Keep the answer of an effect that has happened."""
    text = json.dumps(once.render(record), separators=(",", ":")).encode()
    await idempotency.keep(tx, once.scope, once.key, seal(once.seal, text))


class Cleaning:
    """A chore of the watchdog: expired keys go once in so many sweeps. An expired one is none, gone or not."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ticks = 0

    async def tick(self) -> None:
        """Clean where it is time to, at the first sweep too."""
        if self._ticks % EVERY_TICKS == 0:
            await clean(self._database)
        self._ticks += 1


async def clean(database: Database) -> None:
    """Forget expired keys, a batch for each transaction."""
    while await database.write(lambda tx: idempotency.clean(tx, CLEAN_BATCH)) == CLEAN_BATCH:
        pass
