"""Reading back a stored rule: trusted for speed, and still nothing but a `CadenceError` when it has gone bad."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gnomon.cadence import Cadence, CadenceError, next_after
from gnomon.cadence.civil import zone_named

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
STORED: dict[str, Any] = {"unit": "day", "every": 1, "at": ["09:00"], "zone": "UTC"}


@pytest.mark.parametrize(
    "stored",
    ["", "nonsense", "null", "5", "[]", '{"unit": "day"', '{"unit": "day"} x', "[" * 100_000, "{}", '"day"',
     '{"unit": "fortnight", "every": 1, "at": ["09:00"], "zone": "UTC"}', '{"unit": "day", "every": 0, "zone": "UTC"}',
     '{"cron": "nonsense"}', None, 5, [1], {**STORED, "every": True}, {**STORED, "exclude": 5},
     {**STORED, "short_month": "wrap"}, {**STORED, "at": 900}],
)  # fmt: skip
def test_what_was_never_stored_is_refused(stored: Any) -> None:
    with pytest.raises(CadenceError):
        Cadence.from_stored(stored)


@pytest.mark.parametrize(
    "broken",
    [{"at": []}, {"at": [900]}, {"at": ["nine"]}, {"zone": "Gone/Away"}, {"zone": ["UTC"]}, {"day": ["x"]}],
)
def test_what_went_bad_unseen_is_refused_when_compiled(broken: dict[str, Any]) -> None:
    rule = Cadence.from_stored({**STORED, **broken})
    with pytest.raises(CadenceError):
        rule.compile()


def test_cron_that_no_longer_reads_is_refused_when_compiled() -> None:
    with pytest.raises(CadenceError) as caught:
        Cadence(Cadence.parse({"cron": "0 9 * * *"}).unit, text="* * * * *").compile()
    assert caught.value.faults[0].field == "cron"


def test_a_text_is_read_once_and_spaces_do_not_matter() -> None:
    text = '{"unit": "day", "every": 1, "at": ["07:07"], "zone": "Asia/Tokyo"}'
    assert Cadence.from_stored(text) is Cadence.from_stored(text)
    assert Cadence.from_stored(f"\n {text} ") == Cadence.from_stored(text)
    assert next_after(Cadence.from_stored(text), NOW) == datetime(2026, 11, 29, 22, 7, tzinfo=UTC)


def test_compiled_rules_are_kept_for_each_anchor_and_holidays() -> None:
    rule = Cadence.parse(STORED)
    assert rule.compile(0) is rule.compile(0)
    assert rule.compile(0) is not rule.compile(60_000_000)
    assert rule.compile(0, {NOW.date()}) is not rule.compile(0)
    assert rule.compile(0).zone is zone_named("UTC")


def test_records_are_values() -> None:
    assert len({Cadence.parse(STORED), Cadence.parse(dict(STORED)), Cadence.from_stored(STORED)}) == 1
    with pytest.raises(AttributeError):
        Cadence.parse(STORED).every = 2  # type: ignore[misc]
