"""Runs as people read, cancel and complete them, and their event streams (RUN-10, RUN-11, TGT-2)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Protocol

from gnomon.domain import definition as definitions
from gnomon.domain.audit import Action
from gnomon.domain.errors import Conflict, Missing
from gnomon.domain.filters import RunFilter, RunPlace
from gnomon.domain.ids import is_slug
from gnomon.domain.instants import rfc3339
from gnomon.domain.invocation import Usage
from gnomon.domain.occurrence import Disposition
from gnomon.domain.run import TERMINAL, Run, RunStatus
from gnomon.ports.wakeup import Wakeup
from gnomon.services.schedules import held, target_of
from gnomon.services.settling import cancel
from gnomon.services.timetable import Told, timetable
from gnomon.stores import audit, history, schedules
from gnomon.stores.database import Database, Tx
from gnomon.stores.history import RunPage

POLL_SECONDS = 1.0
EVENTS_AT_ONCE = 200
QUIET_LOOKS = 15
COMPLETIONS = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED})


class Completes(Protocol):
    """Closes a run for whoever shows its fence (``services.closing``)."""

    async def complete(
        self, run_id: str, fence: int, status: RunStatus, output: str | None, usage: Usage | None
    ) -> None:
        """Close it; FenceStale where the fence is an old one."""
        ...


@dataclass(frozen=True, slots=True)
class Streamed:
    """One event of a run's stream: ``id`` resumes after it, ``kind`` is ``status`` or what the run reported."""

    id: str
    kind: str
    data: dict[str, object]


