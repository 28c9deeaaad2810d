"""A schedule's definition: read with every fault at once, written in one canonical form (SCH-4, SCH-6, SCH-12a, SCH-14)."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.definition import FIELDS, READ_ONLY, canonical, parse, revised, timing, to_json
from gnomon.domain.errors import Invalid
from gnomon.domain.schedule import CatchUp, Definition, OnLost, Overlap, SessionMode
from support.cadence_rules import dated, json_values, once, rolling

LEAST: dict[str, Any] = {
    "name": "nightly",
    "target": {"kind": "agent", "id": "writer"},
    "cadence": {"unit": "hour", "every": 6},
}
SESSION = "ses_" + "0" * 20


def faults(given: Any) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        parse(given)
    return {fault.field: fault.message for fault in caught.value.faults}


def edited(standing: Definition, patch: Any) -> Definition:
    draft = revised(standing, patch)
    assert draft.faults == ()
    return draft.definition


def outcome(given: Any) -> Definition | Invalid:
    try:
        return parse(given)
    except Invalid as error:
        return error


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("a\x00b", "must not hold the character U+0000"),
        ("a\ud800b", "holds half a character (a lone surrogate)"),
    ],
)
def test_a_query_that_no_database_keeps_whole_is_refused(query: str, message: str) -> None:
    """Reliability 69: refused with the reason, never cut and never a failure later on."""
    assert faults(LEAST | {"query": query}) == {"query": message}


def test_the_defaults_are_those_of_the_specification() -> None:
    """SCH-14."""
    found = parse(LEAST)
    assert (found.query, found.session_mode, found.session_id) == ("", SessionMode.FRESH, None)
    assert (found.overlap, found.catch_up, found.misfire_grace_seconds) == (
        Overlap.SKIP,
        CatchUp.LATEST,
        None,
    )
    assert found.timeout_seconds == 300
    assert (found.retry.max_attempts, found.retry.backoff_seconds, found.retry.backoff_max_seconds) == (
        1,
        10,
        600,
    )
    assert (found.failure_limit, found.on_lost, found.jitter_seconds) == (5, OnLost.FAIL, 0)
    assert (found.starts_at, found.ends_at, found.max_runs) == (None, None, None)
    assert (found.invoke_as, found.scopes, found.dedup_key) == (None, (), None)


def test_null_is_the_default() -> None:
    """SCH-14."""
    optional = [name for name in FIELDS if name not in LEAST]
    assert parse({**LEAST, **dict.fromkeys(optional)}) == parse(LEAST)


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [
        ("max_runs", 1, 1_000_000_000),
        ("misfire_grace_seconds", 1, 86_400),
        ("timeout_seconds", 1, 86_400),
        ("failure_limit", 1, 100),
        ("jitter_seconds", 0, 86_400),
        ("retry.max_attempts", 1, 10),
        ("retry.backoff_seconds", 0, 86_400),
        ("retry.backoff_max_seconds", 10, 86_400),
    ],
)
def test_numbers_hold_their_ranges_to_the_edge(field: str, low: int, high: int) -> None:
    """SCH-14."""
    outer, _, inner = field.partition(".")

    def with_value(value: Any) -> dict[str, Any]:
        return {**LEAST, outer: {inner: value} if inner else value}

    for value in (low, high):
        written = to_json(parse(with_value(value)))
        assert (written[outer][inner] if inner else written[outer]) == value
    wrong: list[Any] = [low - 1, high + 1, True, str(low), low + 0.5, [low], {}]
    for value in wrong:
        assert field in faults(with_value(value))


def test_every_fault_comes_at_once_and_at_its_field() -> None:
    """SCH-14, CAD-1, CAD-11."""
    found = faults(
        {
            "name": "x" * 201,
            "target": {"kind": "robot", "id": "no such!", "colour": 1},
            "cadence": {
                "unit": "week",
                "every": 53,
                "days": ["mon", "frd"],
                "zone": "Europe/Berln",
                "at": "25:00",
            },
            "query": "{{nope}} {{date}} {{ lastRun }}",
            "session_mode": "sticky",
            "session_id": "ses_1",
            "starts_at": "2026-12-02",
            "ends_at": "2026-12-01T00:00:00",
            "overlap": "queue",
            "catch_up": "all",
            "on_lost": "retry",
            "retry": {"attempts": 2},
            "invoke_as": "ana at example.org",
            "scopes": ["runs:read", "runs:eat"],
            "dedup_key": "brief-{{week}}",
            "revision": 3,
            "maxruns": 2,
        }
    )
    assert set(found) == {
        "name",
        "target.kind",
        "target.id",
        "target.colour",
        "cadence.every",
        "cadence.days.1",
        "cadence.zone",
        "cadence.at",
        "query",
        "session_mode",
        "session_id",
        "starts_at",
        "ends_at",
        "overlap",
        "catch_up",
        "on_lost",
        "retry.attempts",
        "invoke_as",
        "scopes.1",
        "dedup_key",
        "revision",
        "maxruns",
    }
    assert "Europe/Berlin" in found["cadence.zone"]
    assert "max_runs" in found["maxruns"]


def test_what_is_needed_is_said_to_be_missing() -> None:
    assert set(faults({})) == {"name", "target", "cadence"}
    nothings: list[Any] = [None, [], "x", 5]
    for nothing in nothings:
        assert set(faults(nothing)) == {""}


@pytest.mark.parametrize("name", READ_ONLY)
def test_what_the_centre_sets_can_not_be_written(name: str) -> None:
    assert set(faults({**LEAST, name: 1})) == {name}


def test_a_window_must_not_end_before_it_starts() -> None:
    """SCH-5: both ends are inclusive, so they may be one."""
    one = "2026-12-01T00:00:00Z"
    assert parse({**LEAST, "starts_at": one, "ends_at": one}).ends_at == datetime(2026, 12, 1, tzinfo=UTC)
    assert set(faults({**LEAST, "starts_at": one, "ends_at": "2026-11-30T23:59:59Z"})) == {"ends_at"}


def test_a_backoff_must_not_exceed_its_maximum() -> None:
    assert parse({**LEAST, "retry": {"backoff_seconds": 900}}).retry.backoff_max_seconds == 900
    wrong = {"backoff_seconds": 900, "backoff_max_seconds": 600}
    assert set(faults({**LEAST, "retry": wrong})) == {"retry.backoff_max_seconds"}


def test_a_session_goes_with_the_fixed_mode() -> None:
    """SCH-7."""
    assert parse({**LEAST, "session_mode": "fixed", "session_id": SESSION}).session_id == SESSION
    assert parse({**LEAST, "session_mode": "fixed"}).session_id is None
    assert set(faults({**LEAST, "session_id": SESSION})) == {"session_id"}


@pytest.mark.parametrize(
    "query", ["", "plain { } text", "{{now}} {{ date }} {{lastRunAt}} {{runCount}}", "}} {"]
)
def test_known_placeholders_and_plain_text_are_kept_untouched(query: str) -> None:
    """SCH-6."""
    assert parse({**LEAST, "query": query}).query == query


@pytest.mark.parametrize("address", ["ana@example.org", "a.b+c@mail.example.co.uk", "a@b"])
def test_addresses_that_are_some(address: str) -> None:
    """QTA-3."""
    assert parse({**LEAST, "invoke_as": address}).invoke_as == address


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ana",
        "@x.org",
        "a@",
        "a b@x.org",
        "a@x..org",
        "a@-",
        "a@x.org\n",
        "a@b@c",
        "ä@x.org",
        "a" * 250 + "@x.org",
    ],
)
def test_addresses_that_are_none(address: str) -> None:
    """QTA-3."""
    assert set(faults({**LEAST, "invoke_as": address})) == {"invoke_as"}


def test_an_edit_replaces_what_it_names() -> None:
    """SCH-12a: target and cadence whole, the retry policy field by field, null back to the default."""
    standing = parse({**LEAST, "max_runs": 5, "retry": {"max_attempts": 3, "backoff_seconds": 60}})
    found = edited(standing, {"retry": {"max_attempts": 4}, "max_runs": None, "query": "x"})
    assert (found.retry.max_attempts, found.retry.backoff_seconds, found.max_runs) == (4, 60, None)
    assert found.query == "x"
    moved = edited(standing, {"cadence": {"unit": "day", "at": "09:00"}})
    assert moved.cadence.to_json() == {"unit": "day", "every": 1, "at": ["09:00"], "zone": "UTC"}
    assert timing(found) != timing(standing) != timing(moved)
    assert timing(edited(standing, {"name": "other", "query": "y"})) == timing(standing)
    nothings: list[Any] = [[], None]
    for nothing in nothings:
        with pytest.raises(Invalid):
            revised(standing, nothing)


def test_a_wrong_field_hides_neither_the_others_nor_what_could_be_read() -> None:
    """SCH-4: the service adds what only it can see to the faults of the form."""
    standing = parse(LEAST)
    wrong: dict[str, Any] = {"name": None, "cadence": None, "colour": 1, "id": "sch_1", "query": "x"}
    draft = revised(standing, wrong)
    assert {fault.field for fault in draft.faults} == {"name", "cadence", "colour", "id"}
    assert draft.reads("query", "target")
    assert not draft.reads("query", "cadence")
    assert (draft.definition.query, draft.definition.target) == ("x", standing.target)


def test_an_edit_keeps_the_anchor_unless_it_names_one() -> None:
    """CAD-5."""
    anchored = {"unit": "day", "every": 3, "at": "09:00", "anchor": "2026-11-01T00:00:00Z"}
    standing = parse({**LEAST, "cadence": anchored})
    kept = edited(standing, {"cadence": {"unit": "day", "every": 3, "at": "10:00"}})
    assert kept.cadence.anchor == datetime(2026, 11, 1, tzinfo=UTC)
    moved = edited(standing, {"cadence": {**anchored, "anchor": "2026-11-02T00:00:00Z"}})
    assert moved.cadence.anchor == datetime(2026, 11, 2, tzinfo=UTC)


def test_turning_to_fresh_sessions_lets_the_fixed_one_go() -> None:
    """SCH-7."""
    standing = parse({**LEAST, "session_mode": "fixed", "session_id": SESSION})
    assert edited(standing, {"session_mode": "fresh"}).session_id is None
    assert edited(standing, {"query": "x"}).session_id == SESSION


INSTANTS = st.datetimes(datetime(1971, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
WRITTEN = st.fixed_dictionaries(
    {
        "name": st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=200),
        "target": st.fixed_dictionaries(
            {"kind": st.sampled_from(["agent", "team"]), "id": st.just("writer")}
        ),
        "cadence": st.one_of(dated, rolling, once),
    },
    optional={
        "query": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00{"), max_size=50),
        "session_mode": st.sampled_from(["fresh", "fixed"]),
        "starts_at": INSTANTS.map(datetime.isoformat),
        "max_runs": st.integers(1, 10**9) | st.none(),
        "overlap": st.sampled_from(list(Overlap)).map(str),
        "catch_up": st.sampled_from(list(CatchUp)).map(str),
        "misfire_grace_seconds": st.integers(1, 86_400),
        "timeout_seconds": st.integers(1, 86_400),
        "retry": st.fixed_dictionaries(
            {}, optional={"max_attempts": st.integers(1, 10), "backoff_seconds": st.integers(0, 86_400)}
        ),
        "failure_limit": st.integers(1, 100),
        "on_lost": st.sampled_from(list(OnLost)).map(str),
        "jitter_seconds": st.integers(0, 86_400),
        "scopes": st.lists(st.sampled_from(["runs:read", "schedules:run", "*"])),
        "dedup_key": st.just("brief-{{date}}"),
    },
)


@settings(max_examples=150)
@given(WRITTEN)
def test_the_canonical_form_reads_back_as_the_same_definition(written: dict[str, Any]) -> None:
    """SCH-12a: so saving what was read changes nothing."""
    found = parse(written)
    again = parse(json.loads(canonical(found)))
    assert again == found
    assert canonical(again) == canonical(found)
    assert edited(found, to_json(found)) == found
    assert edited(found, {}) == found
    assert set(to_json(found)) == set(FIELDS)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from([*FIELDS, "colour"]), json_values) | json_values)
def test_no_json_whatever_is_anything_but_read_or_refused(given: Any) -> None:
    """OPS-8: bad input is told, it breaks nothing."""
    found = outcome({**LEAST, **given} if isinstance(given, dict) else given)
    if isinstance(found, Invalid):
        assert found.faults
        json.dumps([(fault.field, fault.message) for fault in found.faults]).encode()
    else:
        canonical(found).encode()
