"""What the schema itself refuses of a run: its states can't contradict each other (RUN-1), each check alone."""

import itertools
from typing import Any

import pytest

from gnomon.domain.run import INTERACTIVE, SCHEDULED, TERMINAL, RunStatus, Trigger
from gnomon.domain.target import TargetKind
from gnomon.stores.database import CheckViolation, Database, UniqueViolation
from support.rows import AT, RUN, RUNNING, add_run, execute

pytestmark = pytest.mark.anyio

OVER: dict[str, Any] = {**RUNNING, "lease_until": None, "finished_at": AT}
GOOD: dict[RunStatus, dict[str, Any]] = {
    RunStatus.QUEUED: {},
    RunStatus.RUNNING: dict(RUNNING),
    **{status: {**OVER, "status": status.value} for status in TERMINAL},
}


async def accepts(database: Database, **changes: Any) -> bool:
    """Whether the schema takes this run."""
    try:
        await add_run(database, **changes)
    except CheckViolation:
        return False
    await execute(database, "DELETE FROM runs")
    return True


@pytest.mark.parametrize("status", RunStatus)
async def test_a_good_run_of_each_status_is_taken(database: Database, status: RunStatus) -> None:
    """RUN-1: without this every refusal below could be for another reason."""
    assert await accepts(database, **GOOD[status])


@pytest.mark.parametrize("status", RunStatus)
async def test_only_a_queued_run_is_claimable(database: Database, status: RunStatus) -> None:
    """RUN-1: what runs or is over can't be claimed again, whatever a statement forgets to ask."""
    assert await accepts(database, **{**GOOD[status], "claimable_at": AT}) is (status is RunStatus.QUEUED)


@pytest.mark.parametrize(("status", "lease"), list(itertools.product(RunStatus, [None, AT])))
async def test_a_run_has_a_lease_exactly_while_it_is_running(
    database: Database, status: RunStatus, lease: int | None
) -> None:
    """RUN-3: an ended run holds nothing."""
    allowed = (status is RunStatus.RUNNING) == (lease is not None)
    assert await accepts(database, **{**GOOD[status], "lease_until": lease}) is allowed


@pytest.mark.parametrize("status", RunStatus)
async def test_a_running_run_has_an_owner(database: Database, status: RunStatus) -> None:
    """RUN-4."""
    assert await accepts(database, **{**GOOD[status], "owner": None}) is (status is not RunStatus.RUNNING)


@pytest.mark.parametrize(("status", "finished"), list(itertools.product(RunStatus, [None, AT])))
async def test_a_run_has_an_end_exactly_when_it_is_over(
    database: Database, status: RunStatus, finished: int | None
) -> None:
    """RUN-1."""
    allowed = (status in TERMINAL) == (finished is not None)
    assert await accepts(database, **{**GOOD[status], "finished_at": finished}) is allowed


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("trigger_kind", [trigger.value for trigger in Trigger]),
        ("target_kind", [kind.value for kind in TargetKind]),
    ],
)
async def test_a_closed_list_is_the_domain_s(database: Database, column: str, values: list[str]) -> None:
    """RUN-1."""
    assert [await accepts(database, **{column: value}) for value in values] == [True] * len(values)
    assert not await accepts(database, **{column: "other"})


async def test_there_is_no_other_status(database: Database) -> None:
    """RUN-1."""
    for status in ("", "done", "QUEUED"):
        assert not await accepts(database, **{**OVER, "status": status})


async def test_the_priorities_are_the_two_queues_that_the_claim_searches(database: Database) -> None:
    """RUN-1: a run of any other priority would never be claimed."""
    taken = [number for number in range(-1, 12) if await accepts(database, priority=number)]
    assert taken == [INTERACTIVE, SCHEDULED]


async def test_a_duration_is_never_negative(database: Database) -> None:
    """Casebook mis-11."""
    over = {**OVER, "status": "succeeded"}
    assert [await accepts(database, **over, duration_us=n) for n in (None, 0, 1, -1)] == [
        True,
        True,
        True,
        False,
    ]


async def test_half_done_is_yes_or_no(database: Database) -> None:
    """RUN-8."""
    assert [await accepts(database, half_done=n) for n in (0, 1, 2)] == [True, True, False]


async def test_an_id_is_there_once(database: Database) -> None:
    await add_run(database)
    with pytest.raises(UniqueViolation):
        await add_run(database)


@pytest.mark.parametrize(
    "column", [name for name in RUN if name not in {"claimable_at", "session_id", "created_at"}]
)
async def test_what_has_to_be_there_can_not_be_missing(database: Database, column: str) -> None:
    with pytest.raises(CheckViolation):
        await add_run(database, **{column: None})
