"""What the schema itself refuses: uniqueness, states that contradict each other, the append-only triggers."""

from support.mutations import Mutant

_FILE = "stores/migrations/0001_house.sql"
_EDITED = "stores/migrations/0009_definition_checks.sql"
_RUNS = "tests/contract/test_runs_schema.py::"
_SLOTS = "tests/contract/test_slots_schema.py::"
_KEPT = "tests/contract/test_audit_schema.py::"


def _without(guard: str, old: str, test: str, new: str = "") -> Mutant:
    return Mutant(guard, _FILE, old, new, test)


MUTANTS: tuple[Mutant, ...] = (
    _without(
        "a slot is in the ledger once (DSP-6)",
        "PRIMARY KEY (schedule_id, nominal_fire_at),",
        _KEPT + "test_a_slot_is_in_the_ledger_once",
        "PRIMARY KEY (schedule_id, nominal_fire_at, disposition),",
    ),
    _without(
        "only an active schedule can match the claim",
        "    CHECK (next_fire_at IS NULL OR status = 'active'),\n",
        _SLOTS + "test_only_an_active_schedule_has_a_next_instant",
    ),
    _without(
        "a deleted schedule never matches the claim",
        ",\n    CHECK (deleted_at IS NULL OR next_fire_at IS NULL)\n",
        _SLOTS + "test_a_deleted_schedule_has_no_next_instant",
        "\n",
    ),
    Mutant(
        "a definition's bounds are asked of an edit as well",
        _EDITED,
        "BEFORE INSERT OR UPDATE OF name, target_kind, anchor_at, query, session_mode,\n--postgres:   session_id,",
        "BEFORE INSERT OR UPDATE OF name, target_kind, anchor_at, query, session_mode,\n--postgres:  ",
        _SLOTS + "test_what_goes_together_is_asked_when_one_of_it_changes",
    ),
    _without(
        "only a queued run is claimable",
        "    CHECK (claimable_at IS NULL OR status = 'queued'),\n",
        _RUNS + "test_only_a_queued_run_is_claimable",
    ),
    _without(
        "a lease exactly while running",
        "    CHECK ((lease_until IS NOT NULL) = (status = 'running')),\n",
        _RUNS + "test_a_run_has_a_lease_exactly_while_it_is_running",
    ),
    _without(
        "a running run has an owner",
        "    CHECK ((owner IS NOT NULL) OR (status <> 'running')),\n",
        _RUNS + "test_a_running_run_has_an_owner",
    ),
    _without(
        "only the two queues that the claim searches",
        "priority INTEGER NOT NULL CHECK (priority IN (0, 10))",
        _RUNS + "test_the_priorities_are_the_two_queues_that_the_claim_searches",
        "priority INTEGER NOT NULL",
    ),
    _without(
        "the recorded slot is not in its own range",
        "coalesced_last < nominal_fire_at",
        _KEPT + "test_a_coalesced_range_is_whole_and_lies_before_its_slot",
        "coalesced_last <= nominal_fire_at",
    ),
    _without(
        "the ledger is not deleted above its floor",
        "WHEN OLD.nominal_fire_at >= (SELECT occurrences_before FROM retention_floor)",
        _KEPT + "test_only_what_lies_below_the_floor_can_be_deleted",
        "WHEN false",
    ),
    _without(
        "the audit is not deleted above its floor",
        "WHEN OLD.at >= (SELECT audit_before FROM retention_floor)",
        _KEPT + "test_only_what_lies_below_the_floor_can_be_deleted",
        "WHEN false",
    ),
    _without(
        "an entry of the audit never changes",
        "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit\n",
        _KEPT + "test_an_entry_of_the_audit_never_changes",
        "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit WHEN false\n",
    ),
    _without(
        "a stamp is set once",
        "WHEN OLD.links_erased_at IS NOT NULL OR NEW.links_erased_at IS NULL",
        _KEPT + "test_the_stamp_is_set_once_and_for_good",
        "WHEN NEW.links_erased_at IS NULL",
    ),
    _without(
        "no link changes without the stamp",
        "WHEN OLD.links_erased_at IS NOT NULL OR NEW.links_erased_at IS NULL",
        _KEPT + "test_the_links_can_not_be_taken_off_or_changed_without_the_stamp",
        "WHEN OLD.links_erased_at IS NOT NULL",
    ),
    _without(
        "the floor only rises",
        "WHEN NEW.occurrences_before < OLD.occurrences_before OR NEW.audit_before < OLD.audit_before",
        _KEPT + "test_the_floor_only_rises",
        "WHEN false",
    ),
    _without(
        "the floor stays",
        "CREATE TRIGGER retention_floor_stays BEFORE DELETE ON retention_floor\n",
        _KEPT + "test_the_floor_is_one_row_that_stays",
        "CREATE TRIGGER retention_floor_stays BEFORE DELETE ON retention_floor WHEN false\n",
    ),
)
