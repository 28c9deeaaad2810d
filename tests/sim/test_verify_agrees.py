"""OPS-7 beside PRF-2: two judges that share no code. What the simulator's checks find clean, verify does too; and back."""

import asyncio
from pathlib import Path

import pytest

from gnomon.domain.breach import Breach
from gnomon.domain.instants import from_micros
from gnomon.services.verify import Verify
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock
from support.history import History
from support.simulation import simulate
from support.simulation_plants import PLANTS, Plant
from support.simulation_verdict import breaches

BOUND = 30  # seeds
# What these leave behind can be seen in the records. The others show in what the target heard, and when.
SEEN = {
    "unguarded claim",
    "unfenced close",
    "advance outside the transaction",
    "given back without a word",
}


def verified(folder: Path, seed: int, history: History) -> list[Breach]:
    """What verify says of the file that a simulation left behind, at the instant at which it ended."""

    async def judge() -> list[Breach]:
        database = SqliteDatabase(folder / f"sim-{seed}.db", FrozenClock(from_micros(history.ended_wall)))
        found: list[Breach] = []
        await Verify(database, gapless=True).run(found.append)
        await database.close()
        return found

    return asyncio.run(judge())


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
