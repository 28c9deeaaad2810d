"""Places shared between queues: all for one alone, an even part for each as soon as another waits (RUN-1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.services.places import Places


def nothing() -> None:
    """Nobody has to be woken."""


def test_one_queue_alone_takes_them_all() -> None:
    """RUN-1."""
    share = Places(10).share(nothing)
    assert share.take(100) == 10
    assert (share.left, share.take(1)) == (0, 0)
    share.give_back(3)
    assert share.take(100) == 3


def test_work_that_is_over_needs_no_place_until_as_many_ends_wait_as_there_are_places() -> None:
    """RUN-2: and the places that the further ones keep get free as the ends are written, whosever they are."""
    share = Places(2).share(nothing)
    assert share.take(2) == 2
    share.end()
    share.end()
    assert share.take(2) == 2
    share.end()
    share.end()
    assert (share.left, share.endings) == (0, 4)
    share.written(1)
    assert share.left == 1
    share.written(2)
    assert share.left == 2
    share.written(1)
    assert (share.left, share.endings) == (2, 0)


def test_what_nobody_wants_is_left_to_whoever_has_work() -> None:
    """RUN-1: an idle tenant keeps no place empty."""
    places = Places(10)
    busy, _idle = places.share(nothing), places.share(nothing)
    assert busy.take(100) == 10


def test_whoever_waits_gets_the_next_place() -> None:
    """RUN-1: the one with the long queue is awake first and asks first, and gets none."""
    woken: list[str] = []
    places = Places(4)
    long, single = places.share(lambda: woken.append("long")), places.share(lambda: woken.append("single"))
    assert long.take(100) == 4
    assert single.take(1) == 0
    single.wait()
    long.give_back(1)
    assert woken == ["single"]
    assert long.take(100) == 0
    assert single.take(1) == 1
    assert not single.waits
    long.give_back(1)
    assert long.take(100) == 1, "nobody waits any more"


def test_two_with_long_queues_come_to_an_even_part_each() -> None:
    """RUN-1."""
    places = Places(10)
    first, second = places.share(nothing), places.share(nothing)
    first.take(100)
    second.wait()
    for _ in range(40):  # runs end one by one, each asks as soon as it can
        first.wait()
        first.give_back(1)
        first.take(100)
        if not second.take(100):
            second.wait()
    assert (first.taken, second.taken) == (5, 5)


def test_there_are_fewer_places_than_queues() -> None:
    """RUN-1: one each, for those who come to it."""
    places = Places(2)
    shares = [places.share(nothing) for _ in range(5)]
    assert shares[0].take(9) == 2
    for share in shares[1:]:
        share.wait()
    shares[0].give_back(1)
    assert shares[0].take(9) == 0
    assert shares[3].take(9) == 1


def test_one_that_can_t_get_at_its_queue_holds_nobody_up() -> None:
    """DSP-2."""
    places = Places(4)
    busy, dead = places.share(nothing), places.share(nothing)
    busy.take(3)
    dead.wait()
    assert busy.left == 0
    dead.wait_no_more()
    assert busy.left == 1


def test_what_was_not_taken_can_t_be_given_back() -> None:
    with pytest.raises(AssertionError):
        Places(1).share(nothing).give_back(1)


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("twgn"), st.integers(1, 9)), max_size=60),
)
def test_never_more_than_there_are_and_nobody_waits_for_ever(
    limit: int, deeds: list[tuple[int, str, int]]
) -> None:
    """RUN-1: whatever happens before, one that waits gets a place once the others have given theirs back."""
    places = Places(limit)
    shares = [places.share(nothing) for _ in range(4)]
    for which, deed, count in deeds:
        share = shares[which]
        if deed == "t":
            before = share.left
            assert share.take(count) == min(count, before)
        elif deed == "w":
            share.wait()
        elif deed == "n":
            share.wait_no_more()
        else:
            share.give_back(min(count, share.taken))
        assert 0 <= sum(each.taken for each in shares) <= limit
    waiting = [share for share in shares if share.waits]
    for share in shares:
        share.give_back(share.taken)
    for share in waiting[:limit]:
        assert share.take(1) == 1
