"""A whole database judged by its invariants, each breach named with its rows (OPS-7).

Reads one consistent snapshot in pages and writes nothing: memory is needed for a page, for what runs at once, for the
number of schedules, and for the breaches that are to be named; not for the number of slots.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from gnomon.cadence import zone_data_version
from gnomon.domain.breach import TOLD, At, Breach, Invariant
from gnomon.domain.errors import Invalid
from gnomon.domain.schedule import Schedule, ScheduleStatus
from gnomon.services import verify_jobs, verify_runs, verify_schedules, verify_tasks
from gnomon.services.timetable import walk_of
from gnomon.services.verify_audit import AuditTrail
from gnomon.services.verify_facts import Facts, facts_of, text
from gnomon.services.verify_gaps import Gaps
from gnomon.services.verify_jobs import JobLedger, TriggerTrail
from gnomon.services.verify_ledger import Ledger
from gnomon.services.verify_tasks import TaskTrail
from gnomon.stores import verify
from gnomon.stores.database import Database, Row, Tx
from gnomon.stores.jobs import job_from_row
from gnomon.stores.schedule_rows import schedule_from_row

Tell = Callable[[Breach], None]


@dataclass(frozen=True, slots=True)
class Verified:
    """What was judged: rows by table, breaches by invariant, and what could not be judged, in sentences."""

    rows: dict[str, int]
    breaches: dict[Invariant, int]
    left_out: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether every invariant holds."""
        return not any(self.breaches.values())


class Verify:
    """Judges one database. ``gapless`` says that its engine leaves out no number of the audit."""

    def __init__(self, database: Database, *, gapless: bool) -> None:
        self._database = database
        self._gapless = gapless

    async def run(self, tell: Tell) -> Verified:
        """Judge everything; ``tell`` gets each breach as it is found, in the thread that reads.

        Raises:
            Unavailable: the database can't be read.
        """

        async def work(tx: Tx) -> Verified:
            return await _Pass(tx, tell, gapless=self._gapless).run()

        return await self._database.read(work)


class _Pass:
    """One reading of the whole, inside one transaction."""

    def __init__(self, tx: Tx, tell: Tell, *, gapless: bool) -> None:
        self._tx = tx
        self._tell = tell
        self._gapless = gapless
        self._found: Counter[Invariant] = Counter()

    async def run(self) -> Verified:
        facts = facts_of(await verify.facts(self._tx), zone_data_version())
        await self._schedules(facts)
        await self._runs(facts)
        await self._strays()
        rows = {table: int(count) for table, count in (await verify.counts(self._tx)).items()}
        return Verified(rows, {name: self._found[name] for name in TOLD}, tuple(_left_out(facts)))

    def _take(self, breaches: Iterable[Breach]) -> None:
        for breach in breaches:
            self._found[breach.invariant] += 1
            self._tell(breach)

    async def _schedules(self, facts: Facts) -> None:
        async for row in verify.schedules(self._tx):
            changes = await verify.status_changes(self._tx, row["id"])
            self._take(verify_schedules.judge(row, changes))
            try:
                schedule: Schedule = schedule_from_row(row)
                gaps = await Gaps.open(self._tx, facts, row, schedule, changes)
            except (ValueError, LookupError, TypeError, Invalid) as error:
                self._take(_unreadable(row, error))
                continue
            ledger = Ledger(facts, row, schedule, changes, gaps)
            async for breach in ledger.judge(verify.occurrences(self._tx, row["id"])):
                self._take([breach])

    async def _runs(self, facts: Facts) -> None:
        running: dict[str, int] = {}
        async for row in verify.runs(self._tx):
            self._take(verify_runs.judge(row, facts))
            if row["status"] == "running":
                running[row["id"]] = row["fence"]
        held = await self._tasks()
        await self._jobs(facts)
        trail, tasks = AuditTrail(facts, gapless=self._gapless), TaskTrail(facts)
        triggers = TriggerTrail(facts)
        async for entry in verify.audit(self._tx):
            self._take(trail.judge(entry))
            self._take(tasks.judge(entry))
            self._take(triggers.judge(entry))
        self._take(trail.rest(running))
        self._take(tasks.rest(held))

    async def _jobs(self, facts: Facts) -> None:
        ledgers: dict[str, JobLedger] = {}
        async for row in verify.jobs(self._tx):
            try:
                job = job_from_row(row)
                walk = await walk_of(self._tx, job.written.cadence, job.anchor_at)
            except (ValueError, LookupError, TypeError, Invalid) as error:
                self._take(verify_jobs.unreadable(row, error))
                continue
            ledgers[row["id"]] = ledger = JobLedger(facts, row, walk)
            self._take(ledger.judge_job())
        async for row in verify.triggers(self._tx):
            self._take(verify_jobs.judge(row, facts))
            if row["job_id"] in ledgers:
                self._take(ledgers[row["job_id"]].judge(row))

    async def _tasks(self) -> dict[str, int]:
        """The tasks that are held, each with its fence."""
        held: dict[str, int] = {}
        async for row in verify.tasks(self._tx):
            self._take(verify_tasks.judge(row))
            if row["locked"] is not None:
                held[row["id"]] = row["lock_fence"]
        async for breach in verify_tasks.judge_needs(verify.needs(self._tx)):
            self._take([breach])
        return held

    async def _strays(self) -> None:
        async for breach in _strays(self._tx):
            self._take([breach])


