"""OPS-7 beside PRF-2: two judges that share no code. What the simulator's checks find clean, verify does too; and back."""

from pathlib import Path

import pytest

from support.simulation import simulate
from support.simulation_plants import PLANTS, Plant
from support.simulation_verdict import breaches
from support.verified import verified

BOUND = 30  # seeds
# What these leave behind can be seen in the records. The others show in what the target heard, and when.
SEEN = {
    "unguarded claim",
    "unfenced close",
    "advance outside the transaction",
    "given back without a word",
}


@pytest.mark.parametrize("first", range(2_000, 2_024, 4))
def test_what_every_check_finds_clean_verify_does_too(tmp_path: Path, first: int) -> None:
    """OPS-7: killed, frozen and jumped at any await, and no breach."""
    for seed in range(first, first + 4):
        history = simulate(seed, tmp_path)
        assert breaches(history) == [], f"seed {seed}"
        assert [breach.sentence for breach in verified(tmp_path, seed, history)] == [], f"seed {seed}"


@pytest.mark.parametrize(
    "plant", [plant for plant in PLANTS if plant.name in SEEN], ids=lambda plant: plant.name.replace(" ", "-")
)
def test_a_missing_guard_is_seen_in_the_records(tmp_path: Path, plant: Plant) -> None:
    """OPS-7: and never where the simulator's own checks see nothing."""
    for seed in range(BOUND):
        with plant.take_out("sqlite") as changed:
            history = simulate(seed, tmp_path, plant.script, changed)
        found = verified(tmp_path, seed, history)
        if found:
            assert breaches(history), [breach.sentence for breach in found]
            return
    pytest.fail(f"{plant.name}: verify found nothing in {BOUND} seeds")
