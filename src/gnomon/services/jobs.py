"""Jobs: made, read, edited, deleted (JOB-1). Each write is one transaction, judged by the database's clock.

An edit never fires a slot that lies before it, and accounts for those that came and had no trigger yet. What becomes of
slots in time is the dispatcher's affair; triggers that wait for an instance follow their job with its next tick.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gnomon.cadence import Slot, preview
from gnomon.domain import job_form
from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Conflict, Missing, RevisionStale
from gnomon.domain.form import Form
from gnomon.domain.ids import Kind
from gnomon.domain.instants import from_micros, maybe_micros, to_micros
from gnomon.domain.job import Job, JobDraft
from gnomon.domain.trigger import TriggerReason
from gnomon.domain.versions import Match, require
from gnomon.ports.wakeup import Wakeup
from gnomon.services.dedup import Once, Replay, run_once
from gnomon.services.job_plan import dedup_key, trigger_row
from gnomon.services.mint import Mint
from gnomon.services.timetable import anchored, holidays_of, no_slot, walk_of
from gnomon.stores import audit, jobs, processes, schedules, triggers
from gnomon.stores.database import Database, Tx, UniqueViolation


class Jobs:
    """The jobs of one database."""

    def __init__(self, database: Database, mint: Mint, signal: Wakeup) -> None:
        self._database = database
        self._mint = mint
        self._signal = signal

    async def create(
        self, caller: Caller, given: Mapping[str, Any], *, once: Once | None = None
    ) -> Job | Replay:
        """Make a job of its written form.

        Raises:
            Invalid: with every fault; also where it has no dedup key (IDM-1), or would never fire.
            Conflict: ``slug_taken``.
        """

        async def work(tx: Tx) -> Job:
            return await self.create_in(tx, caller, given)

        try:
            made = await self._database.write(lambda tx: run_once(tx, once, work))
        except UniqueViolation as error:  # another process was first with the slug
            raise _taken(str(given.get("slug"))) from error
        self._signal.notify()
        return made

    async def create_in(self, tx: Tx, caller: Caller, given: Mapping[str, Any]) -> Job:
        """The same inside a transaction of the caller, who notifies after the commit."""
        form = Form(given)
        draft = job_form.read(form)
        now = await processes.now(tx)
        anchor_at = anchored(draft.cadence, from_micros(now))
        first = await _first(tx, form, draft, anchor_at, now)
        form.finish()
        if await jobs.find(tx, draft.slug) is not None:
            raise _taken(draft.slug)
        job = await jobs.insert(
            tx,
            self._mint.make(Kind.JOB),
            draft,
            to_micros(anchor_at),
            first if draft.enabled else None,
            caller.actor,
            now,
        )
        await _note(tx, caller, Action.CREATE, job, {"slug": draft.slug})
        return job

    async def get(self, name: str) -> Job:
        """The job of this id or slug.

        Raises:
            Missing: there is none.
        """
        return await self._database.read(lambda tx: there(tx, name))

    async def page(
        self, after: str, limit: int, *, role: str | None = None, enabled: bool | None = None
    ) -> list[Job]:
        """Up to ``limit`` jobs after an id, the oldest first."""
        return await self._database.read(lambda tx: jobs.page(tx, after, limit, role=role, enabled=enabled))

    async def edit(self, caller: Caller, name: str, patch: Mapping[str, Any], *, match: Match = None) -> Job:
        """Lay a patch over a job; one that changes nothing changes nothing. Its next slot lies after the edit.

        Raises:
            Invalid: with every fault.
            Missing: there is none of this id or slug.
            RevisionStale: it was edited since the caller read it.
        """
        saved = await self._database.write(lambda tx: self.edit_in(tx, caller, name, patch, match=match))
        self._signal.notify()
        return saved

    async def edit_in(
        self, tx: Tx, caller: Caller, name: str, patch: Mapping[str, Any], *, match: Match = None
    ) -> Job:
        """The same inside a transaction of the caller, who notifies after the commit."""
        standing = await there(tx, name)
        require(match, standing.id, standing.version)
        form = job_form.patched(standing.written, patch)
        wanted = job_form.with_anchor(job_form.read(form), standing.written)
        if wanted.slug != standing.written.slug:
            form.fault("slug", "can't be changed: keys of effects may have been made of it")
        now = await processes.now(tx)
        retimed = wanted.cadence != standing.written.cadence
        first = await _first(tx, form, wanted, standing.anchor_at, now, retimed=retimed)
        form.finish()
        if wanted == standing.written:
            return standing
        why = TriggerReason.MISSED if wanted.enabled else TriggerReason.JOB_DISABLED
        await self._account(tx, standing, now, why)
        saved = await jobs.revise(tx, standing, wanted, first if wanted.enabled else None, caller.actor, now)
        if saved is None:
            raise RevisionStale(f"{standing.id} was edited at the same moment. Read it again, then edit.")
        before, after = job_form.to_written(standing.written), job_form.to_written(wanted)
        fields = [field for field in job_form.FIELDS if before[field] != after[field]]
        await _note(tx, caller, Action.UPDATE, saved, {"fields": fields})
        return saved

    async def delete(self, caller: Caller, name: str, *, match: Match = None) -> None:
        """Delete a job: none of its slots fires any more. What was pushed goes on, what waits is missed.

        Raises:
            Missing: there is none of this id or slug.
            RevisionStale: it was edited since the caller read it.
        """

        async def work(tx: Tx) -> None:
            standing = await there(tx, name)
            require(match, standing.id, standing.version)
            await self._account(tx, standing, await processes.now(tx), TriggerReason.JOB_DELETED)
            if not await jobs.delete(tx, standing.id, standing.version, caller.actor):
                raise RevisionStale(
                    f"{standing.id} was edited at the same moment. Read it again, then delete."
                )
            await _note(tx, caller, Action.DELETE, standing, {"slug": standing.written.slug})

        await self._database.write(work)
        self._signal.notify()

    async def next_slots(self, name: str, count: int) -> list[Slot]:
        """The next slots that get a trigger; none while the job is not enabled (CAD-8).

        Raises:
            Missing: there is none of this id or slug.
        """

        async def work(tx: Tx) -> list[Slot]:
            job = await there(tx, name)
            if job.next_fire_at is None:
                return []
            cadence = job.written.cadence
            after = from_micros(await processes.now(tx))
            holidays = await holidays_of(tx, cadence)
            return preview(cadence, after, count, anchor=job.anchor_at, holidays=holidays)

        return await self._database.read(work)

    async def _account(self, tx: Tx, standing: Job, now: int, reason: TriggerReason) -> None:
        """Slots that came and have no trigger yet get one that is missed: every slot is accounted for."""
        due = maybe_micros(standing.next_fire_at)
        if due is None or due > now:
            return
        written = standing.written
        walk = await walk_of(tx, written.cadence, standing.anchor_at)
        newest = walk.latest_at(now)
        if newest is None or newest < due:
            return
        facts = {"id": standing.id, "slug": written.slug, "dedup_key": written.dedup_key, "payload": None}
        row = trigger_row(
            facts,
            self._mint.make(Kind.TRIGGER),
            newest,
            walk.count_between(due, newest) if newest > due else None,
            dedup_key=dedup_key(facts, written.cadence, written.payload, newest),
            wait_until=newest,
            missed=reason,
        )
        await jobs.recorded(tx, standing.id, newest)
        if await triggers.record(tx, [row]):
            detail: dict[str, object] = {"nominal_fire_at": newest, "trigger_id": row["id"], "reason": reason}
            await audit.append(
                tx,
                actor="dispatcher",
                action=Action.SKIP,
                subject_kind="job",
                subject_id=standing.id,
                detail=detail,
            )


async def there(tx: Tx, name: str) -> Job:
    """The job of this id or slug.

    Raises:
        Missing: there is none.
    """
    found = await jobs.find(tx, name)
    if found is None:
        raise Missing(f'There is no job "{name[:64]}".')
    return found


async def _first(
    tx: Tx, form: Form, draft: JobDraft, anchor_at: datetime, now: int, *, retimed: bool = True
) -> int | None:
    """The first slot after now; what its cadence names and is not there, and why there is none, are the form's faults."""
    if any(fault.field.partition(".")[0] == "cadence" for fault in form.faults):
        return None
    slug = draft.cadence.calendar
    if slug is not None and await schedules.calendar_changed_at(tx, slug) is None:
        form.fault("cadence.calendar", f"there is no calendar {slug}")
        return None
    walk = await walk_of(tx, draft.cadence, anchor_at)
    first = walk.next_after(now)
    if first is None and retimed:
        form.faults.append(no_slot(draft.cadence, walk, now))
    return first


def _taken(slug: str) -> Conflict:
    return Conflict(f'There is a job "{slug}" already.', code="slug_taken", data={"slug": slug})


async def _note(tx: Tx, caller: Caller, action: Action, job: Job, detail: dict[str, object]) -> None:
    await audit.append(
        tx,
        actor=caller.actor,
        action=action,
        subject_kind="job",
        subject_id=job.id,
        detail={**detail, "version": job.version},
    )
