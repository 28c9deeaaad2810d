"""How often a process says that it lives: at its pace while it holds a run, less often while it holds none (RUN-4, P18)."""

from dataclasses import replace

import pytest

from support.house import PACE, House, a_run_in_work

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}


async def beats(house: House, seconds: int) -> list[int]:
    """After which of the next seconds the process's row was written, with a thread that looks every second."""
    found = []
    before = await heard_at(house)
    for second in range(1, seconds + 1):
        house.clock.advance(1)
        await house.beat()
        at = await heard_at(house)
        if at != before:
            found.append(second)
        before = at
    return found


async def heard_at(house: House) -> int:
    sql = "SELECT heartbeat_at FROM processes WHERE id = :id"
    (row,) = await house.rows(sql, id=house.engine.process_id)
    return int(row["heartbeat_at"])


async def test_a_process_that_holds_nothing_beats_four_times_in_the_timeout(house: House) -> None:
    assert await beats(house, 90) == [30, 60, 90]


async def test_a_process_that_holds_a_run_beats_at_its_pace(house: House) -> None:
    await a_run_in_work(house, HOURLY)
    await house.beat()
    assert await beats(house, 30) == [10, 20, 30]


async def test_whoever_takes_a_run_beats_at_once_where_it_has_rested(house: House) -> None:
    """RUN-5b: so that a lease that begins in a time that is wrong has a heartbeat beside it that says so."""
    assert await beats(house, 25) == []
    await a_run_in_work(house, HOURLY)
    assert await beats(house, 21) == [1, 11, 21]


@pytest.mark.parametrize(("every", "silence", "rest"), [(10, 30, 10), (5, 60, 15), (1, 120, 3)])
async def test_it_never_rests_so_long_that_one_slow_heartbeat_looks_like_a_death(
    house: House, every: int, silence: int, rest: int
) -> None:
    pace = replace(PACE, heartbeat_seconds=every, heartbeat_timeout_seconds=silence)
    other = await house.neighbour(pace=pace)
    assert await beats(other, 2 * rest) == [rest, 2 * rest]


@pytest.mark.parametrize("seconds", [600, -600])
async def test_a_clock_that_was_set_is_read_at_once(house: House, seconds: int) -> None:
    """RUN-5b: not after a rest, in which it may be set back again."""
    await house.engine.watchdog.tick()
    assert await beats(house, 3) == []
    house.clock.jump(seconds)
    assert await beats(house, 3) == [1]
    assert house.engine.guard.calm_us() == 2_000_000
    assert await beats(house, 28) == [28], "and the rest counts from there"
