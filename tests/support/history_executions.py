"""The invariants of what reached the target: deliveries, overlaps, fences (A3, A4, A5)."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from support.history import History, Hit

RESUMES = 3
EXCLUSIVE = {"skip", "queue_one", "cancel_running"}
MOMENT = 0.5  # a target that was told to stop may take so long to hear it


def delivered_once(history: History) -> Iterator[str]:
    """A3, RUN-6: an attempt is delivered once, under one key, and no more often than the policy allows."""
    attempts: dict[str, list[Hit]] = defaultdict(list)
    for hit in history.hits:
        attempts[hit.run_id].append(hit)
        if hit.key != hit.run_id:
            yield f"run {hit.run_id} was delivered under the key {hit.key}"
    schedules = {row["id"]: row for row in history.rows("schedules")}
    for run in history.rows("runs"):
        hits = attempts[run["id"]]
        seen = {(hit.attempt, hit.fence) for hit in hits}
        if len(seen) != len(hits) or len({hit.fence for hit in hits}) != len(hits):
            yield f"run {run['id']} was delivered as {[(hit.attempt, hit.fence) for hit in hits]}"
        policy = schedules[run["schedule_id"]]
        most = policy["max_attempts"] + (RESUMES if policy["on_lost"] == "resume" else 0)
        if len(hits) > most:
            yield f"run {run['id']} was delivered {len(hits)} times of {most}"


def executions_do_not_overlap(history: History) -> Iterator[str]:
    """A4: executions of one schedule, but under ``allow``, follow one another, unless the earlier one was frozen."""
    for schedule, hits in _by_schedule(history).items():
        if schedule["overlap"] not in EXCLUSIVE:
            continue
        for earlier, later in _touching(hits):
            if _frozen(history, earlier, later.begin):
                history.seen["overlap excused"] += 1
                continue
            yield (
                f"{schedule['id']} ({schedule['overlap']}): {earlier.run_id}/{earlier.fence} on {earlier.process} ran "
                f"{earlier.begin:.3f} to {earlier.end}, {later.run_id}/{later.fence} on {later.process} began "
                f"at {later.begin:.3f}"
            )


def fences_grow(history: History) -> Iterator[str]:
    """A5: the target never sees an old fence after a newer one: whoever stood still asks his own clock first."""
    for schedule, hits in _by_schedule(history).items():
        runs = defaultdict(set)
        for hit in hits:
            runs[hit.fence].add(hit.run_id)
            if hit.fence < 1:
                yield f"run {hit.run_id} was delivered without a fence"
        yield from (
            f"fence {fence} of {schedule['id']} went to {sorted(ids)}"
            for fence, ids in runs.items()
            if len(ids) > 1
        )
        if schedule["overlap"] in EXCLUSIVE:
            for one, next_one in pairwise(hits):
                if next_one.fence < one.fence:
                    yield f"{schedule['id']}: fence {next_one.fence} came after {one.fence}"


def _by_schedule(history: History) -> dict["_Row", list[Hit]]:
    schedules = {row["id"]: _Row(row) for row in history.rows("schedules")}
    of_run = {run["id"]: run["schedule_id"] for run in history.rows("runs")}
    found: dict[_Row, list[Hit]] = defaultdict(list)
    for hit in sorted(history.hits, key=lambda hit: hit.begin):
        if hit.run_id in of_run:
            found[schedules[of_run[hit.run_id]]].append(hit)
    return found


class _Row(dict[str, object]):
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self["id"])


def _touching(hits: list[Hit]) -> Iterator[tuple[Hit, Hit]]:
    open_hits: list[Hit] = []
    for hit in hits:
        open_hits = [old for old in open_hits if old.end is None or old.end > hit.begin + MOMENT]
        yield from ((old, hit) for old in open_hits)
        open_hits.append(hit)


def _frozen(history: History, hit: Hit, until: float) -> bool:
    """Whether the process of the earlier call stood still: then it could not stop its own work (RUN-5)."""
    return history.touched(hit.process, hit.begin - 1.0, until, {"freeze", "block"}, 3.0)


CHECKS = (delivered_once, executions_do_not_overlap, fences_grow)
