"""Python itself, set for a process whose threads hand short work to each other, and whose records die young.

Nothing of a run refers to itself, so that counting references frees it; to look for rings among the living every few
hundred records costs some percent of all the work and finds next to nothing. And a thread that comes back from the
database waits until the one that computes is asked to let it in: with the interval that is stock, five milliseconds, a
transaction of a few statements waits longer for the interpreter than for the disk.
"""

import atexit
import gc
import sys

YOUNG, MIDDLE, OLD = 100_000, 10, 10
COMMAND = 200_000  # more than a command makes
SWITCH_SECONDS = 0.0005


def spare_interpreter() -> None:
    """Look for rings less often, and not once more at the end. Before the rest of the program is imported.

    Nearly all that a command makes are modules, which live until it ends: each look at them finds nothing, and those that
    Python takes while it ends find what the machine takes back a moment later anyway.
    """
    gc.set_threshold(COMMAND, MIDDLE, OLD)
    atexit.register(gc.freeze)


def tune_interpreter() -> None:
    """Look for rings less often, leave what the start has made alone, let threads in sooner. Once, before the work begins."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
    sys.setswitchinterval(SWITCH_SECONDS)