class Runs:
    """The runs of one database."""

    def __init__(self, *, database: Database, signal: Wakeup, closing: Completes) -> None:
        self._database = database
        self._signal = signal
        self._closing = closing

    async def get(self, run_id: str) -> tuple[Run, str | None]:
        """A run with its attempts, and its answer in full where it has one and it was not erased (RUN-11)."""
        found = await self._database.read(lambda tx: history.run(tx, run_id))
        if found is None:
            raise _missing(run_id)
        return found

    async def page(self, chosen: RunFilter, before: str, limit: int) -> list[Run]:
        """Runs with ids before ``before``, the newest first."""

        async def work(tx: Tx) -> list[Run]:
            if chosen.target is None or not is_slug(chosen.target):
                return await history.runs(tx, chosen, before, limit)
            target = await target_of(tx, chosen.target)
            if target is None:
                return []
            return await history.runs(tx, replace(chosen, target=target.id), before, limit)

        return await self._database.read(work)

    async def of_schedule(
        self, schedule_id: str, status: RunStatus | None, place: RunPlace, limit: int
    ) -> RunPage:
        """The runs of a schedule, the newest first, from ``place`` on."""

        async def work(tx: Tx) -> RunPage:
            await held(tx, schedule_id)
            return await history.runs_of_schedule(tx, schedule_id, status, place, limit)

        return await self._database.read(work)

    async def occurrences(
        self, schedule_id: str, before: int, since: int, disposition: Disposition | None, limit: int
    ) -> list[Told]:
        """The ledger of a schedule in [since, before) microseconds, the newest slot first."""

        async def work(tx: Tx) -> list[Told]:
            schedule = await held(tx, schedule_id)
            tables = {
                schedule.revision: await timetable(tx, schedule.definition, schedule.anchor_at),
            }
            found = await history.occurrences(tx, schedule_id, before, since, disposition, limit)
            for number in {record.revision for record in found} - tables.keys():
                revision = await schedules.revision(tx, schedule, number)
                if revision is not None:
                    old = definitions.parse(revision.definition)
                    tables[number] = await timetable(tx, old, schedule.anchor_at)
            newest = tables[schedule.revision]
            return [tables.get(record.revision, newest).told(record) for record in found]

        return await self._database.read(work)

    async def cancel(self, run_id: str, by: str) -> Run:
        """Stop a run: a queued one is closed at once, a running one is asked to stop, then stopped by force (RUN-10).

        Cancelling again, or one that was cancelled, answers with the run as it stands. The schedule is not touched,
        but for its lock.

        Raises:
            Conflict: ``run_over``, it has ended in another way.
        """
        await self._database.write(lambda tx: self._cancel(tx, run_id, by))
        self._signal.notify()
        return (await self.get(run_id))[0]

    async def _cancel(self, tx: Tx, run_id: str, by: str) -> None:
        row = await history.run_status(tx, run_id)
        if row is None:
            raise _missing(run_id)
        status = RunStatus(row["status"])
        if status is RunStatus.CANCELLED or row["cancel_at"] is not None:
            return
        if status in TERMINAL:
            raise Conflict(
                f"Run {run_id} is over: it {status.value}.", code="run_over", data={"status": status}
            )
        await cancel(tx, run_id, by, f"Cancelled by {by}.")
        await audit.append(
            tx,
            actor=by,
            action=Action.CANCEL,
            subject_kind="run",
            subject_id=run_id,
            fence=row["fence"],
            detail={"was": status.value},
        )

    async def complete(
        self, run_id: str, fence: int, status: RunStatus, output: str | None, usage: Usage | None
    ) -> Run:
        """Close a run that its target took with a 202 (CONTRACT, ``/complete``). ``status`` is one of COMPLETIONS.

        Raises:
            FenceStale: the run is over, or another fence holds it; nothing was changed but the audit (RUN-6).
        """
        await self.get(run_id)
        await self._closing.complete(run_id, fence, status, output, usage)
        return (await self.get(run_id))[0]

    async def events(self, run_id: str, last_event_id: str | None = None) -> AsyncIterator[Streamed | None]:
        """What a run reports and each change of its status, in order, until it is over; resumable after any event.

        Woken by the signal, and by a poll of a second where another process does the work. ``None`` comes when
        there has been nothing to say for a while, so that whoever listens knows the stream lives.
        """
        seq, told = _place(last_event_id)
        quiet = 0
        while True:
            seen = self._signal.version
            run, output, events = await self._database.read(lambda tx, seq=seq: _look(tx, run_id, seq))  # type: ignore[misc]
            for event in events:
                seq = event.seq
                yield Streamed(f"{seq}-{told}", event.kind, event.data)
            if len(events) == EVENTS_AT_ONCE:
                continue
            if run.status.value != told:
                told = run.status.value
                yield Streamed(f"{seq}-{told}", "status", _status(run, output))
            if run.status in TERMINAL:
                return
            quiet = 0 if events else quiet + 1
            if quiet >= QUIET_LOOKS:
                quiet = 0
                yield None
            await self._signal.wait(seen, POLL_SECONDS)


async def _look(tx: Tx, run_id: str, seq: int) -> tuple[Run, str | None, list[history.RunEvent]]:
    found = await history.run(tx, run_id)
    if found is None:
        raise _missing(run_id)
    return *found, await history.run_events(tx, run_id, seq, EVENTS_AT_ONCE)


def _status(run: Run, output: str | None) -> dict[str, object]:
    data: dict[str, object] = {"run_id": run.id, "status": run.status.value, "attempt": len(run.attempts)}
    if run.status in TERMINAL:
        data |= {
            "finished_at": None if run.finished_at is None else rfc3339(run.finished_at),
            "output": output,
            "error": None if run.error is None else {"code": run.error.code, "message": run.error.message},
        }
    return data


def _place(last_event_id: str | None) -> tuple[int, str]:
    """The place after an event; an id that we did not make begins the stream anew."""
    seq, _, told = (last_event_id or "").partition("-")
    if seq.isascii() and seq.isdigit() and len(seq) < 16:
        return int(seq), told
    return 0, ""


def _missing(run_id: str) -> Missing:
    return Missing(f"There is no run {run_id}.")
