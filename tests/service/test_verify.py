"""OPS-7: a whole database judged by its invariants. What the product wrote is clean; what was damaged is named."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gnomon.domain.breach import TOLD, Invariant
from gnomon.services.retention import Keep, Retention
from support.desk import a_desk
from support.house import House, an_agent
from support.verdicts import Lived

pytestmark = pytest.mark.anyio
_I = Invariant
MINUTE = 60_000_000


@dataclass(frozen=True)
class Damage:
    """Statements, and every invariant that they break; ``{name}`` is the id of a schedule of the life."""

    what: str
    does: tuple[str, ...]
    shows: dict[Invariant, int] = field(hash=False)

    def __str__(self) -> str:
        return self.what


def damage(what: str, *does: str, shows: dict[Invariant, int] | Invariant) -> Damage:
    return Damage(what, does, {shows: 1} if isinstance(shows, Invariant) else shows)


def first(schedule: str) -> str:
    """The condition of a schedule's first slot that fired."""
    return (
        f"schedule_id = {schedule} AND nominal_fire_at = "
        f"(SELECT min(nominal_fire_at) FROM occurrences WHERE schedule_id = {schedule} AND disposition = 'fired')"
    )


def run_of(schedule: str) -> str:
    """The condition of the run of that slot."""
    return f"id = (SELECT run_id FROM occurrences WHERE {first(schedule)})"


