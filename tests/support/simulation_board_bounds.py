"""How long an abandoned task may be gone, over one history of the board (BRD-5)."""

from collections.abc import Iterator

from support.simulation_board_history import BoardHistory

LOCK_SECONDS = 120.0


def the_abandoned_come_back(history: BoardHistory) -> Iterator[str]:
    """BRD-4, BRD-5: within its window, a sweep and some slack, wherever one server was well and the clock was left alone."""
    bound = LOCK_SECONDS + history.sweep + history.slack
    locked: dict[tuple[str, int], float] = {}
    freed: dict[tuple[str, int], float] = {}
    for change in history.journal.of("lock"):
        if change.new["fence"] is None:
            freed[change.subject, change.old["fence"]] = change.at
        else:
            locked.setdefault((change.subject, change.new["fence"]), change.at)
    for label, at in history.fell_silent:
        jumped = any(f.kind == "jump" and at - 2 * bound <= f.begin <= at + bound for f in history.faults)
        if jumped or not any(_is_well(history, each, at, at + bound) for each in history.births):
            continue
        for held in history.holds:
            claim = held.task_id, held.fence
            if held.worker == label and locked[claim] <= at < freed.get(claim, float("inf")):
                history.seen["abandonments timed"] += 1
                if freed.get(claim, float("inf")) > at + bound:
                    yield f"task {claim} was abandoned at {at:.1f}, and was free at {freed.get(claim)}"


def _is_well(history: BoardHistory, server: str, begin: float, end: float) -> bool:
    """Whether a server was there and nothing was done to it."""
    settled = history.births[server] + 60.0 <= begin
    return settled and not any(fault.touches(server, begin - 60.0, end) for fault in history.faults)
