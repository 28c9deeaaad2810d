"""How every bench here is run: contenders take turns in each round, and a ratio is taken inside its round.

A busy neighbour on the machine then hits all of them alike. The median of the rounds is told, with the best.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
Contender = Callable[[], float]


def interleave(contenders: Mapping[str, Contender], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Run every contender once in each round, in turn; what each measured."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name, contender in contenders.items():
            value = contender()
            found[name].append(value)
            print(f"  round {number + 1}: {name}: {value:,.1f}", file=sys.stderr)
    return found


def ratio(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    """The median and the best of the rounds' ratios."""
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    return median(ratios), max(ratios)


def tell(figure: str, **values: Any) -> None:
    """Print one figure as a JSON line."""
    shown = {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
    print(json.dumps({"figure": figure, **shown}), flush=True)


def machine() -> None:
    """Say what this ran on: rates are this machine's, ratios carry over."""
    tell("machine", cpus=os.cpu_count(), python=platform.python_version(), system=platform.platform())


def child(*arguments: str, timeout: float = 120) -> Any:
    """Run a trial in a process of its own; the last line that it prints is JSON."""
    here = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=timeout, cwd=here, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{arguments}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])
