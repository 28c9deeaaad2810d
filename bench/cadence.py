"""What a slot costs: beside cronsim, and beside the plain closed form over zoneinfo as the limit.

Run it with `python bench/cadence.py`. Each figure is one JSON line. All contenders take turns in every round, and a
ratio is taken inside its round, so that a busy machine hits all of them alike; the median of five rounds is printed.
"""

import calendar
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from importlib import resources
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim

from gnomon.cadence import Cadence, between, next_after, preview
from gnomon.cadence import rule as rules

ROUNDS = 5
MANY = 1_000
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 29, 12, tzinfo=BERLIN)
CREATED = datetime(2025, 11, 29, 12, tzinfo=BERLIN)
DAY = timedelta(days=1)
END = datetime(9999, 1, 1, tzinfo=UTC)
Work = Callable[[], int]
forget_texts = rules._stored_text.cache_clear
forget_compiled = rules._compiled.cache_clear


def micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000


ASKED = micros(NOW)


@dataclass(frozen=True, slots=True)
class Case:
    """One cadence in the three languages: ours, cron's, and a step from one instant to the next by hand."""

    rule: dict[str, Any]
    cron: str
    step: Callable[[float], float]


def by_hand(days_ahead: Callable[[datetime], Iterator[int]]) -> Callable[[float], float]:
    """The least that zoneinfo allows: one local date, one `datetime` for each candidate, one timestamp."""

    def step(instant: float) -> float:
        local = datetime.fromtimestamp(instant, BERLIN)
        for ahead in days_ahead(local):
            day = local.date() + timedelta(ahead)
            found = datetime(day.year, day.month, day.day, 9, tzinfo=BERLIN).timestamp()
            if found > instant:
                return found
        raise AssertionError

    return step


def monday_or_wednesday(local: datetime) -> Iterator[int]:
    return (ahead for ahead in range(8) if (local.weekday() + ahead) % 7 in (0, 2))


def every_third(local: datetime) -> Iterator[int]:
    ahead = (CREATED.toordinal() - local.toordinal()) % 3
    return iter((ahead, ahead + 3))


