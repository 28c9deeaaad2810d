"""PRF-1, PRF-2: the invariants hold over every seed, with processes killed and frozen at any await.

``pytest tests/sim --seeds N`` runs N seeds instead of the few of the suite; a failing seed is named, and
``simulate(seed, folder)`` runs it again to the same end.
"""

from collections import Counter
from pathlib import Path

import pytest

from support import simulation_board_plants
from support.history import History
from support.simulation import simulate
from support.simulation_plants import PLANTS
from support.simulation_verdict import breaches

SEEDS = 40
EACH = 4  # so that a test stays short, and two workers share them
INJECTED = {"kill", "freeze", "block", "outage", "lost_answer", "jump", "stop", "healed"}
MUST_SEE = {
    "suspended",
    "refused",
    "overlap excused",
    "recoveries timed",
    "lost claims followed",
    "person got an answer",
    "person got run_in_flight",
    "person got fence_stale",
    "person got revision_stale",
    "edits",
    *(f"target {plan}" for plan in ("quick", "slow", "long", "hang", "again", "fail", "break", "defer")),
}
MUST_END = {"succeeded", "failed", "timed_out", "cancelled", "lost"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" in metafunc.fixturenames:
        count = metafunc.config.getoption("--seeds") or SEEDS
        metafunc.parametrize(("first", "last"), [(n, min(n + EACH, count)) for n in range(0, count, EACH)])


def test_every_invariant_holds(
    tmp_path: Path, tally: Counter[str], pytestconfig: pytest.Config, first: int, last: int
) -> None:
    """A1 … A11, A13, A14, A17, A18, A20, A21, B2, D4, over the file and over what the target heard."""
    for seed in range(first, last):
        history = _simulated(seed, tmp_path, pytestconfig.getoption("--plant"))
        tally.update(history.injected)
        assert breaches(history) == [], f"seed {seed}"
        tally.update(history.seen)
        tally.update({"simulations": 1, "calls of the target": len(history.hits)})
        assert any(run["status"] == "succeeded" for run in history.rows("runs")), f"seed {seed} did nothing"


def _simulated(seed: int, folder: Path, bug: str | None) -> History:
    """One seed, with the bug that ``--plant`` names."""
    if bug is None or bug in {plant.name for plant in simulation_board_plants.PLANTS}:
        return simulate(seed, folder)
    [plant] = [plant for plant in PLANTS if plant.name == bug]
    with plant.take_out("sqlite") as changed:
        return simulate(seed, folder, plant.script, changed)


def test_the_same_seed_is_the_same_history(tmp_path: Path) -> None:
    """PRF-2: whatever was found can be found again."""
    histories = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        history = simulate(3, tmp_path / folder)
        histories.append((history.journal.changes, history.hits, history.faults, history.tables))
    assert histories[0] == histories[1]
    assert len(histories[0][0]) > 100


def test_a_simulation_injects_and_sees_what_it_is_there_for(tmp_path: Path) -> None:
    """Without this a broken simulator would be a green one. Each fault, each ending, each excuse occurs."""
    seen: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for seed in range(1_000, 1_034):
        history = simulate(seed, tmp_path)
        assert breaches(history) == [], f"seed {seed}"
        seen += history.injected + history.seen
        statuses.update(run["status"] for run in history.rows("runs"))
        statuses.update(f"slot {slot['disposition']}" for slot in history.rows("occurrences"))
    assert seen.keys() >= INJECTED, f"never injected: {INJECTED - seen.keys()}"
    assert seen.keys() >= MUST_SEE, f"never seen: {MUST_SEE - seen.keys()}"
    assert MUST_END | {"slot fired", "slot skipped", "slot missed"} <= statuses.keys()
