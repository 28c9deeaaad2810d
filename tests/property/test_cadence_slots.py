"""Slots of any rule near any edge: against the plain oracle, and against themselves."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.cadence import Cadence, SlotRange, between, count_between, is_slot, latest_at, next_after, preview
from support import cadence_oracle as oracle
from support.cadence_rules import anywhen, dated, edges, imported, left_out, once, rolling

ANY_RULE = st.one_of(left_out(dated), left_out(imported), left_out(once), rolling)
TICK = timedelta(microseconds=1)
REACH = timedelta(days=40)


@st.composite
def rule_and_edge(draw: st.DrawFn) -> tuple[dict[str, Any], datetime, datetime]:
    rule = draw(dated)
    asked = draw(edges(rule["zone"], 1971, 2039))
    if draw(st.booleans()):
        rule["exclude"] = [(asked + timedelta(days=draw(st.integers(-2, 2)))).date().isoformat()]
    anchor = asked + draw(st.sampled_from([timedelta(), timedelta(seconds=59), -timedelta(days=400)]))
    return rule, asked, anchor


@settings(max_examples=500, deadline=None)
@given(rule_and_edge())
def test_slots_near_an_edge_are_those_of_the_oracle(case: tuple[dict[str, Any], datetime, datetime]) -> None:
    """CAD-3 to CAD-6, CAD-8, and the counts that coalescing stands on."""
    rule, asked, anchor = case
    cadence = Cadence.parse(rule)
    low, high = asked - REACH, asked + REACH
    expected = [
        slot
        for slot in oracle.slots(
            cadence.to_json(), (low - timedelta(days=3)).date(), (high + timedelta(days=3)).date(), anchor
        )
        if low <= slot < high
    ]
    assert list(between(cadence, low, high, anchor=anchor)) == expected
    counted = count_between(cadence, low, high, anchor=anchor)
    assert counted == (SlotRange(expected[0], expected[-1], len(expected)) if expected else None)
    later = [slot for slot in expected if slot > asked]
    earlier = [slot for slot in expected if slot <= asked]
    found = next_after(cadence, asked, anchor=anchor)
    assert found == later[0] if later else found is None or found >= high
    latest = latest_at(cadence, asked, anchor=anchor)
    assert latest == earlier[-1] if earlier else latest is None or latest < low


@settings(max_examples=500, deadline=None)
@given(ANY_RULE, st.data())
def test_walks_grow_end_and_agree_with_each_other(rule: dict[str, Any], data: st.DataObject) -> None:
    """CAD-2, CAD-7, CAD-8: for every rule that parses, at every instant that a datetime holds."""
    cadence = Cadence.parse(rule)
    asked = data.draw(anywhen | edges(rule["zone"]))
    anchor = data.draw(st.none() | st.just(asked) | anywhen)
    slots = preview(cadence, asked, 12, anchor=anchor)
    instants = [slot.at for slot in slots]
    assert all(first < second for first, second in zip([asked, *instants], instants, strict=False))
    if anchor is not None and rule.get("unit") != "once":
        assert all(slot >= anchor.replace(second=0, microsecond=0) for slot in instants)
    for before, slot in zip([asked, *instants], instants, strict=False):
        assert next_after(cadence, before, anchor=anchor) == slot
        assert next_after(cadence, slot - TICK, anchor=anchor) == slot
        assert latest_at(cadence, slot, anchor=anchor) == slot
        assert is_slot(cadence, slot, anchor=anchor)
        assert slot.microsecond == 0
    if len(instants) > 1:
        assert latest_at(cadence, instants[1] - TICK, anchor=anchor) == instants[0]
        assert list(between(cadence, instants[0], instants[-1], anchor=anchor)) == instants[:-1]
        counted = count_between(cadence, instants[0], instants[-1], anchor=anchor)
        assert counted == SlotRange(instants[0], instants[-2], len(instants) - 1)
    latest = latest_at(cadence, asked, anchor=anchor)
    assert latest is None or latest <= asked


@settings(max_examples=300, deadline=None)
@given(ANY_RULE, st.data())
def test_previews_show_the_clock_of_the_zone(rule: dict[str, Any], data: st.DataObject) -> None:
    """CAD-8: wall time and offset are those of the instant; a note stands where a civil slot is not where it was put."""
    cadence = Cadence.parse(rule)
    asked = data.draw(edges(rule["zone"]))
    for slot in preview(cadence, asked - timedelta(days=1), 8):
        local = slot.at.astimezone(oracle.zone(rule["zone"]))
        assert slot.local_time == local.replace(tzinfo=None).isoformat()
        assert slot.offset == local.isoformat()[19:]
        if not cadence.rolling and cadence.at and rule.get("unit") != "once":
            meant = {f"{clock}:00"[:8] for clock in cadence.at}
            moved = slot.local_time[11:] not in meant
            assert moved == (slot.note is not None and "gap" in slot.note) or "gap" in (slot.note or "")
            other = slot.at.astimezone(oracle.zone(rule["zone"])).replace(
                fold=1, tzinfo=oracle.zone(rule["zone"])
            )
            repeated = other.astimezone(UTC) > slot.at
            assert repeated == ("overlap" in (slot.note or ""))


@settings(max_examples=200, deadline=None)
@given(rolling, anywhen, anywhen)
def test_rolling_slots_are_multiples_of_the_interval(
    rule: dict[str, Any], anchor: datetime, asked: datetime
) -> None:
    """CAD-2."""
    step = timedelta(**{f"{rule['unit']}s": rule["every"]})
    first = anchor.replace(second=0, microsecond=0)
    found = next_after(Cadence.parse(rule), asked, anchor=anchor)
    last_instant = datetime.max.replace(tzinfo=UTC)
    if asked < first:
        assert found == first
    elif found is None:
        assert last_instant - asked < step
    else:
        assert (found - first) % step == timedelta()
        assert timedelta() < found - asked <= step
