"""What the schema itself refuses of a schedule, each check alone, by rows that the product never writes (CAD-1, SCH)."""

from collections.abc import Awaitable
from typing import Any

import pytest

from gnomon.cadence import EVERY_RANGES
from gnomon.domain import agent, retry, schedule
from gnomon.domain.schedule import CatchUp, OnLost, Overlap, ScheduleStatus, SessionMode
from gnomon.domain.target import TargetKind
from gnomon.stores.database import CheckViolation, Database, UniqueViolation
from support.rows import AGENT, AT, SCHEDULE, SECOND, TEAM, add, add_schedule, execute

pytestmark = pytest.mark.anyio

ROLLING_AND_CIVIL = {unit: bounds for unit, bounds in EVERY_RANGES.items() if unit != "once"}
EDGES = [
    (unit, every, low <= every <= high)
    for unit, (low, high) in ROLLING_AND_CIVIL.items()
    for every in (-1, 0, low - 1, low, low + 1, high - 1, high, high + 1, 10**9)
]


async def accepts(database: Database, **changes: Any) -> bool:
    """Whether the schema takes a schedule that differs from a good one in these columns alone, however it comes about."""
    made = await takes(database, add_schedule(database, **changes))
    await execute(database, "DELETE FROM schedules")
    await add_schedule(database)
    edited = await takes(database, change(database, **changes))
    await execute(database, "DELETE FROM schedules")
    assert edited is made, "an INSERT and an UPDATE are refused alike"
    return made


async def takes(database: Database, written: Awaitable[Any]) -> bool:
    """Whether the schema lets it pass."""
    try:
        await written
    except CheckViolation:
        return False
    return True


async def change(database: Database, **changes: Any) -> None:
    """Change these columns of each schedule, and name no other."""
    columns = ", ".join(f"{name} = :{name}" for name in changes) or "name = name"
    await execute(database, f"UPDATE schedules SET {columns}", **changes)


async def test_the_good_one_is_taken(database: Database) -> None:
    """Without this every refusal below could be for another reason."""
    assert await accepts(database)


@pytest.mark.parametrize(("unit", "every", "allowed"), EDGES)
async def test_the_interval_s_range_is_the_cadence_module_s_own(
    database: Database, unit: str, every: int, allowed: bool
) -> None:
    """CAD-1: the API's ranges and the schema's are the same numbers."""
    assert await accepts(database, unit=unit, every=every) is allowed


async def test_the_ranges_are_the_spec_s() -> None:
    """CAD-1."""
    assert ROLLING_AND_CIVIL == {
        "minute": (5, 1440),
        "hour": (1, 168),
        "day": (1, 365),
        "week": (1, 52),
        "month": (1, 24),
    }


@pytest.mark.parametrize("unit", ROLLING_AND_CIVIL)
async def test_an_interval_can_not_be_missing(database: Database, unit: str) -> None:
    """CAD-1."""
    assert not await accepts(database, unit=unit, every=None)


@pytest.mark.parametrize("unit", ["once", "cron", "rrule"])
async def test_where_there_is_no_interval_there_is_none(database: Database, unit: str) -> None:
    """CAD-1, CAD-9."""
    assert await accepts(database, unit=unit, every=None)
    assert not await accepts(database, unit=unit, every=1)


@pytest.mark.parametrize("unit", ["second", "year", "HOUR", "", "hours"])
async def test_another_unit_is_refused(database: Database, unit: str) -> None:
    """CAD-1."""
    assert not await accepts(database, unit=unit, every=10)
    assert not await accepts(database, unit=unit, every=None)


RANGES: list[tuple[str, tuple[int, int]]] = [
    ("max_runs", schedule.MAX_RUNS),
    ("misfire_grace_seconds", schedule.MISFIRE_GRACE_SECONDS),
    ("timeout_seconds", agent.TIMEOUT_SECONDS),
    ("max_attempts", retry.MAX_ATTEMPTS),
    ("failure_limit", schedule.FAILURE_LIMIT),
    ("jitter_seconds", schedule.JITTER_SECONDS),
]


@pytest.mark.parametrize(("column", "bounds"), RANGES)
async def test_a_number_s_range_is_the_domain_s(
    database: Database, column: str, bounds: tuple[int, int]
) -> None:
    """SCH-14, SCH-5, CAD-10."""
    low, high = bounds
    taken = [value for value in (low - 1, low, high, high + 1) if await accepts(database, **{column: value})]
    assert taken == [low, high]


async def test_the_backoffs_have_their_ranges_and_the_cap_is_not_below_the_base(database: Database) -> None:
    """SCH-14."""
    assert (retry.BACKOFF_SECONDS, retry.BACKOFF_MAX_SECONDS) == ((0, 86_400), (0, 86_400))

    async def taken(base: int, cap: int) -> bool:
        return await accepts(database, backoff_seconds=base, backoff_max_seconds=cap)

    assert [await taken(*pair) for pair in [(0, 0), (86_400, 86_400), (5, 5), (4, 5)]] == [True] * 4
    assert [await taken(*pair) for pair in [(-1, 5), (86_401, 86_401), (5, 86_401), (-2, -1), (6, 5)]] == [
        False
    ] * 5


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("target_kind", [kind.value for kind in TargetKind]),
        ("overlap", [policy.value for policy in Overlap]),
        ("catch_up", [policy.value for policy in CatchUp]),
        ("on_lost", [policy.value for policy in OnLost]),
    ],
)
async def test_a_closed_list_is_the_domain_s(database: Database, column: str, values: list[str]) -> None:
    """DSP-7, DSP-8, RUN-8: casebook mis-20, a policy that nobody reads can't be stored."""
    for value in values:
        assert await accepts(database, **{column: value})
    for wrong in ("", "other", values[0].upper()):
        assert not await accepts(database, **{column: wrong})


