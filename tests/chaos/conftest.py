"""The databases that chaos runs over, by engine, and how a world of real processes is made over one."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chaos_history import breaches, gather, told
from support.chaos_stores import PostgresStore, SqliteStore, Store
from support.chaos_world import World, drawn_from, program_of

ENGINES = ("postgres", "sqlite")


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A database of its own, on each engine."""
    if request.param == "sqlite":
        return SqliteStore(tmp_path)
    url: str = request.getfixturevalue("postgres_url")
    return PostgresStore(url, f"chaos_{random.Random(str(tmp_path)).getrandbits(48):012x}")


@pytest.fixture
def world(
    store: Store, tmp_path: Path, request: pytest.FixtureRequest, tally: Counter[str]
) -> Iterator[World]:
    """Processes over a database, judged at the end: whatever a scenario did, every invariant holds (PRF-1)."""
    with World(store, tmp_path, drawn_from(request), program_of(request, store.name)) as made:
        yield made
        made.settle()
        made.stop()
        history = gather(made)
        tally.update(told(history))
        assert breaches(made, history) == []
