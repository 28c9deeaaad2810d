"""Query templates, resolved against the slot in one pass (SCH-6)."""

from datetime import UTC, datetime

import pytest

from gnomon.domain.placeholders import NAMES, SlotFacts, resolve, unknown, uses_slot

FACTS = SlotFacts(
    nominal_fire_at=datetime(2026, 3, 29, 22, 30, tzinfo=UTC),
    local_date="2026-03-30",
    last_run_at=datetime(2026, 3, 28, 22, 30, 0, 5, tzinfo=UTC),
    run_count=41,
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("{{now}}", "2026-03-29T22:30:00Z"),
        ("{{date}}", "2026-03-30"),
        ("{{lastRunAt}}", "2026-03-28T22:30:00.000005Z"),
        ("{{runCount}}", "41"),
        ("{{ now }}|{{\tdate\n}}", "2026-03-29T22:30:00Z|2026-03-30"),
        ("{{date}}{{date}}", "2026-03-302026-03-30"),
        ("a {{runCount}} b {{date}} c", "a 41 b 2026-03-30 c"),
        ("{{{date}}}", "{{{date}}}"),
        ("{{unheard}} {{date}}", "{{unheard}} 2026-03-30"),
        ("{{date", "{{date"),
        ("date}}", "date}}"),
        ("{{}}", "{{}}"),
        ("{{Date}}", "{{Date}}"),
    ],
)
def test_what_becomes_of_a_query(query: str, expected: str) -> None:
    """SCH-6: the slot in full, the slot's local date, the run before, how many so far."""
    assert resolve(query, FACTS) == expected


def test_before_the_first_run_there_is_no_last_one() -> None:
    """SCH-6."""
    facts = SlotFacts(FACTS.nominal_fire_at, FACTS.local_date, None, 0)
    assert resolve("[{{lastRunAt}}] {{runCount}}", facts) == "[] 0"


def test_a_query_without_a_placeholder_is_the_very_same_object() -> None:
    """SCH-6: untouched, unscanned beyond one containment test."""
    query = "Summarise {the} day: 100 % }} of it"
    assert resolve(query, FACTS) is query
    assert not uses_slot(query)
    assert unknown(query) == []


def test_what_was_put_in_is_never_expanded_again() -> None:
    """SCH-6, casebook tpl-03."""
    facts = SlotFacts(FACTS.nominal_fire_at, "{{runCount}}", FACTS.last_run_at, FACTS.run_count)
    assert resolve("{{date}}", facts) == "{{runCount}}"


def test_unknown_placeholders_are_named_in_order_each_once() -> None:
    """SCH-6: refused at save."""
    assert unknown("{{foo}} {{now}} {{ bar }} {{foo}} {{}}") == ["foo", "bar", ""]
    assert uses_slot("{{foo}}")


def test_every_known_name_is_known_and_resolved() -> None:
    """SCH-6."""
    query = " ".join(f"{{{{{name}}}}}" for name in NAMES)
    assert unknown(query) == []
    assert "{{" not in resolve(query, FACTS)
