"""The primary is killed and its synchronous standby promoted, under load (issue 3, item 7).

The processes find the new primary by themselves, through an address that names both hosts. Nothing that was acknowledged
is lost, nothing runs twice.
"""

from collections import Counter
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from support.postgres_field import a_field, all_ended
from support.postgres_life import PASSWORD, ask, product_on, readiness
from support.postgres_pair import Pair, a_pair
from support.processes import heard, until
from support.product import Running

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]
FIELD = 600


def a_run_now(product: Running, schedule_id: str) -> str | None:
    """The id of a run that was acknowledged, if it was."""
    try:
        status, run = product.ask(f"/v1/schedules/{schedule_id}/run", method="POST", body={})
    except (URLError, OSError):
        return None
    return str(run["id"]) if status == 202 else None


def some_schedules(product: Running, count: int) -> list[str]:
    made = []
    for number in range(count):
        body: dict[str, Any] = {
            "name": f"by hand {number}",
            "target": {"kind": "agent", "id": "recorder"},
            "cadence": {"unit": "day", "at": "00:00"},
            "query": "0",
        }
        status, schedule = product.ask("/v1/schedules", method="POST", body=body)
        assert status == 201, schedule
        made.append(schedule["id"])
    return made


def fail_over_under_load(pair: Pair, folder: Path, name: str, after_calls: int) -> None:
    url = pair.database(name)
    key = a_field(url, folder, FIELD, query="0.15")
    pair.wait_in_step()
    few = {"GNOMON_CONCURRENCY": "8"}  # so that most slots have their runs after the failover
    with product_on(url, folder, **few) as first, product_on(url, folder, **few) as second:
        first.started["key"] = second.started["key"] = key
        by_hand = some_schedules(first, 60)
        acknowledged = [a_run_now(first, each) for each in by_hand[:30]]
        until(lambda: len(heard(folder)) >= after_calls, "calls", 60)
        pair.lose_primary()
        assert len(heard(folder)) < FIELD, "work was under way"
        pair.promote()
        acknowledged += [a_run_now(second, each) for each in by_hand[30:45]]
        for product in (first, second):
            until(lambda each=product: readiness(each)[0] == 200, "well again by itself", 60)  # type: ignore[misc]
        after = [a_run_now(second, each) for each in by_hand[45:]]
        assert None not in after
        until(lambda: all_ended(url, FIELD), "every run ended", 90)
        for product in (first, second):
            assert product.process.poll() is None
            assert product.stop() == 0
            assert PASSWORD not in "".join(product.err)
    judge(url, folder, [run for run in acknowledged + after if run is not None])


def judge(url: str, folder: Path, acknowledged: list[str]) -> None:
    slots = "SELECT count(*), count(DISTINCT schedule_id) FROM gnomon.occurrences WHERE disposition = 'fired'"
    assert ask(url, slots) == [(FIELD, FIELD)], "DSP-5: each slot has its record, and one alone"
    there = {row[0] for row in ask(url, "SELECT id FROM gnomon.runs")}
    assert set(acknowledged) - there == set(), "nothing acknowledged is lost"
    keys = Counter(call["key"] for call in heard(folder))
    assert {key for key, times in keys.items() if times > 1} == set(), "nothing runs twice"
    called = {call["run"] for call in heard(folder)}
    succeeded = {row[0] for row in ask(url, "SELECT id FROM gnomon.runs WHERE status = 'succeeded'")}
    assert succeeded <= called
    assert called <= there, "what was called is written down"
    assert ask(url, "SELECT count(*) FROM gnomon.runs WHERE finished_at IS NULL") == [(0,)]


def test_a_standby_takes_over_and_nothing_is_lost_or_done_twice(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """lea-31: a run that the old primary had is ended by its fence and its lease, and none stays without an end."""
    rounds = (50, 150, 250, 350) if request.config.getoption("--long") else (150,)
    for number, after_calls in enumerate(rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        with a_pair(folder) as pair:
            fail_over_under_load(pair, folder, "field", after_calls)
