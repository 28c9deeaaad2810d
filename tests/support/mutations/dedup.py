"""Guards of repeats, of stale edits and of keys that open no more."""

from support.mutations import Mutant, in_query

_DEDUP = "tests/service/test_dedup.py::"
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
    in_query(
        "agents.update",
        "of two edits from one version one wins",
        " AND version = :version",
        "",
        _STORE + "test_an_update_counts_the_version_and_an_old_one_does_nothing[sqlite-agent]",
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