def last_of_month(local: datetime) -> Iterator[int]:
    length = calendar.monthrange(local.year, local.month)[1]
    following = calendar.monthrange(local.year + local.month // 12, local.month % 12 + 1)[1]
    return iter((length - local.day, length - local.day + following))


NINE = {"at": "09:00", "zone": "Europe/Berlin"}
CASES = {
    "daily 09:00": Case({"unit": "day", **NINE}, "0 9 * * *", by_hand(lambda _: iter((0, 1)))),
    "mon and wed 09:00": Case(
        {"unit": "week", "days": ["mon", "wed"], **NINE}, "0 9 * * 1,3", by_hand(monday_or_wednesday)
    ),
    "every 15 minutes": Case(
        {"unit": "minute", "every": 15, "zone": "Europe/Berlin"},
        "*/15 * * * *",
        lambda instant: instant + 900,
    ),
    "monthly 31, clamp": Case({"unit": "month", "day": 31, **NINE}, "0 9 L * *", by_hand(last_of_month)),
    # cron starts anew each month, so its answer is another one: timed, not compared.
    "every 3 days 09:00": Case({"unit": "day", "every": 3, **NINE}, "0 9 */3 * *", by_hand(every_third)),
}
NEVER: dict[str, dict[str, Any]] = {
    "30 February": {"unit": "month", "every": 12, "day": 30, "short_month": "skip", "anchor": "2026-02-01T00:00:00Z"},
    "29 February of odd years": {
        "unit": "month", "every": 24, "day": 29, "short_month": "skip", "anchor": "2025-02-01T00:00:00Z",
    },
    "all days left out": {"unit": "day"},
    "a pattern that no month fits": {"rrule": "FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=2MO"},
}  # fmt: skip


def emit(figure: str, case: str, **numbers: Any) -> None:
    line: dict[str, Any] = {"figure": figure, "case": case}
    line |= {name: round(value, 4) if isinstance(value, float) else value for name, value in numbers.items()}
    print(json.dumps(line), flush=True)


def timed(work: Work) -> float:
    """Microseconds for each of the units of work that `work` says it did."""
    start = perf_counter()
    done = work()
    return (perf_counter() - start) / done * 1e6


def compare(figure: str, case: str, bar: float, goal: float, contenders: dict[str, Work]) -> None:
    """Take turns for five rounds; `ours` against `cronsim`, and against `zoneinfo` where it stands beside."""
    took: dict[str, list[float]] = {name: [] for name in contenders}
    for work in contenders.values():
        work()
    for _ in range(ROUNDS):
        for name, work in contenders.items():
            took[name].append(timed(work))
    ratios = {
        name: median(ours / theirs for ours, theirs in zip(took["ours"], took[name], strict=True))
        for name in contenders
        if name != "ours"
    }
    more = {"zoneinfo_us": median(took["zoneinfo"]), "ratio_zoneinfo": ratios["zoneinfo"]}
    emit(
        figure,
        case,
        ours_us=median(took["ours"]),
        cronsim_us=median(took["cronsim"]),
        ratio=ratios["cronsim"],
        **more,
        bar=bar,
        goal=goal,
    )


def first_slot() -> None:
    """P1: from the stored text of a rule to its next slot."""
    asked, anchor, many = micros(NOW), micros(CREATED), 200
    for name, case in CASES.items():
        text = json.dumps(Cadence.parse(case.rule).to_json())
        # No two texts and no two anchors are the same, so that nothing is found in a cache.
        texts = [text + " " * number for number in range(many)]

        def nothing_kept(texts: list[str] = texts) -> int:
            forget_texts()
            forget_compiled()
            for number, text in enumerate(texts):
                Cadence.from_stored(text).compile(anchor + number).next_after(asked)
            return many

        def text_kept(text: str = text) -> int:
            forget_compiled()
            for number in range(many):
                Cadence.from_stored(text).compile(anchor + number).next_after(asked)
            return many

        def all_kept(text: str = text) -> int:
            for _ in range(many):
                Cadence.from_stored(text).compile(anchor).next_after(asked)
            return many

        def cronsim(cron: str = case.cron) -> int:
            for _ in range(many):
                next(CronSim(cron, NOW))
            return many

        def closed(step: Callable[[float], float] = case.step) -> int:
            for _ in range(many):
                step(NOW.timestamp())
            return many

        beside: dict[str, Work] = {"cronsim": cronsim, "zoneinfo": closed}
        compare("P1", f"{name}, nothing kept", 0.4, 0.15, {"ours": nothing_kept, **beside})
        compare("P1", f"{name}, text seen before", 0.4, 0.15, {"ours": text_kept, **beside})
        compare("P1", f"{name}, compiled before", 0.4, 0.15, {"ours": all_kept, **beside})


def long_preview() -> None:
    """P2: each of the next thousand slots; as the page shows them, as datetimes, as integers."""
    for name, case in CASES.items():
        rule = Cadence.parse(case.rule)

        def shown(rule: Cadence = rule) -> int:
            return len(preview(rule, NOW, MANY, anchor=CREATED))

        def walked(rule: Cadence = rule) -> int:
            return sum(1 for _ in islice(between(rule, NOW, END, anchor=CREATED), MANY))

        def counted(rule: Cadence = rule) -> int:
            compiled, found = rule.compile(micros(CREATED)), micros(NOW)
            for _ in range(MANY):
                found = compiled.next_after(found) or 0
            return MANY

        def cronsim(cron: str = case.cron) -> int:
            return sum(1 for _ in islice(CronSim(cron, NOW), MANY))

        def closed(step: Callable[[float], float] = case.step) -> int:
            instant = NOW.timestamp()
            for _ in range(MANY):
                instant = step(instant)
            return MANY

        beside: dict[str, Work] = {"cronsim": cronsim, "zoneinfo": closed}
        compare("P2", f"{name}, preview", 0.2, 0.2, {"ours": shown, **beside})
        compare("P2", f"{name}, datetimes", 0.2, 0.2, {"ours": walked, **beside})
        compare("P2", f"{name}, integers", 0.2, 0.2, {"ours": counted, **beside})


def age() -> None:
    """P3: ten years old or a day old, a schedule costs the same."""
    for name, case in CASES.items():
        rule = Cadence.parse(case.rule)

        def trial(days: int, rule: Cadence = rule) -> Work:
            def work() -> int:
                forget_compiled()
                for number in range(500):
                    rule.compile(ASKED - days * 86_400_000_000 + number).next_after(ASKED)
                return 500

            return work

        young, old, ratios = trial(1), trial(3652), []
        young(), old()
        pairs = [(timed(young), timed(old)) for _ in range(ROUNDS * 3)]
        ratios = [late / early for early, late in pairs]
        emit(
            "P3",
            name,
            day_us=median(early for early, _ in pairs),
            decade_us=median(late for _, late in pairs),
            ratio=median(ratios),
            bar=1.5,
            goal=1.1,
        )


def never() -> None:
    """P4: a rule without a slot says so; nothing kept from an earlier question."""
    for name, given in NEVER.items():
        rule = Cadence.parse({"at": "09:00", **given})
        left_out = (
            frozenset((NOW + DAY * k).date() for k in range(-1, 500))
            if name == "all days left out"
            else frozenset()
        )
        compiled = rule.compile(micros(NOW), left_out)
        assert compiled.next_after(micros(NOW)) is None

        def work(compiled: Any = compiled) -> int:
            for _ in range(50):
                compiled.next_after(micros(NOW))
            return 50

        emit("P4", name, ours_us=median(timed(work) for _ in range(ROUNDS)), bar=1000, goal=150)


def reading(zone: ZoneInfo, wall: datetime) -> datetime:
    """The civil rule by PEP 495: the earlier valid reading, or the first instant after the gap."""
    early, late = sorted(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    for found in (early, late):
        if found.astimezone(zone).replace(tzinfo=None) == wall:
            return found
    while late - early > timedelta(seconds=1):
        middle = early + (late - early) // 2
        moved = middle.astimezone(zone).replace(tzinfo=None) > wall
        early, late = (early, middle) if moved else (middle, late)
    return late.replace(microsecond=0)


def edges() -> None:
    """P5: how many of eleven years of slots differ from the civil rule, edges of the clock included."""
    for name in (
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "America/Nuuk",
        "Africa/Casablanca",
    ):
        rule = Cadence.parse({"unit": "day", "at": ["01:30", "02:30", "23:30"], "zone": name})
        with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            zone = ZoneInfo.from_file(file, key=name)  # the same data, whatever the system has
        start, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2035, 1, 1, tzinfo=UTC)
        dates = [(start + DAY * k).date() for k in range(-2, 4020)]
        clocks = [time(1, 30), time(2, 30), time(23, 30)]
        walls = (datetime.combine(day, clock) for day in dates for clock in clocks)
        expected = sorted(
            {found for found in (reading(zone, wall) for wall in walls) if start <= found < end}
        )
        found = list(between(rule, start, end))
        different = len(set(found) ^ set(expected))
        emit("P5", name, slots=len(expected), different=different, bar=0, goal=0)


def main() -> int:
    """Print every figure of the cadence core."""
    assert next_after(Cadence.parse(CASES["daily 09:00"].rule), NOW) is not None
    for figure in (first_slot, long_preview, age, never, edges):
        figure()
    return 0


if __name__ == "__main__":
    sys.exit(main())
