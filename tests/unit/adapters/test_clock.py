"""The machine's clocks: what can be compared between processes, and what can't (RUN-5b)."""

import subprocess
import sys

from gnomon.adapters.clock import SystemClock

SAY = "from gnomon.adapters.clock import SystemClock as C; c = C(); print(c.boot(), c.monotonic(), sep='|')"


def test_processes_of_one_boot_can_compare_their_clocks() -> None:
    """RUN-5b: the same boot and the same count since it, in whatever process."""
    clock = SystemClock()
    before = clock.monotonic()
    said = subprocess.run([sys.executable, "-c", SAY], capture_output=True, text=True, check=True, timeout=30)
    boot, _, monotonic = said.stdout.strip().partition("|")
    assert boot == str(clock.boot())
    assert before <= float(monotonic) <= clock.monotonic()
