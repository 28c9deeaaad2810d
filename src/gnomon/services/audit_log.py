"""The audit log as people read it: forward from a number, narrowed by action and subject (SEC-7)."""

from gnomon.domain.audit import AuditEntry
from gnomon.stores import audit
from gnomon.stores.database import Database


class AuditLog:
    """The log of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def after(
        self, seq: int, limit: int, *, action: str | None = None, subject: str | None = None
    ) -> list[AuditEntry]:
        """Up to ``limit`` entries after number ``seq``, the oldest first; ``subject`` is an id.

        Whoever goes on after the last of them misses none: it ends before a number that may still get an entry.
        """
        settled = await self._database.look(audit.settled)
        return await self._database.read(
            lambda tx: audit.after(tx, seq, limit, until=settled, action=action, subject_id=subject)
        )
