"""Guards taken out of the product, one at a time: the simulator must notice each (PRF-4 for the simulator itself).

Each plant is a context manager that yields the queries to replace; whatever it patched is put back afterwards.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from gnomon.services.clock_guard import ClockGuard
from gnomon.services.dispatcher import Dispatcher
from gnomon.services.lost_claims import LostClaims
from gnomon.services.mint import Mint
from gnomon.services.renewal import Renewal
from gnomon.services.runner import Runner
from gnomon.stores import audit, queries, runs, slots
from gnomon.stores.audit import NewEntry
from gnomon.stores.database import Landed, Row, Tx
from gnomon.stores.queries import Query
from support.simulation import Script

Changed = Mapping[str, Query]
_ONE_HOST = "prc_thesamehost"


@dataclass(frozen=True, slots=True)
class Plant:
    """A guard that is missing, and the kind of world in which that shows soonest."""

    name: str
    take_out: Callable[[str], AbstractContextManager[Changed]]  # from the engine whose queries they are
    script: Script
    shows: str  # the invariant that must be broken


def without(engine: str, name: str, *guards: str) -> dict[str, Query]:
    query = queries.load(engine)[name]
    text = query.text
    for guard in guards:
        assert text.count(guard) == 1, f"{guard!r} is not in {name} any more"
        text = text.replace(guard, "true")
    used = tuple(p for p in query.parameters if query.rows or re.search(rf":{p}\b", text))
    return {name: replace(query, statements=(text,), parameters=used)}


@contextmanager
def unguarded_claim(engine: str) -> Iterator[Changed]:
    """The queue is read in one transaction and claimed in another, and the claim asks no more (RUN-1)."""
    seen: dict[str, list[tuple[Any, ...]]] = {}  # by process

    async def claim_batch(runner: Any, places: int) -> Any:
        seen[runner._process_id] = await runner._database.write(
            lambda tx: tx.tuples("runs.claimable", limit=places)
        )
        return await original(runner, places)

    async def claim(tx: Tx, owner: str, claim_id: str, limit: int) -> list[Row]:
        stale = seen[owner]
        fences = {
            row[0]: row[1]
            for row in await tx.many(
                "runs.grant_fence", [{"schedule_id": s, "grants": 1} for s in {s for _, s in stale if s}]
            )
        }
        rows = [
            {"id": run_id, "owner": owner, "claim_id": claim_id, "fence": fences.get(schedule_id, 0)}
            for run_id, schedule_id in stale
        ]
        claimed = await tx.many("runs.claim", rows)
        return await runs.by_ids(tx, [row[0] for row in claimed])

    original = Runner._claim_batch
    with patch.object(Runner, "_claim_batch", claim_batch), patch.object(runs, "claim", claim):
        yield without(engine, "runs.claim", "status = 'queued'", "claimable_at + 0 <= now_us()")


@contextmanager
def unguarded_renew(engine: str) -> Iterator[Changed]:
    """A lease is renewed whoever holds the run, and nobody compares what is held with what is believed (RUN-4)."""

    def believe(_: Renewal, sent_at: float, known: Sequence[Any], renewed: set[str], held: object) -> None:
        del held
        for hold in known:
            if hold.run_id in renewed:
                hold.sent_at = sent_at

    with patch.object(Renewal, "_compare", believe):
        yield without(engine, "runs.renew", "owner = :owner", "fence = :fence", "status = 'running'")


@contextmanager
def unfenced_close(engine: str) -> Iterator[Changed]:
    """A run is closed by whoever ends (RUN-6)."""
    fences = ("owner = :owner", "fence = :fence")
    yield {**without(engine, "runs.close", *fences), **without(engine, "runs.close_plain", *fences)}


@contextmanager
def no_self_fence(_: str) -> Iterator[Changed]:
    """A process that can't renew works on (RUN-5)."""
    with (
        patch.object(Renewal, "_fence_overdue", lambda _: None),
        patch.object(Renewal, "holds", lambda *_: True),
    ):
        yield {}


