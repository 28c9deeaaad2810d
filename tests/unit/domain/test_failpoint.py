"""Failpoints as they are written down (PRF-1)."""

import pytest

from gnomon.domain.failpoint import POINTS, Effect, Trap, parse


def test_traps_are_read_as_they_are_written() -> None:
    text = "close.sent=kill, claim.committed=fail@3+,invoke.sent=delay:1.5@2,sweep.written=stop,"
    assert parse(text) == (
        Trap("close.sent", Effect.KILL),
        Trap("claim.committed", Effect.FAIL, nth=3, on=True),
        Trap("invoke.sent", Effect.DELAY, 1.5, 2),
        Trap("sweep.written", Effect.STOP),
    )
    assert parse("") == ()


def test_a_trap_springs_at_its_passing_or_from_it_on() -> None:
    once, on = Trap("close.sent", Effect.FAIL, nth=2), Trap("close.sent", Effect.FAIL, nth=2, on=True)
    assert [once.springs(n) for n in (1, 2, 3)] == [False, True, False]
    assert [on.springs(n) for n in (1, 2, 3)] == [False, True, True]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("close.sent", "'close.sent' is no failpoint"),
        ("close.sent=kill@0", "is no failpoint"),
        ("close.nowhere=kill", "There is no point close.nowhere. There are claim.committed, "),
        ("close.sent=explode", "There is no action explode. There are delay, fail, kill, stop."),
        ("close.sent=kill:3", "a delay, and nothing else, has seconds"),
        ("close.sent=delay", "a delay, and nothing else, has seconds"),
        ("close.sent=delay:601", "600 at most"),
        ("invoke.sent=fail", "only a write fails as the database does"),
    ],
)
def test_what_can_t_be_read_is_told(text: str, named: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(f"claim.sent=kill,{text}")
    assert named in str(caught.value)


def test_every_step_has_its_points() -> None:
    """PRF-1: claim, open, invoke, renew, close, sweep, and what is given back."""
    assert {point.partition(".")[0] for point in POINTS} == {
        "claim",
        "take",
        "open",
        "invoke",
        "renew",
        "close",
        "sweep",
        "giveback",
    }
