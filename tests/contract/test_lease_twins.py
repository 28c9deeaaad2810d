"""The lease's formula in Python and in SQL, held equal by the database itself over a matrix (DSP-4).

A third formula, written here and shared by neither, stands between them: two halves that are wrong in the same way
would still go red.
"""

import itertools
import re
from collections.abc import Callable

import pytest

from gnomon.domain.lease import LEASE_SECONDS_SQL, lease_seconds
from gnomon.domain.retry import RetryPolicy
from gnomon.stores import queries, slots
from gnomon.stores.database import Database
from support.rows import SCHEDULE, add_many, execute

pytestmark = pytest.mark.anyio

TIMEOUTS = (1, 2, 59, 300, 3_600, 86_399, 86_400)
ATTEMPTS = tuple(range(1, 11))
BACKOFFS = (0, 1, 7, 10, 675, 86_400)
CAPS = (0, 1, 600, 3_599, 86_400)
MATRIX = [
    (timeout, attempts, backoff, cap)
    for timeout, attempts, backoff, cap in itertools.product(TIMEOUTS, ATTEMPTS, BACKOFFS, CAPS)
    if cap >= backoff  # the schema's own rule
]


def third(timeout: int, attempts: int, backoff: int, cap: int) -> int:
    """Written out, attempt after attempt: what neither half of the pair does."""
    total, wait = 30, backoff
    for attempt in range(1, attempts + 1):
        total += timeout
        if attempt < attempts:
            total += cap if wait > cap else wait  # noqa: FURB136 - as unlike the others as it can be
            wait = wait + wait
    return total


async def ask(database: Database, formula: str) -> dict[tuple[int, int, int, int], int]:
    """Each row of the matrix as a schedule, and what the database makes of the formula over its columns."""
    await execute(database, "DELETE FROM schedules")
    envelope = ("timeout_seconds", "max_attempts", "backoff_seconds", "backoff_max_seconds")
    rows_in = [
        {**SCHEDULE, "id": f"sch_{number:020d}", **dict(zip(envelope, row, strict=True))}
        for number, row in enumerate(MATRIX)
    ]
    await add_many(database, "schedules", rows_in)
    rows = await execute(
        database,
        "SELECT timeout_seconds, max_attempts, backoff_seconds, backoff_max_seconds, "
        f"{formula} AS lease FROM schedules",
    )
    return {
        (r["timeout_seconds"], r["max_attempts"], r["backoff_seconds"], r["backoff_max_seconds"]): r["lease"]
        for r in rows
    }


def by_python(timeout: int, attempts: int, backoff: int, cap: int) -> int:
    return lease_seconds(timeout, RetryPolicy(attempts, backoff, cap))


def agree(sql: dict[tuple[int, int, int, int], int], python: Callable[..., int]) -> bool:
    """Whether all three say the same over the whole matrix."""
    assert len(sql) == len(MATRIX)
    return all(sql[row] == python(*row) == third(*row) for row in MATRIX)


async def test_both_halves_and_a_third_formula_agree_on_every_row(database: Database) -> None:
    """DSP-4."""
    assert agree(await ask(database, LEASE_SECONDS_SQL), by_python)


CHANGES = [
    ("another headroom", lambda text: text.replace(" + 30 ", " + 31 ", 1)),
    ("a lost timeout", lambda text: text.replace("max_attempts * timeout_seconds", "timeout_seconds", 1)),
    ("a lost last backoff", lambda text: re.sub(r"max_attempts <= 9", "max_attempts <= 10", text, count=1)),
    ("one backoff too many", lambda text: re.sub(r"max_attempts <= 1 ", "max_attempts <= 0 ", text, count=1)),
    ("a cap that is not looked at", lambda text: text.replace("> backoff_max_seconds", "> 86400")),
    ("a doubling that is none", lambda text: text.replace("backoff_seconds * 4", "backoff_seconds * 2")),
]


@pytest.mark.parametrize("change", [change for _, change in CHANGES], ids=[name for name, _ in CHANGES])
async def test_a_changed_sql_half_goes_red(database: Database, change: Callable[[str], str]) -> None:
    """DSP-4, PRF-4: the matrix is wide enough to notice each of these."""
    changed = change(LEASE_SECONDS_SQL)
    assert changed != LEASE_SECONDS_SQL
    assert not agree(await ask(database, changed), by_python)


@pytest.mark.parametrize(
    "changed",
    [
        lambda t, a, b, c: by_python(t, a, b, c) + 1,
        lambda t, a, b, c: by_python(t, a, b, c) - (t if a > 1 else 0),
        lambda t, a, b, c: a * t + 30 + sum(min(c, b * n) for n in range(1, a)),
    ],
    ids=["headroom", "attempts", "linear backoff"],
)
async def test_a_changed_python_half_goes_red(database: Database, changed: Callable[..., int]) -> None:
    """DSP-4, PRF-4."""
    assert not agree(await ask(database, LEASE_SECONDS_SQL), changed)


async def test_the_claim_stamps_that_length(database: Database, engine: str) -> None:
    """DSP-3, DSP-4: the statement that claims holds the formula itself, and it is the whole of it."""
    assert LEASE_SECONDS_SQL in queries.load(engine)["slots.claim_due"].text
    await ask(database, "1")
    due = await database.write(lambda tx: slots.claim_due(tx, len(MATRIX)))
    assert len(due) == len(MATRIX)
    for row in due:
        policy = (
            row.timeout_seconds,
            row.max_attempts,
            row.backoff_seconds,
            row.backoff_max_seconds,
        )
        assert row.lease_seconds == third(*policy)
