"""A copy of a database that has lived, damaged by hand in ways that the schema itself would refuse, and judged again."""

from dataclasses import dataclass

from gnomon.domain.breach import Breach
from gnomon.services.verify import Verified, Verify
from gnomon.stores.database import Database
from support.rows import execute

TRIGGERS = (
    "audit_no_update",
    "audit_no_delete",
    "occurrences_no_delete",
    "occurrences_no_update",
    "retention_floor_rises",
    "retention_floor_of_runs_rises",
)


@dataclass
class Lived:
    """The copy, and its schedules by what became of them."""

    database: Database
    schedules: dict[str, str]

    async def damage(self, *statements: str) -> None:
        """Execute statements with no trigger and no constraint in the way; ``{plain}`` is the id of that schedule."""
        await execute(self.database, "PRAGMA ignore_check_constraints = ON")
        for name in TRIGGERS:
            await execute(self.database, f"DROP TRIGGER IF EXISTS {name}")
        for statement in statements:
            text = statement
            for name, schedule_id in self.schedules.items():
                text = text.replace(f"{{{name}}}", f"'{schedule_id}'")
            await execute(self.database, text)

    async def judged(self) -> tuple[Verified, list[Breach]]:
        """What verify says of it."""
        found: list[Breach] = []
        verified = await Verify(self.database, gapless=True).run(found.append)
        return verified, found