SLOTS = [
    damage(
        "a record of the ledger is deleted",
        "DELETE FROM occurrences WHERE schedule_id = {skipped} AND disposition = 'skipped' AND reason = 'already_running'",
        shows=_I.SLOT_UNACCOUNTED,
    ),
    damage(
        "a coalesced range is cut",
        "UPDATE occurrences SET coalesced_first = coalesced_first + 600000000, coalesced_count = coalesced_count - 2 "
        "WHERE schedule_id = {standstill} AND coalesced_count IS NOT NULL",
        shows=_I.SLOT_UNACCOUNTED,
    ),
    damage(
        "a coalesced range counts one too many",
        "UPDATE occurrences SET coalesced_count = coalesced_count + 1 WHERE coalesced_count IS NOT NULL",
        shows=_I.COALESCED_WRONG,
    ),
    damage(
        "a coalesced range reaches over a record",
        "UPDATE occurrences SET coalesced_first = coalesced_first - 300000000, coalesced_count = coalesced_count + 1 "
        "WHERE coalesced_count IS NOT NULL",
        shows=_I.SLOT_RECORDED_TWICE,
    ),
    damage(
        "a record is moved off its slot",
        f"UPDATE occurrences SET nominal_fire_at = nominal_fire_at - 60000000 WHERE {first('{plain}')}",
        f"UPDATE runs SET nominal_fire_at = nominal_fire_at - 60000000 WHERE {run_of('{plain}')}",
        shows={_I.RECORD_IS_NO_SLOT: 1, _I.SLOT_UNACCOUNTED: 1},
    ),
    damage(
        "a record was written before its slot",
        f"UPDATE occurrences SET created_at = nominal_fire_at - 1 WHERE {first('{plain}')}",
        shows=_I.RECORD_TOO_EARLY,
    ),
    damage(
        "a record lies before its schedule",
        "UPDATE schedules SET created_at = created_at + 300000000 WHERE id = {plain}",
        shows=_I.RECORD_TOO_EARLY,
    ),
    damage(
        "a record names a revision that never was",
        f"UPDATE occurrences SET revision = 9 WHERE {first('{plain}')}",
        shows=_I.RECORD_OF_NOTHING,
    ),
    damage(
        "a schedule is deleted from under its ledger",
        "DELETE FROM schedules WHERE id = {counted}",
        "DELETE FROM status_changes WHERE schedule_id = {counted}",
        shows=_I.RECORD_OF_NOTHING,
    ),
    damage(
        "a slot fired outside the window",
        "UPDATE schedules SET ends_at = (SELECT max(nominal_fire_at) - 1 FROM occurrences WHERE schedule_id = {fixed}) "
        "WHERE id = {fixed}",
        shows=_I.FIRED_OUT_OF_BOUNDS,
    ),
    damage(
        "a slot fired inside a pause",
        "UPDATE status_changes SET at = at - 400000000 WHERE schedule_id = {retried} AND seq = 1",
        shows=_I.FIRED_OUT_OF_BOUNDS,
    ),
    damage(
        "the run of a slot is deleted",
        f"DELETE FROM runs WHERE {run_of('{plain}')}",
        shows=_I.FIRED_WITHOUT_RUN,
    ),
    damage(
        "a record names the run of another slot",
        f"UPDATE occurrences SET run_id = (SELECT id FROM runs WHERE schedule_id = {{fixed}} LIMIT 1) WHERE {first('{plain}')}",
        shows={_I.FIRED_WITHOUT_RUN: 1, _I.RUN_WITHOUT_SLOT: 1},
    ),
    damage(
        "one link of a record is gone",
        f"UPDATE occurrences SET session_id = NULL WHERE {first('{plain}')}",
        shows=_I.LINKS_HALF_ERASED,
    ),
    damage(
        "a record names another session than its run",
        f"UPDATE occurrences SET session_id = 'ses_other' WHERE {first('{plain}')}",
        shows=_I.LINKS_HALF_ERASED,
    ),
    damage(
        "both links are gone and nobody stamped it",
        f"UPDATE occurrences SET run_id = NULL, session_id = NULL WHERE {first('{plain}')}",
        shows={_I.FIRED_WITHOUT_RUN: 1, _I.RUN_WITHOUT_SLOT: 1},
    ),
    damage(
        "a record is stamped and the session is there",
        f"UPDATE occurrences SET run_id = NULL, session_id = NULL, links_erased_at = 1 WHERE {first('{plain}')}",
        shows=_I.LINKS_HALF_ERASED,
    ),
    damage(
        "a run holds what was said in an erased session",
        "UPDATE runs SET query = 'go' WHERE session_id = ''",
        shows=_I.LINKS_HALF_ERASED,
    ),
    damage(
        "the stamp of an erased session is lost",
        "UPDATE occurrences SET links_erased_at = NULL WHERE schedule_id = {erased} AND links_erased_at IS NOT NULL",
        shows={_I.FIRED_WITHOUT_RUN: 1, _I.LINKS_HALF_ERASED: 1, _I.RUN_WITHOUT_SLOT: 1},
    ),
]
SCHEDULES = [
    damage(
        "the next slot is none of the rule",
        "UPDATE schedules SET next_fire_at = next_fire_at + 1 WHERE id = {held}",
        shows=_I.NEXT_SLOT_WRONG,
    ),
    damage(
        "the next slot leaves one out",
        "UPDATE schedules SET next_fire_at = next_fire_at + 300000000 WHERE id = {held}",
        shows=_I.NEXT_SLOT_WRONG,
    ),
    damage(
        "the next slot was recorded before",
        "UPDATE schedules SET next_fire_at = recorded_until WHERE id = {held}",
        shows=_I.NEXT_SLOT_WRONG,
    ),
    damage(
        "an active schedule has no next slot",
        "UPDATE schedules SET next_fire_at = NULL WHERE id = {held}",
        shows=_I.NEXT_SLOT_WRONG,
    ),
    damage(
        "a paused schedule has one",
        "UPDATE schedules SET next_fire_at = anchor_at WHERE id = {plain}",
        shows=_I.NEXT_SLOT_WRONG,
    ),
    damage(
        "a run too many is counted",
        "UPDATE schedules SET run_count = run_count + 1 WHERE id = {plain}",
        shows=_I.COUNTERS_WRONG,
    ),
    damage(
        "another slot is said to have fired last",
        "UPDATE schedules SET last_fire_at = last_fire_at - 300000000 WHERE id = {plain}",
        shows=_I.COUNTERS_WRONG,
    ),
    damage(
        "another slot is said to be the newest on record",
        "UPDATE schedules SET recorded_until = recorded_until + 1 WHERE id = {plain}",
        shows=_I.COUNTERS_WRONG,
    ),
    damage(
        "a status came from nowhere",
        "UPDATE schedules SET status = 'error' WHERE id = {plain}",
        shows=_I.STATUS_HISTORY_WRONG,
    ),
    damage(
        "a change of status is gone",
        "DELETE FROM status_changes WHERE schedule_id = {plain} AND seq = 2",
        shows={_I.STATUS_HISTORY_WRONG: 1, _I.FIRED_OUT_OF_BOUNDS: 1},
    ),
    damage(
        "a status follows that may not",
        "UPDATE status_changes SET status = 'error' WHERE schedule_id = {plain} AND seq = 2",
        shows={_I.STATUS_HISTORY_WRONG: 1, _I.FIRED_OUT_OF_BOUNDS: 1},
    ),
    damage(
        "a replaced revision is gone",
        "DELETE FROM revisions WHERE schedule_id = {deleted}",
        shows={_I.REVISION_MISSING: 1, _I.RECORD_OF_NOTHING: 1},
    ),
    damage(
        "a rule can't be read",
        'UPDATE schedules SET cadence = \'{"unit":"day","every":1,"at":["09:00"],"zone":"Mars/Base"}\' '
        "WHERE id = {plain}",
        shows=_I.RULE_UNREADABLE,
    ),
    damage(
        "a target is deleted from under its schedule",
        "UPDATE teams SET deleted_at = 1",
        shows=_I.TARGET_GONE,
    ),
    damage(
        "a lock is held by nothing",
        "UPDATE schedules SET in_flight_run_id = 'run_none' WHERE id = {plain}",
        shows=_I.LOCK_WITHOUT_RUN,
    ),
    damage(
        "a lock is held by a run of another schedule",
        "UPDATE schedules SET in_flight_run_id = (SELECT in_flight_run_id FROM schedules WHERE id = {held}) "
        "WHERE id = {plain}",
        shows=_I.LOCK_WITHOUT_RUN,
    ),
    damage(
        "a run that is over is said to wait",
        "UPDATE schedules SET waiting_run_id = (SELECT max(id) FROM runs WHERE schedule_id = {plain}) WHERE id = {plain}",
        shows=_I.LOCK_WITHOUT_RUN,
    ),
]
RUNS = [
    damage(
        "the lock came off a running run",
        "UPDATE schedules SET in_flight_run_id = NULL WHERE id = {held}",
        shows={_I.RUN_WITHOUT_LOCK: 1, _I.LOCK_WITHOUT_RUN: 1},
    ),
    damage(
        "a run waits that nobody knows of",
        "UPDATE schedules SET waiting_run_id = NULL WHERE id = {held}",
        shows=_I.RUN_WITHOUT_LOCK,
    ),
    damage(
        "a run has another slot than its record says",
        f"UPDATE runs SET nominal_fire_at = nominal_fire_at - 60000000 WHERE {run_of('{plain}')}",
        shows={_I.RUN_WITHOUT_SLOT: 1, _I.FIRED_WITHOUT_RUN: 1},
    ),
    damage(
        "a run of a slot is said to be a person's",
        f"UPDATE runs SET trigger_kind = 'manual' WHERE {run_of('{plain}')}",
        shows=_I.RUN_WITHOUT_SLOT,
    ),
    damage(
        "a person's run has no schedule any more",
        "UPDATE runs SET schedule_id = NULL WHERE trigger_kind = 'manual'",
        shows=_I.RUN_WITHOUT_SLOT,
    ),
    damage(
        "an erased slot has two runs",
        "INSERT INTO runs (id, trigger_kind, status, priority, target_kind, target_id, schedule_id, revision, "
        "nominal_fire_at, session_id, scheduled_for, lease_seconds, finished_at) "
        "SELECT 'run_twin', trigger_kind, status, priority, target_kind, target_id, schedule_id, revision, "
        "nominal_fire_at, session_id, scheduled_for, lease_seconds, finished_at FROM runs WHERE session_id = ''",
        shows=_I.RUN_WITHOUT_SLOT,
    ),
    damage(
        "a queued run has no instant",
        "UPDATE runs SET waits_for = NULL WHERE status = 'queued'",
        shows={_I.RUN_NEVER_CLAIMABLE: 1, _I.LOCK_WITHOUT_RUN: 1},
    ),
    damage(
        "a run waits and may be claimed",
        "UPDATE runs SET claimable_at = 1 WHERE status = 'queued'",
        shows=_I.RUN_NEVER_CLAIMABLE,
    ),
    damage(
        "a run waits for one that is over",
        "UPDATE runs SET waits_for = (SELECT max(id) FROM runs WHERE schedule_id = {plain}) WHERE status = 'queued'",
        shows={_I.RUN_NEVER_CLAIMABLE: 1, _I.LOCK_WITHOUT_RUN: 1},
    ),
    damage(
        "a finished run has a lease",
        f"UPDATE runs SET lease_until = 1 WHERE {run_of('{plain}')}",
        shows=_I.RUN_STATE_WRONG,
    ),
    damage(
        "a finished run has no end",
        f"UPDATE runs SET finished_at = NULL WHERE {run_of('{plain}')}",
        shows={_I.RUN_STATE_WRONG: 1, _I.RUN_WITHOUT_LOCK: 1},
    ),
    damage(
        "a finished run is under a claim",
        f"UPDATE runs SET claim_id = 'clm_1' WHERE {run_of('{plain}')}",
        shows=_I.RUN_STATE_WRONG,
    ),
    damage(
        "a finished run stands in the queue",
        f"UPDATE runs SET claimable_at = 1 WHERE {run_of('{plain}')}",
        shows=_I.RUN_STATE_WRONG,
    ),
    damage(
        "a queued run has an owner",
        "UPDATE runs SET owner = 'prc_1' WHERE status = 'queued'",
        shows=_I.RUN_STATE_WRONG,
    ),
    damage(
        "the process of a running run is unknown",
        "DELETE FROM processes WHERE id IN (SELECT owner FROM runs WHERE status = 'running')",
        shows=_I.RUN_HELD_BY_NOBODY,
    ),
    damage(
        "a running run never started",
        "UPDATE runs SET started_at = NULL WHERE status = 'running'",
        shows=_I.RUN_HELD_BY_NOBODY,
    ),
    damage(
        "a run started before its slot",
        f"UPDATE runs SET started_at = nominal_fire_at - 1 WHERE {run_of('{plain}')}",
        shows=_I.RUN_TOO_EARLY,
    ),
    damage(
        "a run ended before it started",
        f"UPDATE runs SET finished_at = started_at - 1 WHERE {run_of('{plain}')}",
        shows=_I.RUN_TOO_EARLY,
    ),
    damage(
        "the answer of a run is gone",
        f"UPDATE runs SET output = NULL WHERE {run_of('{plain}')}",
        shows=_I.RUN_WITHOUT_TURN,
    ),
    damage(
        "a run has its answer before its end",
        "UPDATE runs SET output = 'so' WHERE id = (SELECT min(id) FROM runs WHERE status IN ('queued', 'running'))",
        shows=_I.RUN_WITHOUT_TURN,
    ),
    damage(
        "an attempt is gone",
        f"DELETE FROM attempts WHERE run_id IN (SELECT run_id FROM occurrences WHERE {first('{retried}')})",
        shows=_I.ATTEMPTS_WRONG,
    ),
    damage(
        "an attempt is kept that was not made",
        f"UPDATE runs SET attempt = 0 WHERE {run_of('{retried}')}",
        shows=_I.ATTEMPTS_WRONG,
    ),
    damage(
        "a run was tried more often than it may",
        f"UPDATE runs SET attempt = 6 WHERE {run_of('{retried}')}",
        "INSERT INTO attempts (run_id, fence, number, outcome) SELECT a.run_id, a.fence, n.value, 'failed' "
        "FROM attempts AS a, json_each('[2,3,4,5]') AS n "
        f"WHERE a.run_id IN (SELECT run_id FROM occurrences WHERE {first('{retried}')})",
        shows=_I.ATTEMPTS_WRONG,
    ),
    damage(
        "a run has a fence that nobody granted",
        "UPDATE schedules SET fence = 0 WHERE id = {counted}",
        shows=_I.FENCE_AHEAD,
    ),
    damage(
        "a checkpoint was written under a fence to come",
        "UPDATE checkpoints SET fence = 9 WHERE node = 'a'",
        shows=_I.FENCE_AHEAD,
    ),
    damage(
        "an attempt was made under a fence to come",
        "UPDATE attempts SET fence = 9 WHERE run_id IN (SELECT id FROM runs WHERE schedule_id = {retried})",
        shows=_I.FENCE_AHEAD,
    ),
    damage(
        "an attempt has no run",
        "UPDATE attempts SET run_id = 'run_0' WHERE outcome = 'lost'",
        shows={_I.STRAY_ROWS: 1, _I.ATTEMPTS_WRONG: 1},
    ),
    damage("a checkpoint has no run", "UPDATE checkpoints SET run_id = 'run_0'", shows=_I.STRAY_ROWS),
    damage(
        "an event has no run",
        "INSERT INTO run_events (run_id, seq, at, kind, data) VALUES ('run_0', 1, 1, 'progress', '{}')",
        shows=_I.STRAY_ROWS,
    ),
    damage("a key opens what is gone", "UPDATE api_keys SET revoked_at = NULL", shows=_I.KEY_OPENS_NOTHING),
]
CLAIM_OF_PLAIN = (
    f"subject_id IN (SELECT run_id FROM occurrences WHERE {first('{plain}')}) AND action = 'CLAIM'"
)
END_OF_PLAIN = (
    f"subject_id IN (SELECT run_id FROM occurrences WHERE {first('{plain}')}) AND action = 'RELEASE'"
)
AUDIT = [
    damage(
        "an entry that tells of no run is gone",
        "DELETE FROM audit WHERE action = 'ERASE'",
        shows=_I.AUDIT_GAP,
    ),
    damage("the first entries are gone", "DELETE FROM audit WHERE seq < 2", shows=_I.AUDIT_GAP),
    damage(
        "the end of a claim is gone",
        f"UPDATE audit SET action = 'WARN' WHERE {END_OF_PLAIN}",
        shows=_I.CLAIM_LEFT_OPEN,
    ),
    damage(
        "a claim is gone",
        f"UPDATE audit SET action = 'WARN' WHERE {CLAIM_OF_PLAIN}",
        shows=_I.END_WITHOUT_CLAIM,
    ),
    damage(
        "a run was claimed while it was held",
        "UPDATE audit SET action = 'WARN' WHERE action = 'EXPIRE' AND subject_id IN (SELECT id FROM runs WHERE schedule_id = {resumed})",
        shows=_I.CLAIM_LEFT_OPEN,
    ),
    damage(
        "a claim ended under another fence",
        f"UPDATE audit SET fence = fence + 1 WHERE {END_OF_PLAIN}",
        shows=_I.END_WITHOUT_CLAIM,
    ),
    damage(
        "a run is running and nobody claimed it",
        "UPDATE audit SET action = 'WARN' WHERE action = 'CLAIM' AND subject_id IN (SELECT id FROM runs WHERE status = 'running')",
        shows=_I.END_WITHOUT_CLAIM,
    ),
    damage(
        "a run became something else than its end says",
        f"UPDATE runs SET status = 'failed' WHERE {run_of('{plain}')}",
        shows=_I.END_CONTRADICTS_RUN,
    ),
    damage(
        "a fence was granted twice",
        f"UPDATE audit SET fence = fence + 1 WHERE {CLAIM_OF_PLAIN}",
        f"UPDATE audit SET fence = fence + 1 WHERE {END_OF_PLAIN}",
        shows=_I.FENCE_NOT_GROWING,
    ),
]
ENDED = "subject_kind = 'task' AND action = 'RELEASE' AND subject_id = (SELECT id FROM tasks WHERE title = 'done')"
BOARD = [
    damage(
        "a lock is gone",
        "DELETE FROM task_locks",
        shows={_I.TASK_LOCK_WRONG: 1, _I.CLAIM_LEFT_OPEN: 1},
    ),
    damage(
        "a lock holds what is not in progress",
        "UPDATE tasks SET status = 'done' WHERE title = 'held'",
        shows={_I.TASK_LOCK_WRONG: 1, _I.TASK_GATE_WRONG: 1},
    ),
    damage(
        "a lock has another fence than its task",
        "UPDATE tasks SET fence = fence + 1 WHERE title = 'held'",
        shows=_I.TASK_LOCK_WRONG,
    ),
    damage(
        "a lock is nobody's",
        "DELETE FROM instances WHERE role = 'pm'",
        shows=_I.TASK_LOCK_WRONG,
    ),
    damage(
        "a task is gone and its lock is left",
        "DELETE FROM task_prerequisites WHERE prerequisite_id = (SELECT id FROM tasks WHERE title = 'held')",
        "UPDATE tasks SET unmet = 0 WHERE title = 'between'",
        "DELETE FROM tasks WHERE title = 'held'",
        shows={_I.STRAY_ROWS: 1, _I.CLAIM_LEFT_OPEN: 1},
    ),
    damage(
        "a gate is open that should be shut",
        "UPDATE tasks SET unmet = 0 WHERE title = 'between'",
        shows=_I.TASK_GATE_WRONG,
    ),
    damage(
        "a need is left of what is gone",
        "DELETE FROM tasks WHERE title = 'taken back'",
        "UPDATE tasks SET unmet = unmet - 1 WHERE title = 'gated'",
        shows=_I.STRAY_ROWS,
    ),
    damage(
        "tasks wait for each other",
        "INSERT INTO task_prerequisites SELECT a.id, b.id FROM tasks AS a, tasks AS b "
        "WHERE a.title = 'between' AND b.title = 'gated'",
        "UPDATE tasks SET unmet = unmet + 1 WHERE title = 'between'",
        shows=_I.TASK_NEEDS_ITSELF,
    ),
    damage(
        "the last end of a task's claim is gone",
        f"UPDATE audit SET action = 'WARN' WHERE seq = (SELECT max(seq) FROM audit WHERE {ENDED})",
        shows=_I.CLAIM_LEFT_OPEN,
    ),
    damage(
        "a task was claimed while it was held",
        f"UPDATE audit SET action = 'WARN' WHERE seq = (SELECT min(seq) FROM audit WHERE {ENDED})",
        shows=_I.CLAIM_LEFT_OPEN,
    ),
    damage(
        "a task's claim is gone",
        "UPDATE audit SET action = 'WARN' WHERE action = 'CLAIM' "
        "AND subject_id = (SELECT id FROM tasks WHERE title = 'taken back')",
        shows=_I.END_WITHOUT_CLAIM,
    ),
    damage(
        "a task is held and nobody claimed it",
        "UPDATE audit SET action = 'WARN' WHERE action = 'CLAIM' "
        "AND subject_id = (SELECT id FROM tasks WHERE title = 'held')",
        shows=_I.END_WITHOUT_CLAIM,
    ),
    damage(
        "a task's claim ended under another fence",
        f"UPDATE audit SET fence = fence + 1 WHERE seq = (SELECT max(seq) FROM audit WHERE {ENDED})",
        shows=_I.END_WITHOUT_CLAIM,
    ),
    damage(
        "a task's fence was granted twice",
        "UPDATE audit SET fence = 1 WHERE fence = 2 AND action IN ('CLAIM', 'RELEASE') "
        "AND subject_id = (SELECT id FROM tasks WHERE title = 'done')",
        shows=_I.FENCE_NOT_GROWING,
    ),
]
PUSHED = "(SELECT id FROM jobs WHERE slug = 'pushed')"
OF_PUSHED = f"(SELECT {{}} FROM triggers WHERE job_id = {PUSHED})"
FIRST, LAST = OF_PUSHED.format("min(nominal_fire_at)"), OF_PUSHED.format("max(nominal_fire_at)")
HELD = "(SELECT min(id) FROM triggers WHERE status = 'acknowledged')"
JOBS = [
    damage(
        "a job fires at what is no slot",
        "UPDATE jobs SET next_fire_at = next_fire_at + 1 WHERE slug = 'pushed'",
        shows=_I.JOB_NEXT_SLOT_WRONG,
    ),
    damage(
        "a job that is enabled has no next slot",
        "UPDATE jobs SET next_fire_at = NULL WHERE slug = 'pushed'",
        shows=_I.JOB_NEXT_SLOT_WRONG,
    ),
    damage(
        "a job fires what has a trigger",
        f"UPDATE jobs SET next_fire_at = {LAST} WHERE slug = 'pushed'",
        shows=_I.JOB_NEXT_SLOT_WRONG,
    ),
    damage(
        "a job leaves a slot out",
        "UPDATE jobs SET next_fire_at = next_fire_at + 300000000 WHERE slug = 'pushed'",
        shows=_I.JOB_SLOT_UNACCOUNTED,
    ),
    damage(
        "a trigger is gone",
        f"DELETE FROM triggers WHERE job_id = {PUSHED} AND nominal_fire_at = {LAST} - 300000000",
        shows=_I.JOB_SLOT_UNACCOUNTED,
    ),
    damage(
        "a slot is coalesced and has a trigger",
        f"UPDATE triggers SET coalesced_first = {FIRST}, coalesced_last = {FIRST}, coalesced_count = 1 "
        f"WHERE job_id = {PUSHED} AND nominal_fire_at = {LAST}",
        shows=_I.SLOT_TRIGGERED_TWICE,
    ),
    damage(
        "a job can't be computed",
        'UPDATE jobs SET cadence = \'{"unit":"day","every":1,"at":["09:00"],"zone":"Moon/Base"}\' '
        "WHERE slug = 'pushed'",
        shows=_I.RULE_UNREADABLE,
    ),
    damage(
        "a trigger came before its slot",
        f"UPDATE triggers SET created_at = nominal_fire_at - 1 WHERE nominal_fire_at = {LAST} "
        f"AND job_id = {PUSHED}",
        shows=_I.TRIGGER_WRONG,
    ),
    damage(
        "a trigger is at nobody",
        f"UPDATE triggers SET instance_id = 'ins_nobody' WHERE id = {HELD}",
        shows=_I.TRIGGER_WRONG,
    ),
    damage(
        "a trigger is at a connection that there never was",
        f"UPDATE triggers SET epoch = 99 WHERE id = {HELD}",
        shows=_I.TRIGGER_WRONG,
    ),
    damage(
        "the job of triggers is gone",
        "UPDATE triggers SET job_id = 'job_gone' WHERE status = 'failed' AND reason = 'reported'",
        shows=_I.TRIGGER_WRONG,
    ),
    damage(
        "what was acknowledged was passed on",
        "UPDATE audit SET action = 'ACKNOWLEDGE' WHERE seq = (SELECT min(seq) FROM audit WHERE action = 'TAKE_BACK')",
        shows=_I.TRIGGER_STEPS_WRONG,
    ),
    damage(
        "what has ended goes on",
        "UPDATE triggers SET status = 'acknowledged', finished_at = NULL, payload = '{}' "
        f"WHERE job_id = {PUSHED} AND nominal_fire_at = {FIRST}",
        shows=_I.TRIGGER_STEPS_WRONG,
    ),
]
DAMAGES = [*SLOTS, *SCHEDULES, *RUNS, *BOARD, *JOBS, *AUDIT]


