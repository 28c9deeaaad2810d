"""Python itself, set for a process whose threads hand short work to each other, and whose records die young.

Nothing of a run refers to itself, so that counting references frees it; to look for rings among the living every few
hundred records costs some percent of all the work and finds next to nothing. And a thread that comes back from the
database waits until the one that computes is asked to let it in: with the interval that is stock, five milliseconds, a
transaction of a few statements waits longer for the interpreter than for the disk.
"""

import gc
import sys

YOUNG, MIDDLE, OLD = 100_000, 10, 10
SWITCH_SECONDS = 0.0005


def tune_interpreter() -> None:
    """Look for rings less often, leave what the start has made alone, let threads in sooner. Once, before the work begins."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
    sys.setswitchinterval(SWITCH_SECONDS)
