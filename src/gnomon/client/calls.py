"""One request as data, what became of it, and whether to try again. PURE: nothing is sent and no clock is read here.

A request that was sent and not answered may have taken effect. It is repeated under the same Idempotency-Key, or not
at all (IDM-2).
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from gnomon.client.backoff import Backoff
from gnomon.client.errors import ClientError, Unreachable, refused

PATIENCE_SECONDS = 30.0
_AGAIN = frozenset({425, 429, 502, 503, 504})
_DOUBTFUL = frozenset({502, 504})
_IN_USE = "idempotency_key_in_use"


@dataclass(frozen=True, slots=True)
class Call:
    """A request under ``/v1``. ``key`` is its Idempotency-Key: one for all its repeats.

    ``waits_seconds`` is how long the server itself may wait before it answers.
    """

    method: str
    path: str
    body: Any = None
    query: Mapping[str, str | float | bool] | None = None
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    waits_seconds: float = 0.0

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again although the first may have taken effect."""
        return self.key is not None or self.method in {"GET", "DELETE"}


def new_key() -> str:
    """A name that no other request has."""
    return uuid.uuid4().hex


def post(path: str, body: Any, *, key: str | None = None) -> Call:
    """A POST, under an Idempotency-Key of its own unless it is given one."""
    key = key or new_key()
    return Call("POST", path, body, key=key, headers={"Idempotency-Key": key})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. ``sent_at`` is when the first try was sent, in monotonic seconds; ``body`` its JSON or ``None``.

    ``doubtful`` says that an earlier try of the same request may have taken effect before this answer.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    sent_at: float = 0.0
    doubtful: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the request did what it asked for."""
        return 200 <= self.status < 300

    @property
    def is_replayed(self) -> bool:
        """Whether an earlier request under the same key was answered already."""
        return self.headers.get("idempotent-replayed", "").lower() == "true"


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Nothing came back. ``sent`` says whether the request may have arrived."""

    reason: str
    sent: bool


class Attempts:
    """The tries of one call, and when they are enough."""

    def __init__(self, call: Call, started_at: float, patience_seconds: float, backoff: Backoff) -> None:
        self._call = call
        self._started_at = started_at
        self._ends_at = started_at + patience_seconds
        self._backoff = backoff
        self._failures = 0
        self._doubtful = False

    def pause_after(
        self, outcome: Answer | Unanswered, now: float, chance: float, wall: datetime | None = None
    ) -> float | None:
        """Seconds until the next try, or ``None``: this outcome is the last.

        ``now`` is monotonic, ``chance`` in [0, 1), ``wall`` the wall clock for a ``Retry-After`` that is a date.
        """
        if not self._may_go_on(outcome):
            return None
        self._failures += 1
        pause = self._backoff.pause(self._failures, chance)
        if isinstance(outcome, Answer):
            pause += retry_after(outcome.headers.get("retry-after"), wall)
            self._doubtful |= outcome.status in _DOUBTFUL
        else:
            self._doubtful |= outcome.sent
        return pause if now + pause < self._ends_at else None

    def _may_go_on(self, outcome: Answer | Unanswered) -> bool:
        if isinstance(outcome, Unanswered):
            return self._call.is_repeatable or not outcome.sent
        if outcome.status in _DOUBTFUL and not self._call.is_repeatable:
            return False
        in_use = isinstance(outcome.body, Mapping) and outcome.body.get("code") == _IN_USE
        return outcome.status in _AGAIN or in_use

    def end(self, outcome: Answer | Unanswered, place: str) -> Answer | ClientError:
        """The last outcome as what the caller gets: an answer of success, or the error to raise."""
        if isinstance(outcome, Unanswered):
            doubtful = self._doubtful or outcome.sent
            return Unreachable(f"{place} can't be reached: {outcome.reason}.", doubtful=doubtful)
        if not outcome.is_success:
            error = refused(outcome.status, outcome.body)
            error.doubtful = self._doubtful
            return error
        return Answer(outcome.status, outcome.body, outcome.headers, self._started_at, self._doubtful)


def retry_after(value: str | None, wall: datetime | None) -> float:
    """The seconds that a ``Retry-After`` asks for; nothing where it says nothing that can be read."""
    if value is None:
        return 0.0
    if value.strip().isdigit():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    if wall is None:
        return 0.0
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - wall).total_seconds())