async def _strays(tx: Tx) -> AsyncIterator[Breach]:
    """Rows that belong to nothing."""
    async for row in verify.ownerless(tx):
        slot = text(row["nominal_fire_at"])
        sentence = f"Slot {slot} of {row['schedule_id']} is on record, and the schedule is not there."
        yield Breach(
            Invariant.RECORD_OF_NOTHING, sentence, (At("occurrences", f"{row['schedule_id']} {slot}"),)
        )
    async for row in verify.twice_erased(tx):
        slot = text(row["nominal_fire_at"])
        sentence = f"Slot {slot} of {row['schedule_id']} has two runs."
        rows = (At("runs", row["first_run"]), At("runs", row["last_run"]))
        yield Breach(Invariant.RUN_WITHOUT_SLOT, sentence, rows)
    for noun in ("attempts", "checkpoints", "events"):
        async for row in verify.strays(tx, noun):
            sentence = f"{row['how_many']:,} {noun} are left of run {row['run_id']}, which is not there."
            yield Breach(Invariant.STRAY_ROWS, sentence, (At(noun, row["run_id"]),))
    async for row in verify.stray_locks(tx):
        sentence = f"A lock under fence {row['fence']} is left of task {row['task_id']}, which is not there."
        yield Breach(Invariant.STRAY_ROWS, sentence, (At("task_locks", row["task_id"]),))
    async for row in verify.keys_of_nothing(tx):
        sentence = f"Key {row['id']} opens the {row['target_kind']} {row['target_id']}, which is gone."
        yield Breach(Invariant.KEY_OPENS_NOTHING, sentence, (At("api_keys", row["id"]),))


def _unreadable(row: Row, error: Exception) -> Iterable[Breach]:
    """DSP-9a: a rule that can't be computed is lawful where the schedule was set aside for it."""
    if row["status"] == ScheduleStatus.ERROR:
        return
    sentence = f"Schedule {row['id']} is {row['status']}, and its rule can't be computed: {error}."
    yield Breach(Invariant.RULE_UNREADABLE, sentence, (At("schedules", row["id"]),))


def _left_out(facts: Facts) -> Iterable[str]:
    if not facts.zone_data:
        yield (
            "The database was last written under other zone data, so slots were not compared with their rules. "
            "Start a process of this version once, then verify again."
        )
    if facts.jumped:
        yield "The clock has jumped while this database was in use, so the order of instants was not judged."