async def test_what_the_product_wrote_is_clean(lived: Lived) -> None:
    """OPS-7: every kind of ending, skip, pause, edit and loss is lawful; and what was looked at is told."""
    verified, found = await lived.judged()
    assert [breach.sentence for breach in found] == []
    assert verified.is_clean
    assert verified.left_out == ()
    assert set(verified.breaches) == set(Invariant)
    assert all(verified.rows[table] for table in verified.rows if table != "events"), verified.rows


@pytest.mark.parametrize("damaged", DAMAGES, ids=str)
async def test_a_damage_is_named_and_nothing_else(lived: Lived, damaged: Damage) -> None:
    """OPS-7: each breach by its name, with rows that are there to be looked at."""
    await lived.damage(*damaged.does)
    verified, found = await lived.judged()
    shown = Counter(breach.invariant for breach in found)
    assert shown == +Counter(damaged.shows), [breach.sentence for breach in found]
    assert all(breach.rows and breach.sentence.endswith(".") for breach in found)
    assert +Counter(verified.breaches) == shown


@pytest.mark.sqlite
async def test_what_retention_took_is_no_breach_and_what_it_did_not_take_is(house: House) -> None:
    """RUN-11, DSP-9a: a floor explains what lies below it, and nothing above it."""
    await an_agent(house.database)
    made = await a_desk(house).make({"unit": "hour", "every": 1})
    for _ in range(6 * 24):
        house.clock.advance(3_600)
        await house.dispatch()
        await house.idle()
    await Retention(house.database, Keep(history_days=2, ledger_days=4, audit_days=3)).clean()
    after = Lived(house.database, {"hourly": made.id})
    verified, found = await after.judged()
    assert found == []
    assert 0 < verified.rows["runs"] < verified.rows["occurrences"] < 6 * 24
    await after.damage(
        "DELETE FROM runs WHERE id = (SELECT min(id) FROM runs)",
        "DELETE FROM audit WHERE seq = (SELECT max(seq) - 20 FROM audit)",
        "DELETE FROM occurrences WHERE nominal_fire_at = (SELECT min(nominal_fire_at) + 7200000000 FROM occurrences)",
    )
    shown = {breach.invariant for breach in (await after.judged())[1]}
    assert shown >= {_I.FIRED_WITHOUT_RUN, _I.AUDIT_GAP, _I.SLOT_UNACCOUNTED}


