"""The audit log: entries are appended and never change (SEC-7). One method per query of ``sql/audit.sql``."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from gnomon.domain.audit import Action, AuditEntry
from gnomon.domain.instants import from_micros
from gnomon.stores.database import Landed, Tx, Value

_encode = json.JSONEncoder(separators=(",", ":")).encode  # made once: two entries are written for each run


@dataclass(slots=True)  # not frozen, for the same reason
class NewEntry:
    """One entry to append: who did what to which subject, under which fence, with JSON-safe detail."""

    actor: str
    action: Action
    subject_kind: str
    subject_id: str
    fence: int | None = None
    detail: dict[str, object] | str | None = (
        None  # a text is JSON already: the hot path writes two for each run
    )

    def row(self) -> tuple[Value, ...]:
        """The row of ``audit.append``."""
        detail = self.detail
        if not isinstance(detail, str):
            detail = _encode(detail) if detail else None
        return (self.actor, self.action, self.subject_kind, self.subject_id, self.fence, detail)


async def append_many(
    tx: Tx, entries: Sequence[NewEntry], landed: Landed | None = None, of: Sequence[str] = ()
) -> None:
    """Append entries, in order, at the database's present instant."""
    if entries:
        await tx.later("audit.append", [entry.row() for entry in entries], landed, of)


async def append(
    tx: Tx,
    *,
    actor: str,
    action: Action,
    subject_kind: str,
    subject_id: str,
    fence: int | None = None,
    detail: dict[str, object] | None = None,
) -> None:
    """Append one entry."""
    await append_many(tx, [NewEntry(actor, action, subject_kind, subject_id, fence, detail)])


async def after(
    tx: Tx, seq: int, limit: int, *, action: str | None = None, subject_id: str | None = None
) -> list[AuditEntry]:
    """Entries after ``seq``, the oldest first, at most ``limit``."""
    rows = await tx.all("audit.after", seq=seq, limit=limit, action=action, subject_id=subject_id)
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
