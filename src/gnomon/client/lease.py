"""A worker's own view of its lease on a task. PURE: each question is asked with the monotonic seconds of now.

The window begins when the request that got it was sent, never when its answer came: so it ends here before it ends at
the server, by a margin in which what is at work can be stopped (BRD-2, RUN-5).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

WINDOW_SECONDS = 120.0
_RENEW_AT = 1 / 3
_MARGIN = 1 / 12
# A machine that sleeps does not count its sleep as waiting: nobody waits longer than this without a look at the clock.
_LONGEST_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Lease:
    """``granted_at`` is when the last grant was asked for; ``renew_at`` when to ask for the next one."""

    window_seconds: float
    granted_at: float
    renew_at: float
    failures: int = 0

    @property
    def margin_seconds(self) -> float:
        """How much earlier it ends here."""
        return self.window_seconds * _MARGIN

    @property
    def ends_at(self) -> float:
        """From here on nothing is done under it."""
        return self.granted_at + self.window_seconds - self.margin_seconds

    def is_over(self, now: float) -> bool:
        """Whether it has ended by the worker's own clock."""
        return now >= self.ends_at

    def seconds_left(self, now: float) -> float:
        """How long the server still keeps the task for this worker, at the least."""
        return max(0.0, self.granted_at + self.window_seconds - now)

    def wait(self, now: float) -> float:
        """How long to wait before the next look."""
        return min(max(0.0, min(self.renew_at, self.ends_at) - now), _LONGEST_WAIT)

    def is_due(self, now: float) -> bool:
        """Whether to ask for a renewal now."""
        return now >= self.renew_at

    def patience(self, now: float) -> float:
        """What one phase of a request may take, so that a server that hangs doesn't hide the end."""
        return max(0.05, min(10.0, (self.ends_at - now) / 4))

    def renewed(self, sent_at: float) -> "Lease":
        """After a renewal that was asked for at ``sent_at``."""
        return granted(self.window_seconds, sent_at)

    def failed(self, now: float, chance: float) -> "Lease":
        """After a renewal that nobody answered: again soon, at most a tenth of the window later."""
        pause = min(0.2 * 2.0 ** min(self.failures, 30), self.window_seconds / 10)
        return replace(self, failures=self.failures + 1, renew_at=now + pause * (0.5 + chance / 2))


def granted(window_seconds: float, sent_at: float) -> Lease:
    """A lease that was asked for at ``sent_at``; it is renewed after a third of its window."""
    return Lease(window_seconds, sent_at, sent_at + window_seconds * _RENEW_AT)


def window(claim: Mapping[str, Any], headers: Mapping[str, str]) -> float:
    """The length of a claim's window in seconds: what the server says, in its own time on both ends.

    The wall clock of this machine has no say in it. A server that takes tasks from the silent before their window ends
    says so by a shorter ``renew_seconds``. ``headers`` have names in lower case.
    """
    asked = claim.get("renew_seconds")
    longest = WINDOW_SECONDS if not isinstance(asked, int | float) else asked / _RENEW_AT
    expires_at = _instant(claim.get("expires_at"))
    task = claim.get("task")
    holder = task.get("held_by") if isinstance(task, Mapping) else None
    since = _instant(holder.get("since")) if isinstance(holder, Mapping) else None
    if since is None and "date" in headers:
        since = parsedate_to_datetime(headers["date"])
    if expires_at is None or since is None:
        return longest
    seconds = (expires_at - since).total_seconds()
    if seconds <= 0:
        return longest
    return seconds if asked is None else min(seconds, longest)


def _instant(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
