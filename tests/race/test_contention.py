"""Real processes race on one SQLite file, and exactly one wins each time (PRF-3)."""

import json
from pathlib import Path

import pytest

from support.processes import a_field, look
from support.programs import race

pytestmark = pytest.mark.process
SLOTS = 300
CONTEND = """
    import asyncio, sys
    from pathlib import Path
    from support.processes import contend
    asyncio.run(contend(Path(sys.argv[1]), sys.argv[2]))
"""


def contenders(path: Path, what: str, count: int) -> list[dict[str, object]]:
    return [json.loads(out) for out in race(CONTEND, *[(path, what)] * count)]


@pytest.mark.parametrize("processes", [2, 4])
def test_each_slot_is_recorded_by_one_of_several_dispatchers(tmp_path: Path, processes: int) -> None:
    """DSP-3, DSP-6, A1; casebook dbl-04, dbl-13, sql-01, sql-02: one occurrence, one run, one entry in the audit for each slot."""
    path = a_field(tmp_path, SLOTS)
    contenders(path, "slots", processes)
    [(slots, schedules, fired)] = look(
        path, "SELECT count(*), count(DISTINCT schedule_id), sum(disposition = 'fired') FROM occurrences"
    )
    assert (slots, schedules, fired) == (SLOTS, SLOTS, SLOTS)
    assert look(path, "SELECT count(*), count(DISTINCT schedule_id) FROM runs") == [(SLOTS, SLOTS)]
    assert look(path, "SELECT count(*) FROM audit_entries WHERE action = 'FIRE'") == [(SLOTS,)]
    assert look(path, "SELECT count(*) FROM schedules WHERE run_count <> 1") == [(0,)]


@pytest.mark.parametrize("processes", [2, 4])
def test_each_queued_run_is_worked_on_by_one_of_several_runners(tmp_path: Path, processes: int) -> None:
    """RUN-1, RUN-6, A3; casebook dbl-13, dbl-18: one claim and one call for each run, and no process did it all."""
    path = a_field(tmp_path, SLOTS)
    contenders(path, "slots", 1)
    found = contenders(path, "runs", processes)
    heard = [run for each in found for run in each["runs"]]  # type: ignore[attr-defined]
    assert len(heard) == len(set(heard)) == SLOTS
    assert look(path, "SELECT status, fence, attempt, count(*) FROM runs GROUP BY 1, 2, 3") == [
        ("succeeded", 1, 1, SLOTS)
    ]
    claims = look(path, "SELECT actor, count(*) FROM audit_entries WHERE action = 'CLAIM' GROUP BY actor")
    assert sum(count for _, count in claims) == SLOTS
    assert len(claims) > 1, "a race needs two"
    assert look(path, "SELECT count(*) FROM audit_entries WHERE action IN ('EXPIRE', 'FENCED')") == [(0,)]
