"""Hypothesis strategies for rules: valid ones of every form, their instants, and JSON that is anything at all."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from gnomon.cadence import EVERY_RANGES, Cadence, CadenceError, zone_names
from gnomon.cadence.civil import zone_named

Rule = dict[str, Any]
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
EDGY = [
    "UTC", "Europe/Berlin", "America/New_York", "America/Nuuk", "Australia/Lord_Howe", "Pacific/Apia",
    "Pacific/Kwajalein", "Africa/Casablanca", "Europe/Dublin", "America/Santiago", "Asia/Gaza", "Antarctica/Troll",
    "Asia/Kathmandu", "America/Sao_Paulo", "Asia/Tehran", "Pacific/Chatham",
]  # fmt: skip

zones = st.sampled_from(EDGY) | st.sampled_from(sorted(zone_names()))
clocks = st.one_of(
    st.sampled_from(["00:00", "00:30", "01:30", "02:00", "02:30", "03:00", "23:30", "23:59:59"]),
    st.times().map(lambda time: time.replace(microsecond=0).isoformat()),
)
times = st.lists(clocks, min_size=1, max_size=4)


def every(unit: str) -> st.SearchStrategy[int]:
    low, high = EVERY_RANGES[unit]
    return st.integers(low, min(high, low + 2)) | st.integers(low, high)


def _dated(unit: str, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[Rule]:
    return st.fixed_dictionaries(
        {"unit": st.just(unit), "every": every(unit), "at": times, "zone": zones, **more}
    )


dated = st.one_of(
    _dated("day"),
    _dated("week", days=st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=4)),
    _dated("month", day=st.integers(1, 31), short_month=st.sampled_from(["clamp", "skip"])),
    _dated("month", day=st.just("last")),
    _dated("month", weekday=st.sampled_from(WEEKDAYS), nth=st.sampled_from([1, 2, 3, 4, 5, -1])),
)
rolling = st.sampled_from(["minute", "hour"]).flatmap(
    lambda unit: st.fixed_dictionaries({"unit": st.just(unit), "every": every(unit), "zone": zones})
)
once = st.fixed_dictionaries(
    {
        "unit": st.just("once"),
        "at": st.datetimes().map(lambda wall: wall.replace(microsecond=0).isoformat()),
        "zone": zones,
    }
)

_minutes = st.sampled_from(["0", "30", "5,35", "*/15", "59", "7-50/11", "0,20,40"])
_hours = st.sampled_from(["*", "0", "2", "1-3", "*/6", "9,17", "23", "0,23"])
_days = st.sampled_from(["*", "1", "13", "29", "31", "1-7", "*/10", "L", "LW", "15,L"])
_cron_months = st.sampled_from(["*", "*", "2", "1-6", "FEB,NOV", "*/5"])
_cron_weekdays = st.sampled_from(["*", "*", "1-5", "0", "SUN,TUE", "FRI#2", "5L", "MON#5", "*/2", "7"])
cron_texts = st.tuples(_minutes, _hours, _days, _cron_months, _cron_weekdays).map(" ".join)
_rrule_texts = st.sampled_from(
    [
        "FREQ=DAILY", "FREQ=DAILY;INTERVAL=3", "FREQ=DAILY;BYMONTH=2,3;BYDAY=MO,SU", "FREQ=WEEKLY;INTERVAL=3;BYDAY=TU,SU",
        "FREQ=MONTHLY;BYDAY=-1FR,2MO", "FREQ=MONTHLY;INTERVAL=7;BYMONTHDAY=-1,31", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "FREQ=YEARLY;INTERVAL=10;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;INTERVAL=2;BYMONTH=3;BYMONTHDAY=1",
    ]
)  # fmt: skip


def _accepted(rule: Rule) -> bool:
    try:
        Cadence.parse(rule)
    except CadenceError:
        return False
    return True


imported = (
    st.fixed_dictionaries({"cron": cron_texts, "zone": zones})
    | st.fixed_dictionaries({"rrule": _rrule_texts, "at": clocks.map(lambda clock: [clock]), "zone": zones})
).filter(_accepted)


@st.composite
def left_out(draw: st.DrawFn, rules: st.SearchStrategy[Rule]) -> Rule:
    rule = draw(rules)
    if draw(st.booleans()):
        rule["exclude"] = draw(st.lists(st.dates().map(lambda day: day.isoformat()), max_size=3))
    return rule


@st.composite
def edges(draw: st.DrawFn, zone: str, first: int = 1970, last: int = 2040) -> datetime:
    """An instant on or near a change of the zone's offset, or anywhere if it has none."""
    start = int(datetime(draw(st.integers(first, last)), 1, 1, tzinfo=UTC).timestamp())
    windows = list(zone_named(zone).windows(start, start + 366 * 86_400))
    edge = draw(st.sampled_from(windows)).end
    near = draw(
        st.integers(-3 * 3600, 3 * 3600) | st.integers(-(3 * 86_400), 3 * 86_400) | st.integers(-1, 1)
    )
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=edge + near)


anywhen = st.datetimes(timezones=st.just(UTC))

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, -1, 10**400, -(10**400)])
    | st.floats()
    | st.text()
    | st.sampled_from(
        ["\ud800", "09:00", "UTC", "last", "mon", "0000-01-01", "10000-01-01T00:00:00Z", "0 9 * * *"]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