@contextmanager
def advance_apart(_: str) -> Iterator[Changed]:
    """The schedule moves on in a transaction of its own, after its slot's (DSP-5)."""
    real, later = slots.advance, list[Sequence[Any]]()
    scan = Dispatcher._scan

    async def put_off(_: Tx, schedules: Any) -> Landed:
        later.append(list(schedules))
        return Landed(row[0] for row in later[-1])

    async def scan_then_advance(dispatcher: Any) -> Any:
        try:
            return await scan(dispatcher)
        finally:
            for rows in [later.pop() for _ in range(len(later))]:
                await dispatcher._database.write(lambda tx, rows=rows: real(tx, rows))

    with patch.object(slots, "advance", put_off), patch.object(Dispatcher, "_scan", scan_then_advance):
        yield {}


@contextmanager
def host_as_identity(engine: str) -> Iterator[Changed]:
    """Every process of the machine has the same name (RUN-5a)."""
    start = queries.load(engine)["processes.start"]
    again = "ON CONFLICT (id) DO UPDATE SET heartbeat_at = now_us(), stopped_at = NULL"
    with patch.object(Mint, "process", lambda _: _ONE_HOST):
        yield {"processes.start": replace(start, statements=(f"{start.text} {again}",))}


@contextmanager
def no_clock_guard(_: str) -> Iterator[Changed]:
    """A jump of the clock is not noticed (RUN-5b)."""
    with patch.object(ClockGuard, "_jumped", lambda *_, **__: None):
        yield {}


@contextmanager
def no_lost_claims(_: str) -> Iterator[Changed]:
    """A claim whose answer was lost is forgotten (RUN-5a)."""
    with patch.object(LostClaims, "doubt", lambda *_: None):
        yield {}


@contextmanager
def claim_without_entry(_: str) -> Iterator[Changed]:
    """What is given back is not released in the audit."""
    with patch.object(audit, "append_many", _drops_given_back(audit.append_many)):
        yield {}


def _drops_given_back(real: Any) -> Any:
    async def append_many(tx: Tx, entries: Sequence[NewEntry], *guarded: Any) -> None:
        if not guarded:  # what came to its end is
            entries = [one for one in entries if not (one[1] == "RELEASE" and '"queued"' in one[3])]
        await real(tx, entries, *guarded)

    return append_many


_STORM = Script(calm_share=0.0)
_LONG = ("long", "long", "slow", "slow", "hang", "quick")
PLANTS = (
    Plant("unguarded claim", unguarded_claim, Script(calm_share=0.0, jumps=False), "holders_write"),
    Plant(
        "unguarded renew",  # a target completes what a process that stood still believes it holds
        unguarded_renew,
        Script(calm_share=0.0, tilt="block", plans=("defer",)),
        "no_crash",
    ),
    Plant(
        "unfenced close",
        unfenced_close,
        Script(calm_share=0.0, jumps=False, tilt="freeze", plans=_LONG, on_lost=("resume",)),
        "claims_are_paired",
    ),
    Plant(
        "no self-fence",
        no_self_fence,
        Script(calm_share=0.0, jumps=False, tilt="outage", plans=_LONG),
        "executions_do_not_overlap",
    ),
    Plant("advance outside the transaction", advance_apart, _STORM, "records_agree"),
    Plant(
        "host name as identity",
        host_as_identity,
        Script(calm_share=0.0, jumps=False, tilt="kill", plans=_LONG),
        "the_dead_are_recovered",
    ),
    Plant(
        "no clock guard",
        no_clock_guard,
        Script(calm_share=0.0, tilt="jump", plans=_LONG),
        "losses_have_causes",
    ),
    Plant(
        "lost claims forgotten",
        no_lost_claims,
        Script(calm_share=0.0, tilt="lose_answer"),
        "lost_claims_come_back",
    ),
    Plant(
        "given back without a word",
        claim_without_entry,
        Script(calm_share=0.0, tilt="stop"),
        "claims_are_paired",
    ),
)
