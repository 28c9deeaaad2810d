"""Guards of schedules: against stale edits, against what a run in flight forbids, against slots that get lost."""

from support.mutations import Mutant, in_query, without

_STORE = "tests/contract/test_schedules_store.py::"
_SCHEDULES = "tests/service/test_schedules.py::"
_PAUSING = "tests/service/test_pausing.py::"
_RUN_NOW = "tests/service/test_run_now.py::"
_OVERTAKEN = _STORE + "test_neither_a_run_in_flight_nor_a_deletion_is_overtaken"
_IN_FLIGHT = _OVERTAKEN + "[sqlite-in_flight_run_id = 'run_1']"
_DELETED = _OVERTAKEN + "[sqlite-deleted_at = 1, next_fire_at = NULL]"
_ONE_HOLDER = _STORE + "test_the_lock_has_one_holder_and_a_disabled_schedule_has_none[sqlite]"

MUTANTS = (
    Mutant(
        "a slot on record is not the next one again when the zone data changes",
        "services/realign.py",
        "nearest if recorded is None or nearest > recorded else walk.next_after(recorded)",
        "nearest",
        "tests/service/test_realign.py::test_a_slot_that_the_ledger_holds_is_not_the_next_one_tzd_01",
    ),
    Mutant(
        "a slot that has fired does not fire again for its new instant",
        "services/realign.py",
        "walk.latest_at(stored), walk.next_after(stored)",
        "walk.latest_at(stored), walk.next_after(row['now'])",
        "tests/service/test_realign.py::test_a_slot_that_has_fired_does_not_fire_again_for_its_new_instant_tzd_01",
    ),
    Mutant(
        "a process says which zone data it has only once the slots are those of that data",
        "services/engine.py",
        "        await self._realignment.meet_zone_data(zones)\n        await self.database.write(\n"
        "            lambda tx: processes.start(tx, self.process_id, host, pid, self._version, zones, self._moment())\n        )\n",
        "        await self.database.write(\n"
        "            lambda tx: processes.start(tx, self.process_id, host, pid, self._version, zones, self._moment())\n        )\n"
        "        await self._realignment.meet_zone_data(zones)\n",
        "tests/service/test_realign.py::test_a_start_that_died_in_the_middle_begins_anew_tzd_01",
    ),
    in_query(
        "schedules.revise",
        "of two edits from one revision one wins",
        " AND revision = :revision",
        "",
        _STORE + "test_an_edit_of_a_revision_that_is_gone_changes_nothing[sqlite]",
    ),
    without("schedules.revise", "@unfinished_run IS NULL", _IN_FLIGHT),
    without("schedules.revise", "deleted_at IS NULL", _DELETED),
    without("schedules.delete", "@unfinished_run IS NULL", _IN_FLIGHT),
    without("schedules.lock", "@unfinished_run IS NULL", _ONE_HOLDER),
    without("schedules.lock", "status <> 'disabled'", _ONE_HOLDER),
    Mutant(
        "whoever did not get the lock starts no run",
        "services/run_now.py",
        "await runs.insert(tx, [run], landed, [schedule_id])",
        "await runs.insert(tx, [run])",
        "tests/service/test_run_now.py::test_a_lock_that_was_taken_in_between_leaves_no_run",
    ),
    without(
        "schedules.set_status",
        "status = :from_status",
        _STORE + "test_a_status_moves_only_from_where_it_is[sqlite]",
    ),
    Mutant(
        "an edit under a run in flight is refused",
        "services/schedules.py",
        'refuse_in_flight(standing, "edited")',
        "pass",
        _SCHEDULES + "test_neither_an_edit_nor_a_deletion_goes_under_a_run_in_flight",
    ),
    Mutant(
        "a due slot that an edit overtakes is recorded, and does not fire",
        "services/schedules.py",
        "await pending.account(tx, standing, now, Reason.MISSED, by)",
        "pass",
        _SCHEDULES + "test_a_due_slot_that_an_edit_overtakes_is_recorded_as_missed",
    ),
    Mutant(
        "a due slot that a pause overtakes is recorded",
        "services/pausing.py",
        "await pending.account(tx, standing, now, Reason.PAUSED, by)",
        "pass",
        _PAUSING + "test_a_slot_that_was_due_when_it_was_paused_is_recorded",
    ),
    Mutant(
        "an edit counts from now",
        "services/schedules.py",
        "status, first = standing.status, table.first_after(now)",
        "status, first = standing.status, table.first_after(now - 86_400_000_000)",
        _SCHEDULES + "test_moving_a_daily_time_serves_no_day_twice",
    ),
    Mutant(
        "a resume counts from now",
        "services/pausing.py",
        "first = table.first_after(begin)",
        "first = table.first_after(begin - 86_400_000_000)",
        _PAUSING + "test_a_resume_counts_from_now_and_fires_no_burst",
    ),
    Mutant(
        "a run by hand passes the gates",
        "services/run_now.py",
        "        await self._gate(tx, schedule)\n",
        "",
        _RUN_NOW + "test_a_target_that_is_switched_off_is_the_callers_refusal",
    ),
    Mutant(
        "a run by hand takes no slot's name",
        "services/run_now.py",
        "nominal_fire_at=None,",
        "nominal_fire_at=now,",
        _RUN_NOW + "test_the_run_is_there_at_once_and_the_cadence_is_left_alone",
    ),
    Mutant(
        "a lost target disables its schedules",
        "services/pausing.py",
        "            if status is not None:\n",
        "            if status is None:\n",
        _SCHEDULES + "test_a_target_that_is_deleted_disables_its_schedules",
    ),
    Mutant(
        "a plan is rolled back",
        "services/apply.py",
        "raise _RolledBack(await self._put(tx, caller, wanted))",
        "self._kept = await self._put(tx, caller, wanted)  # type: ignore[attr-defined]",
        "tests/service/test_apply.py::test_a_plan_says_what_would_happen_and_changes_nothing",
    ),
)