def without_one(entries: list[Any]) -> list[Any]:
    return [entries[0], *entries[2:]]


def under_another_fence(entries: list[Any]) -> list[Any]:
    return [[entries[0][0], 9, *entries[0][2:]], *entries[1:]]


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("action", "row", "damaged", "shows"),
    [
        ("CLAIM", 0, without_one, {_I.END_WITHOUT_CLAIM, _I.AUDIT_GAP}),
        ("RELEASE", 0, without_one, {_I.CLAIM_LEFT_OPEN, _I.AUDIT_GAP}),
        ("RELEASE", 1, without_one, {_I.CLAIM_LEFT_OPEN}),  # it has the last numbers of all
        ("RELEASE", 0, under_another_fence, {_I.END_WITHOUT_CLAIM}),
    ],
)
async def test_a_damage_inside_a_row_of_many_entries_is_named(
    house: House, action: str, row: int, damaged: Callable[[list[Any]], list[Any]], shows: set[Invariant]
) -> None:
    """OPS-7, BRD-7: what happened to many at once is one row, and each of its entries is judged."""
    await an_agent(house.database)
    for _ in range(4):
        await a_desk(house).make({"unit": "hour", "every": 1})
    for _ in range(2):
        house.clock.advance(3_600)
        await house.dispatch()
        await house.idle()
    lived = Lived(house.database, {})
    verified, found = await lived.judged()
    assert (found, verified.rows["audit"]) == ([], 4 + 2 * 2 * 4)
    many = await house.rows(
        "SELECT seq, entries FROM audit WHERE action = :action ORDER BY seq", action=action
    )
    entries = json.dumps(damaged(json.loads(many[row]["entries"])))
    await lived.damage(f"UPDATE audit SET entries = '{entries}' WHERE seq = {many[row]['seq']}")
    assert {breach.invariant for breach in (await lived.judged())[1]} == shows


