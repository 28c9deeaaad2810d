"""Python's garbage collector, set for a process that makes many records which die young.

Nothing of a run refers to itself, so that counting references frees it; to look for rings among the living every few
hundred records costs some percent of all the work and finds next to nothing.
"""

import gc

YOUNG, MIDDLE, OLD = 20_000, 20, 20


def unhurry_collector() -> None:
    """Leave what the start has made alone, and look for rings less often. Once, before the work begins."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
