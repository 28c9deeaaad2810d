"""Tables of the guide that can be computed are computed: clock changes, short months, what a slot becomes, metrics."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

import pytest
from prometheus_client import CollectorRegistry

from gnomon.adapters.metrics import BoardCollector, ConnectionCollector, ProcessCollector, TriggerCollector
from gnomon.cadence import Cadence, between, preview
from gnomon.domain import dedup, finding
from gnomon.domain.instants import SECOND, rfc3339
from gnomon.domain.misfire import Due, Start, decide
from gnomon.domain.placeholders import NAMES
from gnomon.domain.schedule import CatchUp, Overlap, ScheduleStatus
from gnomon.edges.http.exchange import HttpFigures
from gnomon.ports.telemetry import Counts, TriggerCounts
from support.pages import page


def rows(name: str, first: str) -> list[list[str]]:
    """The rows of the table of a page whose head begins with ``first``."""
    lines = iter(page(name).prose().splitlines())
    for line in lines:
        if line.startswith(f"| {first} |"):
            next(lines)
            return list(_cells(lines))
    raise AssertionError(f"no table {first} in {name}")


def _cells(lines: Iterator[str]) -> Iterator[list[str]]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" |")]


@pytest.mark.parametrize("row", rows("docs/guide/cadences.md", "zone"), ids=lambda row: f"{row[0]} {row[1]}")
def test_clock_changes_are_as_told(row: list[str]) -> None:
    """CAD-4."""
    zone, at, on, local, utc, note = row
    rule = Cadence.parse({"unit": "day", "at": at, "zone": zone})
    meant = datetime.combine(date.fromisoformat(on), time.fromisoformat(at))
    slots = preview(rule, meant.replace(tzinfo=UTC) - timedelta(days=3), 8)
    if local == "no slot":
        assert all(not slot.local_time.startswith(on) for slot in slots)
        return
    found = next(slot for slot in slots if slot.local_time == local)
    assert rfc3339(found.at) == utc
    assert (found.note or "").partition(":")[0] == note


def test_short_months_are_as_told() -> None:
    """CAD-6."""
    for written, *days in rows("docs/guide/cadences.md", "written"):
        fields = re.findall(r'"(\w+)": ("?\w+"?)', written)
        given = {name: int(value) if value.isdigit() else value.strip('"') for name, value in fields}
        rule = Cadence.parse({"unit": "month", "at": "09:00", **given})
        for month, told in zip((1, 2, 4), days, strict=True):
            found = list(
                between(rule, datetime(2026, month, 1, tzinfo=UTC), datetime(2026, month + 1, 1, tzinfo=UTC))
            )
            assert [f"{slot.day}{'st' if slot.day == 31 else 'th'}" for slot in found] == (
                [] if told == "no slot" else [told]
            )


class _Hourly:
    """A slot at 0 and one each hour."""

    def next_after(self, micros: int, /) -> int | None:
        return (micros // (3_600 * SECOND) + 1) * 3_600 * SECOND

    def latest_at(self, micros: int, /) -> int | None:
        return micros // (3_600 * SECOND) * 3_600 * SECOND

    def count_between(self, start: int, end: int, /) -> tuple[int, int, int] | None:
        raise AssertionError(f"nothing is coalesced here: {start} to {end}")


@pytest.mark.parametrize("row", rows("docs/guide/schedules.md", "catch_up"), ids=" ".join)
def test_a_slot_becomes_what_is_told(row: list[str]) -> None:
    """DSP-7, DSP-8."""
    catch_up, grace, late, unfinished, overlap, becomes = row
    decision = decide(
        Due(
            walk=_Hourly(),
            next_fire_at=0,
            now=int(late.removesuffix(" s")) * SECOND,
            starts_at=None,
            ends_at=None,
            runs_left=None,
            in_flight=unfinished != "no",
            waiting="waits" in unfinished,
            recorded_until=None,
            overlap=Overlap(overlap),
            catch_up=CatchUp(catch_up),
            misfire_grace_seconds=int(grace.removesuffix(" s")),
        )
    )
    assert decision.slot is not None
    ways = {Start.AT_ONCE: "", Start.AFTER_RUNNING: ", waits for the run"}
    ways[Start.CANCEL_RUNNING] = ", cancels the run and waits"
    reason = f", {decision.slot.reason}" if decision.slot.disposition == "skipped" else ""
    assert f"{decision.slot.disposition}{reason}{ways[decision.slot.start]}" == becomes


def test_every_status_of_a_schedule_is_told() -> None:
    told = {row[0].strip("`") for row in rows("docs/guide/schedules.md", "status")}
    assert told == set(ScheduleStatus)


def test_every_placeholder_is_told() -> None:
    told = [row[0] for row in rows("docs/guide/schedules.md", "in `query`")]
    assert told == [f"`{{{{{name}}}}}`" for name in NAMES]


def test_every_name_of_a_dedup_key_is_told_with_what_it_becomes() -> None:
    """IDM-1."""
    told = rows("docs/guide/idempotency.md", "in `dedup_key`")
    names = [name.strip("`{}") for cells, _ in told for name in cells.split(", ")]
    assert names == list(dedup.known(dedup.Loop.SCHEDULE))
    for cells, becomes in told[: len(dedup.SLOT_NAMES)]:
        key = dedup.render(cells.strip("`"), datetime(2026, 11, 29, 8, tzinfo=UTC), "Europe/Berlin")
        assert becomes.startswith(f"`{key}`, ")


def test_every_finding_of_a_doctor_is_told() -> None:
    """IDM-4."""
    told = rows("docs/guide/idempotency.md", "finding")
    assert told == [[f"`{kind.value}`", said] for kind, said in finding.TOLD.items()]


def test_every_metric_is_told() -> None:
    """OPS-6."""
    registry = CollectorRegistry()
    HttpFigures(registry)
    counts = Counts(slots={("fired", ""): 1}, runs={"lost": 1}, in_work=0, lag_us=0, ticked_at_us=1)
    registry.register(ProcessCollector(lambda: counts))
    registry.register(BoardCollector(lambda: {"pm": 3}))
    registry.register(ConnectionCollector(lambda: 1))
    registry.register(TriggerCollector(lambda: TriggerCounts({"given": 1}, {"first": 1}, {"failed": 1})))
    given = {metric.name + ("_total" if metric.type == "counter" else "") for metric in registry.collect()}
    assert {row[0].strip("`") for row in rows("docs/guide/running.md", "name")} == given
