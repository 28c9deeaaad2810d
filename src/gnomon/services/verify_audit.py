"""The audit read from its first entry to its last: its numbers, the pairs of claims and ends, the fences (OPS-7).

Knows what is open at each point and the last fence of each schedule, and so needs memory for what runs at once and for
the number of schedules, not for the number of entries.
"""

import json
from collections.abc import Iterator

from gnomon.domain.audit import Action
from gnomon.domain.breach import At, Breach, Invariant
from gnomon.domain.run import TERMINAL
from gnomon.services.verify_facts import Facts, text
from gnomon.stores.database import Row

_I = Invariant
_ENDS = (Action.RELEASE.value, Action.EXPIRE.value)
_OVER = {status.value for status in TERMINAL}


class AuditTrail:
    """Feed it every entry in order, then ask ``rest`` for what the last one left open.

    ``gapless`` says that the engine gives no number twice and leaves none out.
    """

    def __init__(self, facts: Facts, *, gapless: bool) -> None:
        self._facts = facts
        self._gapless = gapless
        self._before: Row | None = None
        self._open: dict[str, tuple[int, int]] = {}  # run: fence and number of the entry of its claim
        self._fences: dict[str, int] = {}

    def judge(self, entry: Row) -> Iterator[Breach]:
        """Every breach that this entry shows."""
        if self._gapless:
            yield from self._number(entry)
        self._before = entry
        if entry["subject_kind"] != "run":
            return
        if entry["action"] == Action.CLAIM:
            yield from self._claim(entry)
        elif entry["action"] in _ENDS:
            yield from self._end(entry)

    def rest(self, running: dict[str, int]) -> Iterator[Breach]:
        """What is open at the end, against the runs that are running (id and fence)."""
        for run_id, (fence, seq) in self._open.items():
            if running.get(run_id) != fence:
                sentence = (
                    f"Claim {fence} of run {run_id} was never ended, and the run is not running under it."
                )
                yield Breach(_I.CLAIM_LEFT_OPEN, sentence, (_entry(seq), At("runs", run_id)))
        for run_id, fence in running.items():
            if run_id not in self._open and not self._facts.audit_is_cleaned(run_id):
                sentence = (
                    f"Run {run_id} is running under fence {fence}, and the audit has no claim open for it."
                )
                yield Breach(_I.END_WITHOUT_CLAIM, sentence, (At("runs", run_id),))

    def _number(self, entry: Row) -> Iterator[Breach]:
        """SEC-7, B3: only what is too old may be gone, and it is taken from the beginning."""
        before, floor = self._before, self._facts.audit_before
        expected = 1 if before is None else before["seq"] + 1
        cleaned = floor > 0 and (before is None or before["at"] < floor)
        if entry["seq"] != expected and not cleaned:
            sentence = f"Entry {entry['seq']} of {text(entry['at'])} follows {expected - 1}: what was between is gone."
            yield Breach(_I.AUDIT_GAP, sentence, (_entry(entry["seq"]),))

    def _claim(self, entry: Row) -> Iterator[Breach]:
        run_id, fence = entry["subject_id"], entry["fence"] or 0
        rows = (_entry(entry["seq"]), At("runs", run_id))
        if run_id in self._open:
            held, seq = self._open[run_id]
            sentence = f"Run {run_id} was claimed under fence {fence} while claim {held} of it was open."
            yield Breach(_I.CLAIM_LEFT_OPEN, sentence, (_entry(seq), *rows))
        self._open[run_id] = (fence, entry["seq"])
        schedule_id = entry["schedule_id"]
        if schedule_id is not None:
            last = self._fences.get(schedule_id, 0)
            if fence <= last:
                sentence = (
                    f"Run {run_id} of {schedule_id} was claimed under fence {fence}, after fence {last}."
                )
                yield Breach(_I.FENCE_NOT_GROWING, sentence, rows)
            self._fences[schedule_id] = max(fence, last)

    def _end(self, entry: Row) -> Iterator[Breach]:
        run_id, fence = entry["subject_id"], entry["fence"] or 0
        rows = (_entry(entry["seq"]), At("runs", run_id))
        held = self._open.pop(run_id, None)
        if held is None and not self._facts.audit_is_cleaned(run_id):
            sentence = f"{entry['action']} of run {run_id} under fence {fence} ends no claim that was open."
            yield Breach(_I.END_WITHOUT_CLAIM, sentence, rows)
        elif held is not None and held[0] != fence:
            sentence = (
                f"{entry['action']} of run {run_id} under fence {fence} ends its claim under fence {held[0]}."
            )
            yield Breach(_I.END_WITHOUT_CLAIM, sentence, (_entry(held[1]), *rows))
        became = _became(entry)
        if became in _OVER and entry["run"] is not None and entry["status"] != became:
            sentence = (
                f"{entry['action']} says that run {run_id} became {became}, and it is {entry['status']}."
            )
            yield Breach(_I.END_CONTRADICTS_RUN, sentence, rows)


def _became(entry: Row) -> str:
    """The status that an end gave its run, where it says."""
    detail = json.loads(entry["detail"]) if entry["detail"] else {}
    return str(detail.get("status") or detail.get("outcome") or "")


def _entry(seq: int) -> At:
    return At("audit", str(seq))
