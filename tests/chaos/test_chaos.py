"""Real processes over one file, killed, stopped and continued: what the ledger and the target say afterwards (PRF-1).

A round of the suite is short and its seed is fixed; ``--long`` repeats with other seeds.
"""

import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from support.processes import a_field, heard, look, until
from support.product import Running, up

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
FIELD = 2_000
QUICK = {
    "GNOMON_TICK_SECONDS": "0.5",
    "GNOMON_SWEEP_SECONDS": "0.3",
    "GNOMON_HEARTBEAT_SECONDS": "0.3",
    "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": "2",
    "GNOMON_CONCURRENCY": "40",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(4 if metafunc.config.getoption("--long") else 1))


def start(folder: Path) -> Running:
    """Another process over the folder's file."""
    product = Running(("up", "--port", "0", "--json"), folder, QUICK)
    product.wait_for_start()
    return product


def all_ended(path: Path, count: int) -> bool:
    """Whether each of ``count`` slots has its record and no run is left."""
    [(slots,)] = look(path, "SELECT count(*) FROM occurrences")
    return slots >= count and not look(path, "SELECT 1 FROM runs WHERE finished_at IS NULL LIMIT 1")


def test_a_process_killed_in_the_middle_doubles_and_loses_no_slot(tmp_path: Path, seed: int) -> None:
    """K1-K13, A1, A2, A3, A7, A9, A11: 2,000 slots due at once, two processes, one killed with SIGKILL and started again."""
    rng = random.Random(seed)
    path = a_field(tmp_path, FIELD, query="0.05")
    first, second = start(tmp_path), start(tmp_path)
    processes = [first, second]
    try:
        for threshold in sorted(rng.sample(range(50, FIELD - 200), 2)):
            until(lambda most=threshold: len(heard(tmp_path)) >= most, "calls")  # type: ignore[misc]
            busiest = heard(tmp_path)[-1]["pid"]
            victim = next((each for each in processes if each.process.pid == busiest), processes[0])
            processes.remove(victim)
            victim.process.kill()
            victim.end()
            processes.append(start(tmp_path))
        until(lambda: all_ended(path, FIELD), "every run ended", 90.0)
    finally:
        for process in processes:
            process.end()
    assert look(
        path, "SELECT count(*), count(DISTINCT schedule_id), sum(disposition = 'fired') FROM occurrences"
    ) == [(FIELD, FIELD, FIELD)]
    calls = Counter(call["key"] for call in heard(tmp_path))
    assert {key for key, count in calls.items() if count > 1} == set(), "no slot's key was heard twice"
    statuses = dict(look(path, "SELECT status, count(*) FROM runs GROUP BY status"))
    assert set(statuses) <= {"succeeded", "lost"}
    had = 40 + 40  # at work, and as many whose end was being written
    assert statuses.get("lost", 0) <= 2 * had, "no more than what the killed ones had in work"
    succeeded = {row[0] for row in look(path, "SELECT id FROM runs WHERE status = 'succeeded'")}
    assert succeeded <= calls.keys()
    assert not look(path, "SELECT 1 FROM runs WHERE finished_at IS NULL")
    assert not look(path, "SELECT 1 FROM schedules WHERE run_count <> 1")
    check_claims(path)


def check_claims(path: Path) -> None:
    """B2: each CLAIM has its one RELEASE or EXPIRE, under the same fence."""
    entries = look(
        path,
        "SELECT subject_id, fence, sum(action = 'CLAIM'), sum(action <> 'CLAIM') FROM audit_entries "
        "WHERE action IN ('CLAIM', 'RELEASE', 'EXPIRE') GROUP BY 1, 2",
    )
    assert [entry for entry in entries if entry[2:] != (1, 1)] == []


def test_a_zombie_s_answers_are_refused_when_it_wakes(tmp_path: Path, seed: int) -> None:
    """Z1, A5, A6: SIGSTOP past the heartbeat timeout, then SIGCONT: what it had was taken, and stays taken."""
    path = a_field(tmp_path, 20, query="1.5")
    zombie = start(tmp_path)
    try:
        until(lambda: len(heard(tmp_path)) == 20, "all begun")
        zombie.process.send_signal(signal.SIGSTOP)
        other = start(tmp_path)
        try:
            until(lambda: all_ended(path, 20), "the other took them")
            taken = look(path, "SELECT id, status, fence, finished_at FROM runs ORDER BY id")
            assert {row[1] for row in taken} == {"lost"}
            zombie.process.send_signal(signal.SIGCONT)
            beats = "SELECT heartbeat_at FROM processes WHERE pid = ?"
            [(before,)] = look(path, beats, zombie.process.pid)
            until(lambda: look(path, beats, zombie.process.pid)[0][0] > before, "it lives again")
            until(lambda: zombie.ask("/readyz")[0] == 200, "it works again")
            assert look(path, "SELECT id, status, fence, finished_at FROM runs ORDER BY id") == taken
            assert len(heard(tmp_path)) == 20, "nothing was done twice"
            assert other.stop() == 0
        finally:
            other.end()
        assert zombie.stop() == 0
    finally:
        zombie.process.send_signal(signal.SIGCONT)
        zombie.end()
    check_claims(path)


def test_a_stop_in_the_middle_of_fifty_runs_ends_in_its_grace(tmp_path: Path, seed: int) -> None:
    """S3, DSP-10: what was begun is finished, what was not is the next process's at once."""
    path = a_field(tmp_path, 120, query="1.0")
    with up(tmp_path, **QUICK, GNOMON_SHUTDOWN_GRACE_SECONDS="10") as first:
        until(lambda: len(heard(tmp_path)) >= 40, "the first ones begun")
        assert first.stop() == 0
    ended = dict(look(path, "SELECT status, count(*) FROM runs GROUP BY status"))
    assert set(ended) <= {"succeeded", "queued"}, ended
    assert ended["succeeded"] >= 40
    assert ended["succeeded"] == len(heard(tmp_path))
    assert look(path, "SELECT count(*) FROM processes WHERE stopped_at IS NULL") == [(0,)]
    with up(tmp_path, **QUICK) as second:
        until(lambda: all_ended(path, 120), "the rest")
        assert second.stop() == 0
    assert look(path, "SELECT status, count(*) FROM runs GROUP BY status") == [("succeeded", 120)]
    assert max(Counter(call["key"] for call in heard(tmp_path)).values()) == 1
    check_claims(path)
