"""The product as a real process with one of its guards taken out: ``python -m support.chaos_planted ENGINE GUARD WORDS…``."""

import sys
from unittest.mock import AsyncMock, patch

from gnomon.__main__ import main
from gnomon.services.rehearsal import Rehearsal
from gnomon.stores import queries
from support.simulation_plants import PLANTS


def run(engine: str, guard: str) -> None:
    """Start the program without the guard of this name."""
    [plant] = [plant for plant in PLANTS if plant.name == guard]
    load = queries.load
    # it would be found before anything happened: what nobody's guard lets through would be there
    Rehearsal.run = AsyncMock()  # type: ignore[method-assign]
    with plant.take_out(engine) as changed, patch.object(queries, "load", lambda e: {**load(e), **changed}):
        main()


if __name__ == "__main__":
    engine, guard, *words = sys.argv[1:]
    sys.argv[1:] = words
    run(engine, guard)