async def test_a_clock_that_jumped_is_told_and_no_order_is_demanded_then(lived: Lived) -> None:
    """RUN-5b: under a clock that was set, instants are no order; everything else is judged all the same."""
    jump = """INSERT INTO audit (at, actor, action, subject_kind, subject_id, detail)
        VALUES (1, 'watchdog', 'CLOCK_JUMP', 'process', 'prc_1', '{"seconds":-700.0,"stalled":STALLED}')"""
    await lived.damage(
        jump.replace("STALLED", "false"),
        "UPDATE runs SET finished_at = started_at - 1 WHERE status = 'succeeded'",
        # left out as missed while the clock was ahead, and pushed when it came (casebook mis-08)
        f"UPDATE triggers SET coalesced_first = {FIRST}, coalesced_last = {FIRST}, coalesced_count = 1 "
        f"WHERE job_id = {PUSHED} AND nominal_fire_at = {LAST}",
        "UPDATE schedules SET in_flight_run_id = 'run_none' WHERE id = {plain}",
    )
    verified, found = await lived.judged()
    assert [breach.invariant for breach in found] == [_I.LOCK_WITHOUT_RUN]
    assert any("clock has jumped" in sentence for sentence in verified.left_out)


async def test_a_process_that_stood_still_is_no_jump(lived: Lived) -> None:
    await lived.damage(
        """INSERT INTO audit (at, actor, action, subject_kind, subject_id, detail)
        VALUES (1, 'watchdog', 'CLOCK_JUMP', 'process', 'prc_1', '{"seconds":700.0,"stalled":true}')""",
        "UPDATE runs SET finished_at = started_at - 1 WHERE status = 'timed_out' OR status = 'lost'",
    )
    verified, found = await lived.judged()
    assert {breach.invariant for breach in found} == {_I.RUN_TOO_EARLY}
    assert verified.left_out == ()


