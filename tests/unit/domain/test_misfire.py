"""What becomes of a due schedule, case by case (DSP-7, DSP-8, SCH-5, SCH-14; casebook mis-*, win-10)."""

import itertools

import pytest

from gnomon.domain.misfire import Decision, Due, Slot, Start, decide, grace_micros, refused
from gnomon.domain.occurrence import Disposition, Reason
from gnomon.domain.schedule import CatchUp, Overlap
from support.slots import ListedSlots

S = 1_000_000
MIN = 60 * S
HOUR = 60 * MIN
DAY = 24 * HOUR
NOON = 20_000 * DAY + 12 * HOUR  # a slot of every walk here
HOURLY = ListedSlots(range(NOON - 100 * HOUR, NOON + 100 * HOUR, HOUR))

ON_TIME = Due(
    walk=HOURLY,
    next_fire_at=NOON,
    now=NOON + 50_000,
    starts_at=None,
    ends_at=None,
    runs_left=None,
    in_flight=False,
    waiting=False,
    recorded_until=None,
    overlap=Overlap.SKIP,
    catch_up=CatchUp.LATEST,
    misfire_grace_seconds=None,
)


def fired(nominal: int, older: tuple[int, int, int] | None = None, start: Start = Start.AT_ONCE) -> Slot:
    return Slot(nominal, Disposition.FIRED, None, start, older)


def missed(nominal: int, older: tuple[int, int, int] | None = None) -> Slot:
    return Slot(nominal, Disposition.MISSED, Reason.MISSED, Start.AT_ONCE, older)


def slot_of(decision: Decision) -> Slot:
    assert decision.slot is not None
    return decision.slot


# --- one slot ---------------------------------------------------------------------------------------------------


def test_on_time_fires_and_moves_on() -> None:
    assert decide(ON_TIME) == Decision(fired(NOON), NOON + HOUR, None)


def test_the_very_instant_of_the_slot_is_due() -> None:
    assert decide(ON_TIME._replace(now=NOON)) == Decision(fired(NOON), NOON + HOUR, None)


@pytest.mark.parametrize("grace", [1, 60, 1_800, 3_600, 86_400])
@pytest.mark.parametrize("late", ["g-1s", "g", "g+1us", "g+1s", "400d"])
def test_late_inside_the_grace_fires_and_beyond_it_is_missed(grace: int, late: str) -> None:
    """DSP-7; casebook mis-22: g-1 s runs, g+1 s is skipped, 400 days are skipped."""
    by = {
        "g-1s": (grace - 1) * S,
        "g": grace * S,
        "g+1us": grace * S + 1,
        "g+1s": (grace + 1) * S,
        "400d": 400 * DAY,
    }
    walk = ListedSlots([NOON, NOON + 800 * DAY])
    due = ON_TIME._replace(walk=walk, misfire_grace_seconds=grace, now=NOON + by[late])
    expected = fired(NOON) if late in {"g-1s", "g"} else missed(NOON)
    assert decide(due) == Decision(expected, NOON + 800 * DAY, None)


@pytest.mark.parametrize(
    ("distance", "grace"),
    [
        (MIN, 60),  # never below a minute
        (2 * MIN, 60),
        (5 * MIN, 150),
        (HOUR, 1_800),
        (2 * HOUR, 3_600),
        (3 * HOUR, 3_600),  # never above an hour
        (30 * DAY, 3_600),
        (None, 3_600),  # nothing follows
    ],
)
def test_the_default_grace_is_half_the_distance_within_bounds(distance: int | None, grace: int) -> None:
    """SCH-14."""
    following = None if distance is None else NOON + distance
    assert grace_micros(NOON, following, None) == grace * S


def test_a_grace_that_is_set_wins() -> None:
    """SCH-14."""
    assert grace_micros(NOON, NOON + HOUR, 7) == 7 * S


@pytest.mark.parametrize(("late_by", "expected"), [(30 * MIN, fired(NOON)), (30 * MIN + 1, missed(NOON))])
def test_the_default_grace_is_used_in_the_decision(late_by: int, expected: Slot) -> None:
    """SCH-14, DSP-7."""
    assert slot_of(decide(ON_TIME._replace(now=NOON + late_by))) == expected


