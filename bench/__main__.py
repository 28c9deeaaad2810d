"""Every bench, one after the other: `make bench`, or `python -m bench cadence postgres`."""

import sys

from bench import board, cadence, instances, on_time, postgres, sqlite_runs
from bench.rounds import machine

SUITES = {"cadence": cadence.main, "on_time": on_time.main, "sqlite": sqlite_runs.main,
          "postgres": postgres.main, "instances": instances.main, "board": board.main}  # fmt: skip


def main() -> None:
    machine()
    for name in sys.argv[1:] or SUITES:
        SUITES[name]()


if __name__ == "__main__":
    main()
