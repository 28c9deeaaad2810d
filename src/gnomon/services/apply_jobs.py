"""The section of a document that holds jobs, by slug (SCH-13)."""

from collections.abc import Mapping
from typing import Any

from gnomon.cadence import Unit
from gnomon.domain import job_form
from gnomon.domain.caller import Caller
from gnomon.domain.job import Job
from gnomon.domain.scopes import Scope
from gnomon.services.apply import Put, changes
from gnomon.services.apply_forms import BATCH, every, slug_given
from gnomon.services.jobs import Jobs
from gnomon.stores import jobs, processes
from gnomon.stores.database import Tx

_WHOLE = frozenset({"cadence", "payload"})
_DEFAULTS: Mapping[str, Any] = {"payload": {}, "grace_seconds": None, "enabled": True}


class JobPart:
    """Jobs."""

    section = "jobs"
    writes, reads = Scope.JOBS_WRITE, Scope.JOBS_READ

    def __init__(self, service: Jobs) -> None:
        self._service = service

    def key_of(self, given: Mapping[str, Any]) -> str | None:
        """Its slug."""
        return slug_given(given)

    async def put(self, tx: Tx, caller: Caller, given: Mapping[str, Any]) -> Put:
        """See ``Part.put``."""
        key = slug_given(given)
        standing = await jobs.find(tx, key) if key else None
        if standing is None:
            made = await self._service.create_in(tx, caller, given)
            return Put(made.written.slug, made.id, None, job_form.to_written(made.written))
        before = job_form.to_written(standing.written)
        patch = changes(before, {"slug": standing.written.slug, **given}, _WHOLE)
        saved = await self._service.edit_in(tx, caller, standing.id, patch)
        return Put(saved.written.slug, saved.id, before, job_form.to_written(saved.written))

    async def export(self, tx: Tx) -> list[dict[str, Any]]:
        """See ``Part.export``. Left out is what could not be made again: jobs of one slot that is over."""
        now = await processes.now(tx)
        found = await every(lambda after: jobs.page(tx, after, BATCH), lambda job: job.id)
        lasting = [job for job in found if not _is_over(job, now)]
        return [_written(job) for job in sorted(lasting, key=lambda job: job.written.slug)]


def _is_over(job: Job, now: int) -> bool:
    cadence = job.written.cadence
    return cadence.unit is Unit.ONCE and cadence.compile().next_after(now) is None


def _written(job: Job) -> dict[str, Any]:
    full = job_form.to_written(job.written)
    return {name: value for name, value in full.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}
