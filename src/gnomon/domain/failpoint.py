"""The named steps at which a test may break a process, and the way they are written down (PRF-1).

A *step* is one write (``claim``, ``take``, ``renew``, ``close``, ``sweep``, ``giveback``); it has a point before it is
sent, one at the end of its transaction, and one after its commit, where the answer is still unread. The other points
lie between the steps. What happens at a point is the affair of ``adapters/failpoints.py``; this module knows no process.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

STEPS = ("claim", "take", "renew", "close", "sweep", "giveback")
# claim.recorded: the slot is put down, and nothing of it committed. open.granted: claimed, and not yet under the
# heartbeat's care. invoke.prepared: before the process asks its own clock; invoke.sent: after. invoke.answered: the
# target is done, and nobody has been told.
ELSEWHERE = frozenset({"open.granted", "invoke.prepared", "invoke.sent", "invoke.answered"})
POINTS = (
    ELSEWHERE
    | {"claim.recorded"}
    | {f"{s}.{where}" for s in STEPS for where in ("sent", "written", "committed")}
)
LONGEST_SECONDS = 600.0
_TRAP = re.compile(
    r"(?P<point>[a-z.]+)=(?P<action>[a-z]+)(?::(?P<seconds>\d+(?:\.\d+)?))?(?:@(?P<nth>[1-9]\d{0,8})(?P<on>\+)?)?"
)


class Effect(StrEnum):
    """What happens at a point.

    ``fail`` raises ``Unavailable``: before a commit nothing was written; after one its answer is lost.
    """

    KILL = "kill"
    STOP = "stop"
    DELAY = "delay"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Trap:
    """One action at one point: at its ``nth`` passing, with ``on`` at each one from there. ``seconds`` are a delay's."""

    point: str
    action: Effect
    seconds: float = 0.0
    nth: int = 1
    on: bool = False

    def springs(self, passing: int) -> bool:
        """Whether it acts at this passing of its point, the first one being 1."""
        return passing >= self.nth if self.on else passing == self.nth


def parse(text: str) -> tuple[Trap, ...]:
    """Traps as they are written, ``point=action[:seconds][@nth[+]]`` with commas between.

    Raises:
        ValueError: with a sentence that names the word at fault.
    """
    return tuple(_trap(word) for word in text.replace(" ", "").split(",") if word)


def _trap(word: str) -> Trap:
    found = _TRAP.fullmatch(word)
    if found is None:
        raise ValueError(f"{ascii(word)[:60]} is no failpoint: write point=action[:seconds][@nth[+]].")
    point, action, seconds = found["point"], found["action"], float(found["seconds"] or 0)
    if point not in POINTS:
        raise ValueError(f"There is no point {point}. There are {_listed(POINTS)}.")
    if action not in [each.value for each in Effect]:
        raise ValueError(f"There is no action {action}. There are {_listed(Effect)}.")
    if action == Effect.FAIL and point in ELSEWHERE:
        raise ValueError(f"{word}: only a write fails as the database does.")
    if (action == Effect.DELAY) != (found["seconds"] is not None) or seconds > LONGEST_SECONDS:
        raise ValueError(f"{word}: a delay, and nothing else, has seconds, {LONGEST_SECONDS:g} at most.")
    return Trap(point, Effect(action), seconds, int(found["nth"] or 1), on=found["on"] is not None)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
