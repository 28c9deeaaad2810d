"""What runs have used: model calls, tokens, cost; by day, target and principal (UI-1).

A run counts on the day (UTC) on which it ended. Runs whose target told of no usage are not counted. The principal is
whoever asked for the run, else the identity that its schedule names.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.instants import from_micros, to_micros
from gnomon.domain.invocation import Usage as Sum
from gnomon.domain.usage import Grouping, Used
from gnomon.stores import overview, processes
from gnomon.stores.database import Database, Row, Tx

DAYS_DEFAULT = 30
DAYS_MOST = 366
_ALL_TOGETHER = Grouping(day=False, target=False, principal=False)


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage in [since, until): sums in order, and all of it together."""

    since: datetime
    until: datetime
    items: list[Used]
    total: Used


class Usage:
    """Usage of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def spent(
        self, since: datetime | None, until: datetime | None, grouping: Grouping, skip: int, limit: int
    ) -> Spent:
        """Up to ``limit`` sums after the first ``skip``. Without ``until`` up to now, without ``since`` thirty days.

        Raises:
            Invalid: the two are in the wrong order, or too far apart.
        """

        async def work(tx: Tx) -> Spent:
            end = until or from_micros(await processes.now(tx) + 1)
            begin = since or end - timedelta(days=DAYS_DEFAULT)
            if begin >= end:
                raise Invalid([Fault("until", "must come after since")])
            if end - begin > timedelta(days=DAYS_MOST):
                raise Invalid([Fault("since", f"must not lie more than {DAYS_MOST} days before until")])
            window = to_micros(begin), to_micros(end)
            rows = await overview.usage(tx, grouping, *window, skip, limit)
            (total,) = await overview.usage(tx, _ALL_TOGETHER, *window, 0, 1) or [_NOTHING]
            return Spent(begin, end, [_used(row, grouping) for row in rows], _used(total, _ALL_TOGETHER))

        return await self._database.read(work)


_NOTHING: Row = {"runs": 0, "model_calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0}


def _used(row: Row, grouping: Grouping) -> Used:
    return Used(
        day=date(1970, 1, 1) + timedelta(days=row["day"]) if grouping.day else None,
        target_kind=row["target_kind"] if grouping.target else None,
        target_id=row["target_id"] if grouping.target else None,
        target_slug=row["slug"] or None if grouping.target else None,
        principal=row["principal"] or None if grouping.principal else None,
        runs=row["runs"],
        usage=Sum(row["model_calls"], row["input_tokens"], row["output_tokens"], row["cost"]),
    )