@pytest.mark.parametrize(
    ("grace", "late_by", "fires"),
    [
        (None, 60 * S, True),
        (None, 60 * S + 1, False),
        (30, 30 * S, True),
        (30, 31 * S, False),
        (3_600, 61 * S, False),
    ],
)
def test_without_catch_up_only_a_slot_that_is_on_time_fires(
    grace: int | None, late_by: int, fires: bool
) -> None:
    """DSP-7: on time is within two ticks, or within the grace where that is shorter."""
    due = ON_TIME._replace(catch_up=CatchUp.NONE, misfire_grace_seconds=grace, now=NOON + late_by)
    assert slot_of(decide(due)) == (fired(NOON) if fires else missed(NOON))


# --- missed slots coalesce ------------------------------------------------------------------------------------------


def test_older_slots_coalesce_and_the_recorded_one_is_not_counted() -> None:
    """DSP-7: (first, last, count) are the slots before the one that is recorded."""
    due = ON_TIME._replace(next_fire_at=NOON - 3 * HOUR)
    assert decide(due) == Decision(fired(NOON, (NOON - 3 * HOUR, NOON - HOUR, 3)), NOON + HOUR, None)


def test_one_older_slot_is_a_range_of_one() -> None:
    """DSP-7."""
    due = ON_TIME._replace(next_fire_at=NOON - HOUR)
    assert slot_of(decide(due)).older == (NOON - HOUR, NOON - HOUR, 1)


def test_a_whole_outage_past_the_grace_is_one_missed_record() -> None:
    """DSP-7; casebook mis-02: 26 hours asleep give one record, and the schedule is back on its grid."""
    due = ON_TIME._replace(next_fire_at=NOON - 26 * HOUR, now=NOON + 45 * MIN)
    older = (NOON - 26 * HOUR, NOON - HOUR, 26)
    assert decide(due) == Decision(missed(NOON, older), NOON + HOUR, None)


def test_slots_that_the_ledger_holds_are_not_coalesced_again() -> None:
    """DSP-6, DSP-9: what is recorded is accounted for once."""
    due = ON_TIME._replace(next_fire_at=NOON - 5 * HOUR, recorded_until=NOON - 2 * HOUR)
    assert slot_of(decide(due)).older == (NOON - HOUR, NOON - HOUR, 1)


def test_a_slot_that_the_ledger_holds_is_not_recorded_again() -> None:
    """DSP-6."""
    assert decide(ON_TIME._replace(recorded_until=NOON)) == Decision(None, NOON + HOUR, None)


def test_a_ledger_written_by_a_clock_that_was_ahead_silences_nothing_but_its_own_slots() -> None:
    """Casebook mis-08: a record of the false future does not make true slots vanish."""
    due = ON_TIME._replace(recorded_until=NOON + 40 * HOUR)
    assert decide(due) == Decision(fired(NOON), NOON + HOUR, None)


# --- stored instants that lie ---------------------------------------------------------------------------------------


def test_a_next_instant_of_epoch_zero_makes_one_record_in_total() -> None:
    """Casebook mis-16: three ticks, one run, and the next instant lies ahead."""
    walk = ListedSlots(range(NOON - 2 * HOUR, NOON + 4 * HOUR, HOUR))
    due = ON_TIME._replace(walk=walk, next_fire_at=0)
    first = decide(due)
    assert first == Decision(fired(NOON, (NOON - 2 * HOUR, NOON - HOUR, 2)), NOON + HOUR, None)
    again = [decide(due._replace(recorded_until=NOON)) for _ in range(2)]
    assert again == [Decision(None, NOON + HOUR, None)] * 2


def test_an_instant_that_is_no_slot_realigns_and_fires_nothing() -> None:
    """Casebook mis-17: never a made-up instant."""
    due = ON_TIME._replace(next_fire_at=NOON + 7 * S, now=NOON + 10 * S)
    assert decide(due) == Decision(None, NOON + HOUR, None)


def test_a_cadence_without_any_slot_completes_the_schedule() -> None:
    """Casebook mis-17."""
    assert decide(ON_TIME._replace(walk=ListedSlots([]))) == Decision(None, None, "no slot is left")


# --- window and count -----------------------------------------------------------------------------------------------


def test_before_the_window_it_realigns_from_its_start_not_from_now() -> None:
    """SCH-5."""
    due = ON_TIME._replace(starts_at=NOON + 5 * HOUR)
    assert decide(due) == Decision(None, NOON + 5 * HOUR, None)


def test_the_start_is_inclusive_and_need_not_be_a_slot() -> None:
    """SCH-5."""
    assert decide(ON_TIME._replace(starts_at=NOON)).slot == fired(NOON)
    assert decide(ON_TIME._replace(starts_at=NOON + 1)) == Decision(None, NOON + HOUR, None)


