"""Everything on PostgreSQL, over one server: `python -m bench postgres`."""

import tempfile
from pathlib import Path

from bench import postgres_counts, postgres_on_time, postgres_runs
from bench.postgres_place import place


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with place(folder) as here:
            postgres_runs.main(here, folder)
            postgres_counts.main(here)
            postgres_on_time.main(here)