@pytest.mark.parametrize("status", [*(status.value for status in ScheduleStatus), "deleted", ""])
async def test_only_an_active_schedule_has_a_next_instant(database: Database, status: str) -> None:
    """SCH-2, SCH-3: what is not active can't match the claim."""
    known = status in set(ScheduleStatus)
    assert await accepts(database, status=status, next_fire_at=None) is known
    assert await accepts(database, status=status, next_fire_at=AT) is (status == "active")


async def test_a_deleted_schedule_has_no_next_instant(database: Database) -> None:
    """SCH-10, SCH-3."""
    assert await accepts(database, deleted_at=AT, next_fire_at=None)
    assert not await accepts(database, deleted_at=AT, next_fire_at=AT)


async def test_a_fixed_session_needs_its_id(database: Database) -> None:
    """SCH-7."""
    assert {mode.value for mode in SessionMode} == {"fresh", "fixed"}
    assert await accepts(database, session_mode="fresh", session_id=None)
    assert await accepts(database, session_mode="fixed", session_id="ses_1")
    assert not await accepts(database, session_mode="fixed", session_id=None)
    assert not await accepts(database, session_mode="shared", session_id="ses_1")


async def test_a_window_does_not_end_before_it_starts(database: Database) -> None:
    """SCH-5: both ends are inclusive, so that one instant is a window."""
    assert await accepts(database, starts_at=AT, ends_at=AT)
    assert await accepts(database, starts_at=AT, ends_at=None)
    assert await accepts(database, starts_at=None, ends_at=AT)
    assert not await accepts(database, starts_at=AT, ends_at=AT - 1)


@pytest.mark.parametrize(
    ("standing", "changes"),
    [
        ({"session_mode": "fixed", "session_id": "ses_1"}, {"session_id": None}),
        ({"session_id": None}, {"session_mode": "fixed"}),
        ({"ends_at": AT}, {"starts_at": AT + 1}),
        ({"starts_at": AT}, {"ends_at": AT - 1}),
        ({"backoff_max_seconds": 5}, {"backoff_seconds": 6}),
        ({"backoff_seconds": 5}, {"backoff_max_seconds": 4}),
    ],
)
async def test_what_goes_together_is_asked_when_one_of_it_changes(
    database: Database, standing: dict[str, Any], changes: dict[str, Any]
) -> None:
    """SCH-5, SCH-7, SCH-14."""
    await add_schedule(database, **{"backoff_seconds": 0, **standing})
    assert not await takes(database, change(database, **changes))


@pytest.mark.parametrize("off_by", [1, SECOND, 59 * SECOND])
async def test_an_anchor_is_a_whole_minute(database: Database, off_by: int) -> None:
    """CAD-2."""
    assert await accepts(database, anchor_at=AT + 60 * SECOND)
    assert not await accepts(database, anchor_at=AT + off_by)


async def test_texts_have_their_lengths(database: Database) -> None:
    """SCH-14, and the domain's constants."""
    low, high = schedule.NAME_CHARACTERS
    assert [await accepts(database, name="x" * n) for n in (low - 1, low, high, high + 1)] == [
        False,
        True,
        True,
        False,
    ]
    most = schedule.QUERY_CHARACTERS[1]
    assert [await accepts(database, query="ü" * n) for n in (0, most, most + 1)] == [True, True, False]


async def test_a_revision_counts_from_one(database: Database) -> None:
    """SCH-4."""
    assert [await accepts(database, revision=n) for n in (0, 1, 2)] == [False, True, True]


async def test_an_id_is_there_once(database: Database) -> None:
    await add_schedule(database)
    with pytest.raises(UniqueViolation):
        await add_schedule(database)


@pytest.mark.parametrize("column", [name for name in SCHEDULE if name not in {"next_fire_at", "every"}])
async def test_what_has_to_be_there_can_not_be_missing(database: Database, column: str) -> None:
    with pytest.raises(CheckViolation):
        await add_schedule(database, **{column: None})


@pytest.mark.parametrize(("table", "row"), [("agents", AGENT), ("teams", TEAM)])
async def test_a_target_s_ranges_are_the_domain_s(
    database: Database, table: str, row: dict[str, Any]
) -> None:
    """TGT-1, QTA-1."""

    async def taken(**changes: Any) -> bool:
        try:
            await add(database, table, row, **changes)
        except CheckViolation:
            return False
        await execute(database, f"DELETE FROM {table}")
        return True

    low, high = agent.DAILY_CAP
    assert [await taken(daily_cap=n) for n in (None, low - 1, low, high, high + 1)] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert [await taken(slug="x" * n) for n in (0, 1, 64, 65)] == [False, True, True, False]
    assert [await taken(name="x" * n) for n in (0, 1, 200, 201)] == [False, True, True, False]
    assert [await taken(enabled=n) for n in (0, 1, 2)] == [True, True, False]
    if table == "agents":
        least, most = agent.TIMEOUT_SECONDS
        bounds = (least - 1, least, most, most + 1)
        assert [await taken(timeout_seconds=n) for n in bounds] == [False, True, True, False]


@pytest.mark.parametrize(("table", "row"), [("agents", AGENT), ("teams", TEAM)])
async def test_a_slug_is_free_again_once_its_bearer_is_deleted(
    database: Database, table: str, row: dict[str, Any]
) -> None:
    """SCH-12: a deleted target keeps its row, not its name."""
    await add(database, table, row)
    with pytest.raises(UniqueViolation):
        await add(database, table, row, id="another")
    await execute(database, f"UPDATE {table} SET deleted_at = 1")
    await add(database, table, row, id="another")
