"""What an instance knows between its connections: what it works on, what it has answered, what is still to be said.

PURE: a frame or an ending goes in, deeds come out; no socket, no clock, no thread. That a trigger is worked on once,
however often it is pushed, is decided here (JOB-4).
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from gnomon.client import frames
from gnomon.client.board import excerpt, storable
from gnomon.client.frames import Frame, Outcome, Trigger, encode
from gnomon.domain.invocation import Invocation

REMEMBERED = 1_000
NOTE_CHARACTERS = 10_000
PROGRESS_CHARACTERS = 2_000
OUTPUT_CHARACTERS = 1_000_000
FRAME_BYTES = 1_000_000  # a server takes 1,048,576; a larger frame ends the connection
# A result may have been lost with the connection that it went over. Those this young are said again: the centre takes
# a second one for what it is.
UNSURE_SECONDS = 60.0


class Stop(StrEnum):
    """Why a piece of work is to end before its time."""

    CANCELLED = "cancelled"  # somebody asked for it; its end is told
    REVOKED = "revoked"  # it is somebody else's now; nothing is told
    CLOSED = "closed"  # this instance ends


@dataclass(frozen=True, eq=False, slots=True)
class Work:
    """One push that is worked on. ``key`` names it over repeated pushes."""

    key: str
    subject: Trigger | Invocation

    @property
    def fence(self) -> int | None:
        """The fence of a run; a trigger has none."""
        return self.subject.fence if isinstance(self.subject, Invocation) else None


@dataclass(frozen=True, slots=True)
class Send:
    """Say this to the centre."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class Start:
    """Begin this work: what came before it in the list, its acknowledgement, has been sent."""

    work: Work


@dataclass(frozen=True, slots=True)
class End:
    """Stop this work."""

    work: Work
    why: Stop


@dataclass(frozen=True, slots=True)
class Complaint:
    """The centre did not like a frame."""

    code: str
    detail: str


Deed = Send | Start | End | Complaint


@dataclass(slots=True)
class _Answered:
    frame: Frame
    fence: int | None
    said_at: float | None  # None: not yet


