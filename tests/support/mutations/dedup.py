"""Guards of repeats, of stale edits and of keys that open no more."""

from support.mutations import Mutant, in_query

_DEDUP = "tests/service/test_dedup.py::"
_KEYS = "tests/service/test_dedup_keys.py::"
_STORE = "tests/contract/test_named_stores.py::"
_AUTH = "tests/e2e/http/test_auth.py::"

MUTANTS = (
    in_query(
        "idempotency.reserve",
        "a key that is taken stays taken",
        "WHERE idempotency_keys.expires_at <= now_us()\n",
        "",
        _DEDUP + "test_of_many_at_once_over_two_connections_one_takes_effect",
    ),
    Mutant(
        "another body under the same key is refused",
        "services/dedup.py",
        "if kept.fingerprint != once.fingerprint:",
        "if False:",
        _DEDUP + "test_another_body_is_refused_and_nothing_happens",
    ),
    Mutant(
        "a document is applied once under its key",
        "services/apply.py",
        "run_once(tx, once, lambda tx: self._put(tx, caller, wanted))",
        "self._put(tx, caller, wanted)",
        "tests/e2e/http/test_once.py::test_a_repeat_is_answered_as_the_first_was",
    ),
    Mutant(
        "two nodes of a team are two effects",
        "services/invoking.py",
        "                dedup_key=dedup.of_node(prepared.invocation.dedup_key, node.id),\n",
        "",
        _KEYS + "test_each_node_of_a_team_has_a_key_of_its_own",
    ),
    Mutant(
        "a run without a declared key has its slot for one",
        "services/invoking.py",
        "            dedup.of_run(grant.dedup_key, grant.schedule_id, nominal),",
        "            grant.dedup_key,",
        _KEYS + "test_a_schedule_without_a_key_gives_each_run_its_slot",
    ),
    Mutant(
        "an hour that comes twice is two names",
        "domain/dedup.py",
        "{local.hour:02}{offset_text(offset)}",
        "{local.hour:02}",
        "tests/unit/domain/test_dedup.py::test_an_hour_that_comes_twice_is_two_hours",
    ),
    in_query(
        "agents.update",
        "of two edits from one version one wins",
        " AND version = :version",
        "",
        _STORE + "test_an_update_counts_the_version_and_an_old_one_does_nothing[sqlite-agent]",
    ),
    Mutant(
        "of processes that start at once one makes the first key",
        "services/api_keys.py",
        "return None if await api_keys.count(tx) else await work(tx)",
        "return await work(tx)",
        "tests/service/test_api_keys.py::test_of_processes_that_start_at_once_one_makes_the_first_key",
    ),
    Mutant(
        "a revoked key opens nothing",
        "services/api_keys.py",
        "if key.revoked_at is not None:",
        "if False:",
        _AUTH + "test_a_revoked_and_an_expired_key_open_nothing",
    ),
    Mutant(
        "an expired key opens nothing",
        "services/api_keys.py",
        "if key.expires_at is not None and to_micros(key.expires_at) <= found.now:",
        "if False:",
        _AUTH + "test_a_revoked_and_an_expired_key_open_nothing",
    ),
)