def test_slots_before_the_window_are_not_coalesced_after_it_opened() -> None:
    """SCH-5: a stale instant before the window realigns first; the next scan answers for the window alone."""
    due = ON_TIME._replace(next_fire_at=NOON - 5 * HOUR, starts_at=NOON - 2 * HOUR)
    realigned = decide(due)
    assert realigned == Decision(None, NOON - 2 * HOUR, None)
    assert realigned.next_fire_at is not None
    second = decide(due._replace(next_fire_at=realigned.next_fire_at))
    assert second == Decision(fired(NOON, (NOON - 2 * HOUR, NOON - HOUR, 2)), NOON + HOUR, None)


def test_the_end_is_inclusive() -> None:
    """SCH-5."""
    assert decide(ON_TIME._replace(ends_at=NOON)) == Decision(fired(NOON), None, "the window is over")
    assert decide(ON_TIME._replace(ends_at=NOON + HOUR - 1)).completed == "the window is over"
    assert decide(ON_TIME._replace(ends_at=NOON + HOUR)) == Decision(fired(NOON), NOON + HOUR, None)


def test_a_stale_slot_beyond_the_window_is_skipped_and_completes() -> None:
    """Casebook win-10: not started, outside_window on the record, status completed."""
    due = ON_TIME._replace(ends_at=NOON - 5 * MIN, now=NOON + 10 * MIN)
    skipped = Slot(NOON, Disposition.SKIPPED, Reason.OUTSIDE_WINDOW, Start.AT_ONCE, None)
    assert decide(due) == Decision(skipped, None, "the window is over")


@pytest.mark.parametrize(("grace", "expected"), [(60, fired(NOON)), (5, missed(NOON))])
def test_a_slot_inside_the_window_claimed_after_its_end_is_judged_by_the_grace(
    grace: int, expected: Slot
) -> None:
    """Casebook win-10, second row: ten seconds before the end, claimed twenty seconds after it."""
    due = ON_TIME._replace(ends_at=NOON + 10 * S, now=NOON + 30 * S, misfire_grace_seconds=grace)
    assert decide(due) == Decision(expected, None, "the window is over")


def test_slots_after_the_end_are_not_in_the_missed_range() -> None:
    """SCH-5, DSP-7."""
    due = ON_TIME._replace(next_fire_at=NOON - 4 * HOUR, ends_at=NOON - 2 * HOUR)
    expected = missed(NOON - 2 * HOUR, (NOON - 4 * HOUR, NOON - 3 * HOUR, 2))
    assert decide(due) == Decision(expected, None, "the window is over")


def test_an_instant_beyond_the_window_that_is_no_slot_only_completes() -> None:
    """SCH-5."""
    due = ON_TIME._replace(next_fire_at=NOON + 1, ends_at=NOON - MIN, now=NOON + 5 * MIN)
    assert decide(due) == Decision(None, None, "the window is over")


def test_a_window_without_new_slots_waits_for_the_next_one_inside_it() -> None:
    """SCH-5: the ledger holds the newest slot already, the window is still open."""
    due = ON_TIME._replace(ends_at=NOON + 2 * HOUR, recorded_until=NOON)
    assert decide(due) == Decision(None, NOON + HOUR, None)


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (2, Decision(fired(NOON), NOON + HOUR, None)),
        (1, Decision(fired(NOON), None, "max_runs reached")),
        (0, Decision(None, None, "max_runs reached")),
        (-3, Decision(None, None, "max_runs reached")),
    ],
)
def test_the_last_run_completes_the_schedule(left: int, expected: Decision) -> None:
    """SCH-5."""
    assert decide(ON_TIME._replace(runs_left=left)) == expected


def test_a_slot_that_did_not_fire_does_not_use_up_the_count() -> None:
    """SCH-9; casebook win-04."""
    late = ON_TIME._replace(runs_left=1, now=NOON + 45 * MIN)
    assert decide(late) == Decision(missed(NOON), NOON + HOUR, None)
    assert decide(ON_TIME._replace(runs_left=1, in_flight=True)).next_fire_at == NOON + HOUR