class Session:
    """One instance over all its connections."""

    def __init__(self, role: str, instance: str, max_in_flight: int, version: str) -> None:
        self._hello = {
            "type": "hello",
            "role": role,
            "instance": instance,
            "version": version,
            "max_in_flight": max_in_flight,
        }
        self._works: dict[str, Work] = {}
        self._answered: OrderedDict[str, _Answered] = OrderedDict()
        self._is_draining = False
        self.is_online = False

    @property
    def in_flight(self) -> list[Work]:
        """What is worked on."""
        return list(self._works.values())

    @property
    def is_done(self) -> bool:
        """Whether nothing is worked on and nothing is left to say."""
        # copied first: another thread may ask
        return not self._works and all(each.said_at is not None for each in list(self._answered.values()))

    def hello(self) -> Frame:
        """The first frame of a connection. Work that goes on is told, so that nobody else gets it."""
        going_on = {key: work.fence for key, work in self._works.items()}
        going_on |= {key: each.fence for key, each in self._answered.items() if each.said_at is None}
        told = [_named(key, fence) for key, fence in going_on.items()]
        return {**self._hello, "in_flight": told}

    def welcomed(self, now: float) -> list[Deed]:
        """The centre has answered the hello: what it may not have heard is said."""
        self.is_online = True
        deeds: list[Deed] = [Send({"type": "drain"})] if self._is_draining else []
        for each in self._answered.values():
            if each.said_at is None or now - each.said_at < UNSURE_SECONDS:
                each.said_at = now
                deeds.append(Send(each.frame))
        return deeds

    def disconnected(self) -> None:
        """The connection is over; the work goes on."""
        self.is_online = False

    def forlorn(self) -> list[Deed]:
        """The centre has given this instance up by now: a run may be another's, so it is stopped. A trigger never is."""
        runs = [work for work in self._works.values() if work.fence is not None]
        for work in runs:
            del self._works[work.key]
        return [End(work, Stop.REVOKED) for work in runs]

    def heard(self, frame: Mapping[str, Any], now: float) -> list[Deed]:
        """What a frame of the centre asks for."""
        match frame.get("type"):
            case "job_trigger":
                trigger = frames.trigger(frame)
                return self._pushed(Work(trigger.id, trigger), {"type": "ack", "trigger_id": trigger.id}, now)
            case "run_trigger":
                run = frames.invocation(frame)
                ack = {"type": "run_ack", "run_id": run.run_id, "fence": run.fence}
                return self._pushed(Work(run.run_id, run), ack, now)
            case "cancel":
                return self._stopped(frame, Stop.CANCELLED)
            case "revoke":
                return self._stopped(frame, Stop.REVOKED)
            case "error":
                return [Complaint(str(frame.get("code")), str(frame.get("detail")))]
        return []

    def _pushed(self, work: Work, ack: Frame, now: float) -> list[Deed]:
        known = self._works.get(work.key)
        answered = self._answered.get(work.key)
        if known is not None and known.fence == work.fence:
            return [Send(ack)]
        if answered is not None and answered.fence == work.fence:
            answered.said_at = now
            return [Send(ack), Send(answered.frame)]
        latest = max((each.fence or 0 for each in (known, answered) if each is not None), default=0)
        if work.fence is not None and work.fence < latest:
            return []  # a push that was overtaken by the next attempt's
        self._answered.pop(work.key, None)
        self._works[work.key] = work
        ended: list[Deed] = [End(known, Stop.REVOKED)] if known is not None else []
        return [*ended, Send(ack), Start(work)]

    def _stopped(self, frame: Mapping[str, Any], why: Stop) -> list[Deed]:
        work = self._works.get(str(frame.get("run_id") or frame.get("trigger_id")))
        fence = frame.get("fence")
        if work is None or (fence is not None and work.fence is not None and work.fence != fence):
            return []
        if why is Stop.REVOKED:
            del self._works[work.key]
        return [End(work, why)]

    def unsent(self, work: Work) -> None:
        """Its acknowledgement did not get out, so it was never begun: it will be pushed again, here or elsewhere."""
        if self._works.get(work.key) is work:
            del self._works[work.key]

    def progress(self, work: Work, text: str) -> list[Deed]:
        """Say how far a run is."""
        if not self.is_online or self._works.get(work.key) is not work or work.fence is None:
            return []
        said = storable(text[:PROGRESS_CHARACTERS])
        return [Send({"type": "run_progress", "run_id": work.key, "fence": work.fence, "text": said})]

    def ended(self, work: Work, outcome: Outcome, now: float) -> list[Deed]:
        """A piece of work has ended; of one that was taken away nothing is said."""
        if self._works.get(work.key) is not work:
            return []
        del self._works[work.key]
        frame = result(work, outcome)
        self._answered[work.key] = _Answered(frame, work.fence, now if self.is_online else None)
        while len(self._answered) > REMEMBERED:
            self._answered.popitem(last=False)
        return [Send(frame)] if self.is_online else []

    def drain(self) -> list[Deed]:
        """Take nothing new; what is worked on goes on."""
        already, self._is_draining = self._is_draining, True
        return [Send({"type": "drain"})] if self.is_online and not already else []


def result(work: Work, outcome: Outcome) -> Frame:
    """The frame that tells how a piece of work ended. An output that fits into no frame is a failure that says so."""
    text = storable(outcome.text or "")
    if isinstance(work.subject, Trigger):
        status = "succeeded" if outcome.status == "succeeded" else "failed"
        said: Frame = {"type": "result", "trigger_id": work.key, "status": status}
        return {**said, "note": excerpt(text, NOTE_CHARACTERS)} if text else said
    said = {"type": "run_result", "run_id": work.key, "fence": work.fence, "status": outcome.status}
    if outcome.usage is not None:
        said["usage"] = asdict(outcome.usage)
    if outcome.status == "succeeded":
        whole = {**said, "output": text}
        if len(text) <= OUTPUT_CHARACTERS and len(encode(whole).encode()) <= FRAME_BYTES:
            return whole
        said["status"] = "failed"
        text = f"The output is too large for a frame: it has {len(text):,} characters."
    return {**said, "error": excerpt(text, NOTE_CHARACTERS), "retryable": outcome.is_retryable}


def _named(key: str, fence: int | None) -> Frame:
    return {"trigger_id": key} if fence is None else {"run_id": key, "fence": fence}
