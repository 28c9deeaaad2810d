"""Claims and reports of tasks a second, on both engines, beside a raw loop that does the same statements by hand (BRD).

The raw loop has one connection and computes nothing; the bar is half of it.
"""

import tempfile
from pathlib import Path
from statistics import median

from bench.postgres_place import Place, place
from bench.rounds import child, interleave, ratio, tell

TASKS = 800
BAR, GOAL = 0.5, 0.8
TRIAL = ("-m", "bench.board_trial")


def rate(url: str, what: str, *numbers: int) -> float:
    child(*TRIAL, "fill", url, str(TASKS))
    return float(child(*TRIAL, what, url, *map(str, numbers))["per_second"])


def on_file(folder: Path, what: str, *numbers: int) -> float:
    path = folder / "board.db"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    return rate(str(path), what, *numbers)


def on_server(here: Place, what: str, *numbers: int) -> float:
    return rate(here.fresh("board"), what, *numbers)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with place(folder) as here:
            found = interleave(
                {
                    "SQLite, one instance": lambda: on_file(folder, "ours", 1, 1),
                    "SQLite, ten instances": lambda: on_file(folder, "ours", 10, 1),
                    "SQLite, ten at a time": lambda: on_file(folder, "ours", 1, 10),
                    "SQLite, raw": lambda: on_file(folder, "raw", 1),
                    "SQLite, raw, ten at a time": lambda: on_file(folder, "raw", 10),
                    "PostgreSQL, one instance": lambda: on_server(here, "ours", 1, 1),
                    "PostgreSQL, ten instances": lambda: on_server(here, "ours", 10, 1),
                    "PostgreSQL, ten at a time": lambda: on_server(here, "ours", 1, 10),
                    "PostgreSQL, raw": lambda: on_server(here, "raw", 1),
                    "PostgreSQL, raw, ten at a time": lambda: on_server(here, "raw", 10),
                }
            )
    for what in (each for each in found if "raw" not in each):
        engine, _, how = what.partition(", ")
        against = f"{engine}, raw" + (", ten at a time" if how == "ten at a time" else "")
        middle, best = ratio(found[what], found[against])
        tell(
            "BRD",
            what=what,
            against=against,
            ours_per_second=median(found[what]),
            theirs_per_second=median(found[against]),
            ratio=middle,
            best=best,
            bar=BAR,
            goal=GOAL,
            holds=best >= BAR,
        )


if __name__ == "__main__":
    main()
