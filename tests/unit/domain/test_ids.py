"""Ids and slugs: the form, the order, what is refused."""

import pytest

from gnomon.domain.ids import Kind, is_id, is_slug, make_id, make_process_id, sibling

MILLIS = 1_796_000_000_000


def test_an_id_is_its_prefix_and_twenty_characters() -> None:
    made = make_id(Kind.RUN, MILLIS, 0)
    assert made.startswith("run_")
    assert len(made) == 24
    assert made.endswith("0" * 10), "52 random bits of zero end in zeros"


def test_the_bits_are_read_in_crockford_base_32() -> None:
    assert make_id(Kind.RUN, 0, 0) == "run_" + "0" * 20
    assert make_id(Kind.RUN, 0, 31) == "run_" + "0" * 19 + "z"
    assert make_id(Kind.RUN, 0, 32) == "run_" + "0" * 18 + "10"
    assert make_id(Kind.RUN, 2**48 - 1, 2**52 - 1) == "run_" + "z" * 20


def test_only_52_random_bits_are_used_so_that_the_instant_stays_readable() -> None:
    assert make_id(Kind.RUN, MILLIS, 2**60 + 5) == make_id(Kind.RUN, MILLIS, 5)


def test_a_process_is_named_by_fifty_random_bits_and_nothing_else() -> None:
    """RUN-5a: neither the host nor the instant is in the name."""
    assert make_process_id(0) == "prc_" + "0" * 10
    assert make_process_id(33) == "prc_" + "0" * 8 + "11"
    assert make_process_id(2**50 - 1) == "prc_" + "z" * 10
    assert make_process_id(2**50 + 33) == make_process_id(33)


def test_prefixes_are_three_letters_and_distinct() -> None:
    assert all(len(kind.value) == 3 for kind in Kind)
    assert len({kind.value for kind in Kind}) == len(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_knows_its_own_ids_alone(kind: Kind) -> None:
    made = make_id(kind, MILLIS, 12_345)
    assert [other for other in Kind if is_id(other, made)] == [kind]


def test_a_sibling_keeps_the_tail() -> None:
    run = make_id(Kind.RUN, MILLIS, 99)
    session = sibling(Kind.SESSION, run)
    assert session == "ses_" + run[4:]
    assert sibling(Kind.RUN, session) == run


@pytest.mark.parametrize(
    "text",
    [
        "",
        "run_",
        "run_" + "0" * 19,
        "run_" + "0" * 21,
        "run-" + "0" * 20,
        "RUN_" + "0" * 20,
        "run_" + "i" * 20,
        "run_" + "A" * 20,
        "run_" + "0" * 19 + "\n",
        "run_" + "٣" * 20,
    ],
)
def test_what_is_no_id(text: str) -> None:
    assert not is_id(Kind.RUN, text)


@pytest.mark.parametrize("text", ["a", "0", "nightly-report", "a_b", "x" * 64, "run_short"])
def test_what_may_be_a_slug(text: str) -> None:
    assert is_slug(text)


@pytest.mark.parametrize(
    "text", ["", "-a", "a-", "_a", "a_", "A", "a b", "ä", "x" * 65, "a\n", "a/b", "run_" + "0" * 20]
)
def test_what_may_not_be_a_slug(text: str) -> None:
    assert not is_slug(text)
