"""How SQLite goes about what people ask: by key or by index, in the order of the index, sorting nothing (HOUSE rule 5)."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from gnomon.stores import queries
from support.databases import a_file

QUERIES = queries.load("sqlite")
THE_LOCK = ["CORRELATED SCALAR SUBQUERY 1", "SEARCH runs USING PRIMARY KEY (id=?)"]


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    path: Path = a_file(tmp_path_factory.mktemp("plans"))
    connection = apsw.Connection(str(path))
    connection.create_scalar_function("now_us", lambda *_: 0, 0, deterministic=True)
    yield connection
    connection.close()


def plan(raw: apsw.Connection, name: str) -> list[str]:
    query = QUERIES[name]
    nothing = dict.fromkeys(query.parameters)
    return [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {query.text}", nothing)]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("schedules.get", ["SEARCH schedules USING PRIMARY KEY (id=?)", *THE_LOCK]),
        ("schedules.page", ["SEARCH schedules USING PRIMARY KEY (id>?)", *THE_LOCK]),
        (
            "schedules.pauses_over",
            ["SEARCH schedules USING INDEX schedules_until (status_until>? AND status_until<?)", *THE_LOCK],
        ),
        (
            "schedules.replaced_revisions",
            ["SEARCH revisions USING PRIMARY KEY (schedule_id=? AND revision<?)"],
        ),
        ("schedules.revision_at", ["SEARCH revisions USING PRIMARY KEY (schedule_id=?)"]),
        (
            "history.occurrences",
            [
                "SEARCH occurrences USING PRIMARY KEY (schedule_id=? AND nominal_fire_at>? AND nominal_fire_at<?)"
            ],
        ),
        (
            "history.occurrence_after",
            ["SEARCH occurrences USING PRIMARY KEY (schedule_id=? AND nominal_fire_at>?)"],
        ),
        (
            "history.covering",
            ["SEARCH occurrences USING INDEX occurrences_ranges (schedule_id=? AND coalesced_last>?)"],
        ),
        ("history.status_before", ["SEARCH status_changes USING PRIMARY KEY (schedule_id=?)"]),
        ("history.status_from", ["SEARCH status_changes USING PRIMARY KEY (schedule_id=?)"]),
        ("history.runs", ["SEARCH runs USING PRIMARY KEY (id<?)"]),
        (
            "history.scheduled_runs",
            [
                "SEARCH o USING PRIMARY KEY (schedule_id=? AND nominal_fire_at<?)",
                "SEARCH runs USING PRIMARY KEY (id=?)",
            ],
        ),
        ("history.unscheduled_runs", ["SEARCH runs USING INDEX runs_unscheduled (schedule_id=? AND id<?)"]),
        ("history.run_events", ["SEARCH run_events USING PRIMARY KEY (run_id=? AND seq>?)"]),
    ],
)
def test_it_is_a_search_and_nothing_is_sorted(raw: apsw.Connection, name: str, wanted: list[str]) -> None:
    assert plan(raw, name) == wanted


def test_the_natural_key_is_found_by_the_target(raw: apsw.Connection) -> None:
    """SCH-13: the few schedules of one target are sorted, no other is looked at."""
    found = plan(raw, "schedules.of_target")
    assert found[0] == "SEARCH schedules USING INDEX schedules_target (target_kind=? AND target_id=?)"
    assert not any(step.startswith("SCAN") for step in found)
