"""PRF-4, for the simulator of the board and of pushed jobs: with a guard taken out, some invariant is soon broken."""

from pathlib import Path

import pytest

from support.simulation_board import simulate
from support.simulation_board_checks import breaches
from support.simulation_board_plants import PLANTS, BoardPlant

BOUND = 20  # seeds


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name.replace(" ", "-"))
def test_a_missing_guard_is_found(tmp_path: Path, plant: BoardPlant) -> None:
    for seed in range(BOUND):
        with plant.take_out() as changed:
            history = simulate(seed, tmp_path, plant.script, changed)
        if plant.shows in {breach.partition(":")[0] for breach in breaches(history)}:
            break
    else:
        pytest.fail(f"{plant.name}: nothing was found in {BOUND} seeds")
    untouched = simulate(seed, tmp_path, plant.script)  # and it is the plant that is seen, not the seed
    assert breaches(untouched) == []
