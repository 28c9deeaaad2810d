"""PRF-2 for the board and for pushed jobs: servers and instances that come, go, stand still, answer late or twice.

Two servers to four, up to six instances, over one file and real connections' conversations; ``--seeds N`` runs a quarter of them.
"""

from collections import Counter
from pathlib import Path

import pytest

from support.simulation_board import simulate
from support.simulation_board_checks import breaches
from support.simulation_board_history import BoardHistory
from support.simulation_board_plants import PLANTS
from support.verified import verified

SEEDS = 4
EACH = 2
SHARE = 4  # of the seeds that are asked for: each takes twice as long as one of the schedules
INJECTED = {"kill", "freeze", "block", "outage", "lost_answer", "jump", "stop", "healed"} | {
    "instance killed",
    "instance frozen",
    "connection cut",
}
MUST_SEE = {
    "suspended",
    "refused",
    "person got an answer",
    "report taken",
    "report replayed",
    "report fence_stale",
    "report no answer",
    "told fence_stale",
    "told already_ended",
    *(
        f"trigger {plan}"
        for plan in ("works", "late", "deaf", "twice", "straight", "fails", "contrary", "holds")
    ),
    *(
        f"task {plan}"
        for plan in ("quick", "slow", "long", "forgets", "zombie", "twice", "wrong fence", "back")
    ),
}
MUST_END = {"succeeded", "failed", "missed"}
MUST_AUDIT = {
    "CLAIM",
    "RENEW",
    "RELEASE",
    "EXPIRE",
    "FENCED",
    "PUSH",
    "ACKNOWLEDGE",
    "TAKE_BACK",
    "FINISH",
    "OFFLINE",
    "GIVE",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" in metafunc.fixturenames:
        count = max((metafunc.config.getoption("--seeds") or 0) // SHARE, SEEDS)
        metafunc.parametrize(("first", "last"), [(n, min(n + EACH, count)) for n in range(0, count, EACH)])


def test_every_invariant_of_the_board_and_of_jobs_holds(
    tmp_path: Path, tally: Counter[str], pytestconfig: pytest.Config, first: int, last: int
) -> None:
    """BRD-1 to BRD-8, JOB-2 to JOB-5, IDM-2, IDM-3; and verify, which shares no code with the checks, agrees (OPS-7)."""
    for seed in range(first, last):
        history = _simulated(seed, tmp_path, pytestconfig.getoption("--plant"))
        tally.update(history.injected)
        assert breaches(history) == [], f"seed {seed}"
        assert [breach.sentence for breach in verified(tmp_path, seed, history)] == [], f"seed {seed}"
        tally.update(
            {"simulations of the board": 1, "pushes": len(history.deliveries), "claims": len(history.holds)}
        )
        assert history.rows("triggers"), f"seed {seed} had no slot"
        assert history.holds, f"seed {seed} claimed nothing"


def _simulated(seed: int, folder: Path, bug: str | None) -> BoardHistory:
    """One seed, with the bug that ``--plant`` names, where it is one of these."""
    for plant in PLANTS:
        if plant.name == bug:
            with plant.take_out() as changed:
                return simulate(seed, folder, plant.script, changed)
    return simulate(seed, folder)


def test_the_same_seed_is_the_same_history(tmp_path: Path) -> None:
    """PRF-2: whatever was found can be found again."""
    histories = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        history = simulate(3, tmp_path / folder)
        histories.append(
            (history.journal.changes, history.deliveries, history.holds, history.told, history.tables)
        )
    assert histories[0] == histories[1]
    assert len(histories[0][0]) > 100


def test_a_simulation_injects_and_sees_what_it_is_there_for(tmp_path: Path) -> None:
    """Without this a broken simulator would be a green one. Each fault, each manner, each ending occurs."""
    seen: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for seed in range(1_000, 1_010):
        history = simulate(seed, tmp_path)
        assert breaches(history) == [], f"seed {seed}"
        seen += history.injected + history.seen
        statuses.update(trigger["status"] for trigger in history.rows("triggers"))
        statuses.update(entry["action"] for entry in history.rows("audit_entries"))
        statuses["redelivered"] += sum(each.redelivered for each in history.deliveries)
    assert seen.keys() >= INJECTED, f"never injected: {INJECTED - seen.keys()}"
    assert seen.keys() >= MUST_SEE, f"never seen: {MUST_SEE - seen.keys()}"
    assert statuses.keys() >= MUST_END | MUST_AUDIT, f"never: {(MUST_END | MUST_AUDIT) - statuses.keys()}"
    assert statuses["redelivered"] > 0