async def test_under_other_zone_data_slots_are_not_compared(lived: Lived) -> None:
    """OPS-5a: what a wall time meant is not known then, and that is said."""
    await lived.damage(
        "UPDATE processes SET zone_data = '1999a'",
        "UPDATE schedules SET next_fire_at = next_fire_at + 1 WHERE id = {held}",
        "DELETE FROM occurrences WHERE schedule_id = {skipped} AND reason = 'already_running'",
    )
    verified, found = await lived.judged()
    assert found == []
    assert any("other zone data" in sentence for sentence in verified.left_out)


async def test_a_rule_that_was_set_aside_is_no_breach(lived: Lived) -> None:
    """DSP-9a."""
    await lived.damage(
        "UPDATE schedules SET cadence = '{}', status = 'error' WHERE id = {plain}",
        "UPDATE status_changes SET status = 'error' WHERE schedule_id = {plain} AND seq = 3",
    )
    assert (await lived.judged())[1] == []


async def test_a_year_inside_a_pause_is_one_question(lived: Lived) -> None:
    """DSP-9: silence is judged by stretches in which nothing changed, not slot by slot."""
    year = 365 * 24 * 60 * MINUTE
    await lived.damage(
        f"UPDATE schedules SET created_at = created_at - {year}, anchor_at = anchor_at - {year} WHERE id = {{plain}}",
        f"UPDATE schedules SET updated_at = updated_at - {year} WHERE id = {{plain}}",
    )
    ((breach),) = (await lived.judged())[1]
    assert breach.invariant is _I.SLOT_UNACCOUNTED
    assert "105,120 slots" in breach.sentence


def test_every_invariant_has_a_damage_that_shows_it_and_a_meaning() -> None:
    """OPS-7: a check that nothing can trip proves nothing."""
    assert set(TOLD) == set(Invariant)
    assert set().union(*(damaged.shows for damaged in DAMAGES)) == set(Invariant)
