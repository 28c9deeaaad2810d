"""Dedup keys: templates over the slot, refused at save where they could name nothing (IDM-1)."""

from datetime import UTC, datetime

import pytest

from gnomon.domain.dedup import (
    DEFAULT,
    MOST_CHARACTERS,
    Loop,
    check,
    known,
    names_slot,
    of_node,
    of_run,
    of_schedule,
    render,
)

AT = datetime(2027, 1, 3, 23, 30, tzinfo=UTC)  # a Sunday in UTC, Monday of the next ISO week in Berlin
PAYLOAD = {
    "repo": "core",
    "release": {"tag": "v1.2", "parts": ["a", "b"]},
    "n": 3,
    "dry": False,
    "nothing": None,
}


def messages(template: str, loop: Loop = Loop.JOB, payload: object = PAYLOAD) -> str:
    return "\n".join(fault.message for fault in check(template, loop, payload))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("brief-{{date}}", "brief-2027-01-04"),
        ("{{now}}", "2027-01-03T23:30:00Z"),
        ("{{iso_week}}", "2027-W01"),
        ("{{year}} {{month}}", "2027 2027-01"),
        ("{{hour}}", "2027-01-04T00+01:00"),
        ("{{ date }}/{{\tdate }}", "2027-01-04/2027-01-04"),
        ("{{payload.repo}}@{{payload.release.tag}}", "core@v1.2"),
        ("{{payload.release.parts.1}}{{payload.n}}{{payload.dry}}", "b3false"),
        ("digest/{{job}}", "digest/pm"),
        ("v1.2.0", "v1.2.0"),
    ],
)
def test_what_becomes_of_a_template(template: str, expected: str) -> None:
    """IDM-1: the slot in the loop's zone, the loop itself, the fields of its payload, or a constant label."""
    assert check(template, Loop.JOB, PAYLOAD) == []
    assert render(template, AT, "Europe/Berlin", PAYLOAD, {"job": "pm"}) == expected


def test_the_iso_week_is_the_slot_s_local_one() -> None:
    """IDM-1: one instant, two weeks of two years."""
    at = datetime(2027, 1, 3, 23, 30, tzinfo=UTC)
    assert render("{{iso_week}}", at, "UTC") == "2026-W53"
    assert render("{{iso_week}}", at, "Europe/Berlin") == "2027-W01"


def test_an_hour_that_comes_twice_is_two_hours() -> None:
    """IDM-1: the clock goes back, and no slot takes the key of another."""
    first, second = (datetime(2026, 10, 25, hour, 15, tzinfo=UTC) for hour in (0, 1))
    keys = [render("{{hour}}", at, "Europe/Berlin") for at in (first, second)]
    assert keys == ["2026-10-25T02+02:00", "2026-10-25T02+01:00"]


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{week}}", "did you mean {{iso_week}}?"),
        ("{{dat}}", "did you mean {{date}}?"),
        ("{{}}", "unknown placeholder {{}}"),
        ("{{Date}}", "unknown placeholder {{Date}}"),
        ("{{date", "braces that don't belong together"),
        ("date}}", "braces that don't belong together"),
        ("{{date}}}}", "braces that don't belong together"),
        ("{{{date}}}", "unknown placeholder {{{date}}"),
        ("{{payload.branch}}", "{{payload.branch}} is no field of the payload"),
        ("{{payload.release}}", "must be text, a number or true/false"),
        ("{{payload.nothing}}", "must be text, a number or true/false"),
        ("{{payload.release.parts.2}}", "is no field of the payload"),
        ("{{payload}}", "and fields of the payload, as {{payload.field}}"),
        ("{{schedule_id}}", "unknown placeholder {{schedule_id}}"),
        ("x" * (MOST_CHARACTERS + 1), "a key has at most 200"),
        ("{{now}}" + "x" * 180, "could come out with 207 characters"),
        ("a\nb", "one line without control characters"),
        ("\ud800", "half characters"),
        ("  ", "must not be blank"),
    ],
)
def test_what_could_name_nothing_is_refused_with_the_way_out(template: str, says: str) -> None:
    """IDM-1, casebook tpl: at save, not at the first slot."""
    assert says in messages(template)
    assert all(fault.field == "dedup_key" for fault in check(template))


def test_every_fault_is_told_at_once_and_each_once() -> None:
    found = check("{{week}} {{day}} {{week}} {{", Loop.SCHEDULE, field="key")
    assert [fault.field for fault in found] == ["key"] * 3
    assert "{{week}}" in found[0].message
    assert "{{day}}" in found[1].message


def test_a_payload_field_is_checked_for_what_it_holds() -> None:
    """IDM-1: one field of the payload spoils no key."""
    assert "without control characters" in messages("{{payload.a}}", payload={"a": "x\ny"})
    assert "is empty in the payload" in messages("k-{{payload.a}}", payload={"a": " "})
    assert "at most 200" in messages("{{payload.a}}", payload={"a": "x" * 201})
    assert "is no field" in messages("{{payload.a}}", payload=None)


def test_a_schedule_has_no_payload_and_a_job_no_run_count() -> None:
    """IDM-1: what the loop doesn't have, its key can't name."""
    assert "unknown placeholder {{payload.repo}}" in messages("{{payload.repo}}", Loop.SCHEDULE)
    assert "payload" not in messages("{{week}}", Loop.SCHEDULE)
    assert "unknown placeholder {{runCount}}" in messages("{{runCount}}", Loop.JOB)
    for loop in Loop:
        assert check(" ".join(f"{{{{{name}}}}}" for name in known(loop)), loop) == []


def test_what_was_put_in_is_never_expanded_again() -> None:
    """IDM-1, SCH-6, casebook tpl-03."""
    payload = {"a": "{{date}}", "b": "{{payload.a}}"}
    assert check("{{payload.a}} {{payload.b}}", Loop.JOB, payload) == []
    assert render("{{payload.a}} {{payload.b}}", AT, "UTC", payload) == "{{date}} {{payload.a}}"


def test_a_schedule_without_a_key_has_its_slot_for_one() -> None:
    """IDM-1, IDM-3: no run of a schedule is without a key, and no two slots share one."""
    assert check(DEFAULT, Loop.SCHEDULE) == []
    own = of_schedule("sch_1", None, 0)
    assert of_run(None, "sch_1", AT) == render(DEFAULT, AT, "Asia/Kolkata", own=own)
    assert of_run(None, "sch_1", AT) == "sch_1/2027-01-03T23:30:00Z"


def test_a_run_keeps_its_own_key_and_one_without_a_slot_has_none_made_up() -> None:
    """IDM-3."""
    assert of_run("k", "sch_1", AT) == "k"
    assert of_run(None, "sch_1", None) is None
    assert of_run(None, None, AT) is None
    assert (of_node("k", "a"), of_node(None, "a")) == ("k/a", None)


def test_a_label_is_told_from_a_template_over_the_slot() -> None:
    """IDM-4: doctor lists the repeating loop whose key never changes."""
    assert names_slot("{{ iso_week }}")
    assert not names_slot("v1.2.0")
    assert not names_slot("{{job}}-{{payload.repo}}")
    assert not names_slot("{{runCount}}")
