"""The audit log: entries are appended and never change (SEC-7). One method per query of ``sql/audit.sql``.

What happened to many subjects at once is one row; whoever reads sees an entry for each (ADR 0052).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from typing import TypeAlias

from gnomon.domain.audit import Action, AuditEntry
from gnomon.domain.filters import EVER
from gnomon.domain.instants import from_micros
from gnomon.stores.database import Landed, Tx, Value

# Actor, action, kind of the subject, and the JSON text of ``[subject_id, fence, detail]``. Two are written for each run:
# where they are made in numbers that text is one format string, as our ids need no escaping.
NewEntry: TypeAlias = tuple[str, Action, str, str]
MOST = 1_000  # entries in a row: it has no more numbers on PostgreSQL
# what queries look for by its action has a row of its own
_ALONE = frozenset({Action.EXPIRE, Action.CLOCK_JUMP, Action.REALIGN})
_alike = itemgetter(0, 1, 2)
_encode = json.JSONEncoder(separators=(",", ":")).encode


def new_entry(  # noqa: PLR0917 - the columns of an entry
    actor: str,
    action: Action,
    subject_kind: str,
    subject_id: str,
    fence: int | None = None,
    detail: Mapping[str, object] | None = None,
) -> NewEntry:
    """One entry to append: who did what to which subject, under which fence, with JSON-safe detail."""
    return actor, action, subject_kind, _encode((subject_id, fence, detail or None))


async def append_many(
    tx: Tx, entries: Sequence[NewEntry], landed: Landed | None = None, of: Sequence[str] = ()
) -> None:
    """Append entries, in order, at the database's present instant."""
    if entries:
        await tx.later("audit.append", _rows(entries), landed, of)


def _rows(entries: Sequence[NewEntry]) -> Iterable[tuple[Value, ...]]:
    """The rows of ``audit.append``: those that follow each other and are alike in all but their subject are a batch."""
    actors, actions, kinds, told = zip(*entries, strict=True)
    alike = all(column.count(column[0]) == len(entries) for column in (actors, actions, kinds))
    if (
        alike and len(entries) <= MOST and actions[0] not in _ALONE
    ):  # the common case, told without a look at each
        return zip(repeat(0), actors, actions, kinds, told)
    rows: list[tuple[Value, ...]] = []
    batch = 0
    for (_, action, _), group in groupby(entries, key=_alike):
        together, most = list(group), 1 if action in _ALONE else MOST
        for first in range(0, len(together), most):
            rows += [(batch, *entry) for entry in together[first : first + most]]
            batch += 1
    return rows


async def append(
    tx: Tx,
    *,
    actor: str,
    action: Action,
    subject_kind: str,
    subject_id: str,
    fence: int | None = None,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Append one entry."""
    await append_many(tx, [new_entry(actor, action, subject_kind, subject_id, fence, detail)])


async def settled(tx: Tx) -> int:
    """The number up to which no entry comes any more; asked before the rows are read, and not over their snapshot."""
    row = await tx.one("audit.settled")
    assert row is not None
    return int(row["seq"])


async def after(
    tx: Tx,
    seq: int,
    limit: int,
    *,
    until: int = EVER,
    action: str | None = None,
    subject_id: str | None = None,
) -> list[AuditEntry]:
    """Entries after ``seq``, the oldest first, at most ``limit``; of rows up to the number ``until``."""
    rows = await tx.all(
        "audit.after", seq=seq, until=until, limit=limit, action=action, subject_id=subject_id
    )
    return [
        AuditEntry(
            seq=row["seq"],
            at=from_micros(row["at"]),
            actor=row["actor"],
            action=Action(row["action"]),
            subject_kind=row["subject_kind"],
            subject_id=row["subject_id"],
            fence=row["fence"],
            detail={} if row["detail"] is None else json.loads(row["detail"]),
        )
        for row in rows
    ]