@pytest.mark.parametrize(
    ("late_by", "expected"), [(0, fired(NOON)), (59 * MIN, fired(NOON)), (61 * MIN, missed(NOON))]
)
def test_once_fires_or_is_missed_and_then_is_over(late_by: int, expected: Slot) -> None:
    """SCH-5, SCH-14: with nothing to follow the grace is an hour."""
    due = ON_TIME._replace(walk=ListedSlots([NOON]), now=NOON + late_by)
    assert decide(due) == Decision(expected, None, "no slot is left")


@pytest.mark.parametrize("left", [None, 1, 2])
def test_a_slot_that_a_gate_refuses_uses_up_no_run(left: int | None) -> None:
    """SCH-9, QTA-2; casebook win-04: over quota on the last run, the schedule goes on."""
    due = ON_TIME._replace(runs_left=left, next_fire_at=NOON - HOUR)
    refusal = refused(due, decide(due), Reason.OVER_QUOTA)
    older = (NOON - HOUR, NOON - HOUR, 1)
    skipped = Slot(NOON, Disposition.SKIPPED, Reason.OVER_QUOTA, Start.AT_ONCE, older)
    assert refusal == Decision(skipped, NOON + HOUR, None)


def test_a_refusal_of_the_last_slot_still_completes() -> None:
    """SCH-5."""
    due = ON_TIME._replace(runs_left=1, ends_at=NOON)
    assert refused(due, decide(due), Reason.RATE_LIMITED).completed == "the window is over"


def test_a_refused_slot_cancels_and_waits_for_nothing() -> None:
    """DSP-8: what is in flight goes on."""
    due = ON_TIME._replace(in_flight=True, overlap=Overlap.CANCEL_RUNNING)
    assert slot_of(refused(due, decide(due), Reason.OVER_BUDGET)).start is Start.AT_ONCE


@pytest.mark.parametrize(
    "due",
    [
        ON_TIME._replace(now=NOON + 45 * MIN),
        ON_TIME._replace(in_flight=True),
        ON_TIME._replace(runs_left=0),
        ON_TIME._replace(starts_at=NOON + HOUR),
    ],
)
def test_a_slot_that_would_not_fire_is_not_refused_again(due: Due) -> None:
    """RUN-2: it keeps its own reason."""
    assert refused(due, decide(due), Reason.OVER_QUOTA) == decide(due)


# --- overlap --------------------------------------------------------------------------------------------------------

AT_ONCE = fired(NOON)
BUSY = Slot(NOON, Disposition.SKIPPED, Reason.ALREADY_RUNNING, Start.AT_ONCE, None)
OVERLAPS = {
    # (overlap, in flight, waiting): what becomes of the slot
    (Overlap.SKIP, False, False): AT_ONCE,
    (Overlap.SKIP, True, False): BUSY,
    (Overlap.SKIP, True, True): BUSY,
    (Overlap.QUEUE_ONE, False, False): AT_ONCE,
    (Overlap.QUEUE_ONE, True, False): fired(NOON, start=Start.AFTER_RUNNING),
    (Overlap.QUEUE_ONE, True, True): BUSY,
    (Overlap.CANCEL_RUNNING, False, False): AT_ONCE,
    (Overlap.CANCEL_RUNNING, True, False): fired(NOON, start=Start.CANCEL_RUNNING),
    (Overlap.CANCEL_RUNNING, True, True): BUSY,
    (Overlap.ALLOW, False, False): AT_ONCE,
    (Overlap.ALLOW, True, False): AT_ONCE,
    (Overlap.ALLOW, True, True): AT_ONCE,
}


@pytest.mark.parametrize(("overlap", "in_flight", "waiting"), list(OVERLAPS))
def test_each_overlap_policy_against_what_is_in_flight(
    overlap: Overlap, in_flight: bool, waiting: bool
) -> None:
    """DSP-8: whatever becomes of the slot, the cadence goes on."""
    due = ON_TIME._replace(overlap=overlap, in_flight=in_flight, waiting=waiting)
    assert decide(due) == Decision(OVERLAPS[overlap, in_flight, waiting], NOON + HOUR, None)


@pytest.mark.parametrize(("overlap", "in_flight"), list(itertools.product(Overlap, [False, True])))
def test_a_slot_past_its_grace_is_missed_under_every_overlap_policy(
    overlap: Overlap, in_flight: bool
) -> None:
    """DSP-7 before DSP-8: a late slot neither waits nor cancels anything."""
    due = ON_TIME._replace(overlap=overlap, in_flight=in_flight, now=NOON + 45 * MIN)
    assert slot_of(decide(due)) == missed(NOON)
