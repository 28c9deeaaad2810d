"""Pushed jobs: one trigger for each slot, one instance for each trigger, and who may say what of it."""

from support.mutations import Mutant, in_query, without

_JOBS = "tests/contract/test_jobs_store.py::"
_STORE = "tests/contract/test_triggers_store.py::"
_INSTANCES = "tests/contract/test_instances_store.py::"
_TICK = "tests/service/test_job_dispatcher.py::"
_TRIGGERS = "tests/service/test_triggers.py::"
_PRESENT = "EXISTS (SELECT 1 FROM instances AS i WHERE i.id = :instance_id AND i.epoch = :epoch)"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a slot of a job has one trigger",
        "stores/migrations/0005_jobs.sql",
        "    UNIQUE (job_id, nominal_fire_at),\n",
        "    UNIQUE (job_id, id),\n",
        _STORE + "test_a_slot_gets_one_trigger_and_the_second_is_told",
    ),
    in_query(
        "triggers.record",
        "a slot gets one trigger, and the second is told",
        "ON CONFLICT (job_id, nominal_fire_at) DO NOTHING",
        "ON CONFLICT (job_id, nominal_fire_at) DO UPDATE SET reason = triggers.reason",
        _STORE + "test_a_slot_gets_one_trigger_and_the_second_is_told",
    ),
    Mutant(
        "who was told that a slot has a trigger makes nothing of it",
        "services/job_dispatcher.py",
        'if plan.trigger is not None and plan.trigger["id"] in recorded:',
        "if plan.trigger is not None:",
        _TICK + "test_a_slot_that_has_a_trigger_gets_no_other_whatever_the_job_says",
    ),
    in_query(
        "jobs.due",
        "due at the database's instant",
        "WHERE next_fire_at <= now_us()",
        "WHERE next_fire_at <= now_us() + 1",
        _JOBS + "test_due_is_at_the_database_s_instant_and_not_a_microsecond_before",
    ),
    without(
        "jobs.advance",
        "next_fire_at + 0 = :claimed_at",
        _JOBS + "test_what_was_decided_over_another_state_is_not_written",
    ),
    without(
        "jobs.advance",
        "version = :seen_version",
        _JOBS + "test_what_was_decided_over_another_state_is_not_written",
    ),
    without(
        "jobs.advance",
        "coalesce(recorded_until, -1) = coalesce(:seen_recorded, -1)",
        _JOBS + "test_what_was_decided_over_another_state_is_not_written",
    ),
    in_query(
        "jobs.advance",
        "what is on record is not forgotten",
        "recorded_until = coalesce(:recorded_until, recorded_until)",
        "recorded_until = :recorded_until",
        _JOBS + "test_a_scan_without_a_slot_leaves_what_is_on_record",
    ),
    Mutant(
        "only what the scan has moved on gets a trigger",
        "services/job_dispatcher.py",
        "if plan.job_id in landed and plan.trigger is not None]",
        "if landed is not None and plan.trigger is not None]",
        _TICK + "test_what_was_edited_while_it_was_planned_gets_no_trigger",
    ),
    without(
        "triggers.give",
        "instance_id IS NULL",
        _STORE + "test_who_waits_gets_one_instance_and_longer_to_be_passed_on",
    ),
    without(
        "triggers.miss", "instance_id IS NULL", _STORE + "test_who_waits_is_missed_once_and_for_a_reason"
    ),
    in_query(
        "triggers.push",
        "a trigger is pushed once",
        "status = 'pending' AND instance_id = :instance_id",
        "instance_id = :instance_id",
        _STORE + "test_a_push_is_made_over_the_present_connection_and_once",
    ),
    *(
        in_query(
            "triggers.push",
            clause,
            f" AND {clause}",
            "",
            _STORE + test,
        )
        for clause, test in (
            ("i.epoch = :epoch", "test_a_push_is_made_over_the_present_connection_and_once"),
            ("i.server = :server", "test_a_push_is_made_over_the_present_connection_and_once"),
            ("i.status = 'online'", "test_whoever_drains_is_pushed_nothing"),
        )
    ),
    Mutant(
        "what is not to be pushed any more is not sent",
        "services/trigger_delivery.py",
        'marked = [row for row in ready if row["id"] in landed]',
        "marked = [row for row in ready if landed is not None]",
        _TRIGGERS + "test_what_was_passed_on_while_it_was_looked_at_is_not_sent",
    ),
    *(
        without(f"triggers.{name}", _PRESENT, _STORE + test)
        for name, test in (
            ("acknowledge", "test_who_has_it_acknowledges_it_over_the_present_connection"),
            ("finish", "test_who_has_it_ends_it_over_the_present_connection"),
            ("keep", "test_what_an_instance_has_and_keeps_when_it_comes_back"),
        )
    ),
    *(
        in_query(
            f"triggers.{name}",
            "the instance that has it",
            " AND instance_id = :instance_id\n",
            "\n",
            _STORE + test,
        )
        for name, test in (
            ("acknowledge", "test_who_has_it_acknowledges_it_over_the_present_connection"),
            ("finish", "test_who_has_it_ends_it_over_the_present_connection"),
        )
    ),
    in_query(
        "triggers.acknowledge",
        "what was passed on is acknowledged by nobody",
        "status = 'pushed' AND instance_id",
        "instance_id",
        _STORE + "test_who_has_it_acknowledges_it_over_the_present_connection",
    ),
    in_query(
        "triggers.finish",
        "what has ended does not end again",
        "status IN ('pushed', 'acknowledged') AND instance_id",
        "instance_id",
        _STORE + "test_who_has_it_ends_it_over_the_present_connection",
    ),
    in_query(
        "triggers.take_back",
        "what was acknowledged meanwhile is not passed on",
        "status = :status AND instance_id",
        "CAST(:status AS TEXT) IS NOT NULL AND instance_id",
        _STORE + "test_what_was_acknowledged_meanwhile_is_not_taken_back",
    ),
    in_query(
        "triggers.take_back",
        "the connection that had it",
        "AND coalesce(epoch, 0) = :epoch\n",
        "AND :epoch IS NOT NULL\n",
        _STORE + "test_what_was_pushed_is_taken_back_from_the_connection_that_had_it",
    ),
    in_query(
        "triggers.lose",
        "what was acknowledged meanwhile is not given up",
        "status = :status AND instance_id",
        "CAST(:status AS TEXT) IS NOT NULL AND instance_id",
        _STORE + "test_what_was_acknowledged_meanwhile_is_not_taken_back",
    ),
    Mutant(
        "what was acknowledged is passed on to nobody",
        "services/trigger_returns.py",
        "if one.status is TriggerStatus.ACKNOWLEDGED:",
        "if one.status is TriggerStatus.MISSED:",
        _TRIGGERS + "test_what_was_acknowledged_is_not_repeated_when_its_instance_is_gone",
    ),
    Mutant(
        "a trigger is not passed on for ever",
        "services/trigger_returns.py",
        "and one.pushes >= MOST_PUSHES and not unsent:",
        "and one.pushes >= 99 and not unsent:",
        _TRIGGERS + "test_a_trigger_that_kills_whoever_gets_it_is_not_passed_on_for_ever",
    ),
    Mutant(
        "another instance comes first",
        "services/job_dispatcher.py",
        'await instances.place(tx, role, but=taken_from or "")',
        'await instances.place(tx, role, but="")',
        _TRIGGERS + "test_another_one_comes_first",
    ),
    Mutant(
        "a connection that is ending gets nothing more",
        "services/trigger_delivery.py",
        "return self._push.holds(*connection) and connection not in self._closing",
        "return self._push.holds(*connection)",
        _TRIGGERS + "test_a_connection_that_is_ending_gets_nothing_more",
    ),
    in_query(
        "triggers.adrift",
        "a new connection may first say what it has",
        " AND i.connected_at <= now_us() - :hello_us)",
        ")",
        _STORE + "test_what_is_adrift",
    ),
    in_query(
        "triggers.forlorn",
        "nothing is given up right after a clock jump",
        "AND (CAST(:calm_us AS BIGINT) IS NULL OR :lost_us < :calm_us)",
        "AND (CAST(:calm_us AS BIGINT) IS NULL OR :lost_us > 0)",
        _STORE + "test_what_is_given_up_after_a_while",
    ),
    in_query(
        "instances.candidate",
        "triggers take room",
        "AND t.finished_at IS NULL)\n  )",
        "AND t.finished_at IS NOT NULL)\n  )",
        _INSTANCES + "test_a_place_is_taken_where_there_is_room",
    ),
    in_query(
        "instances.place",
        "room is counted again once the instance is ours",
        "AND t.finished_at IS NULL)\n  )",
        "AND t.finished_at IS NOT NULL)\n  )",
        _INSTANCES + "test_a_place_that_was_taken_meanwhile_is_not_taken_again",
    ),
)
