"""Ids sort by the instant of their creation, differ in their random part, and read back."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.ids import Kind, is_id, is_slug, make_id, sibling

MILLIS = st.integers(0, 2**48 - 1)
BITS = st.integers(0, 2**52 - 1)
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


@given(st.sampled_from(Kind), MILLIS, BITS)
@settings(max_examples=300, deadline=None)
def test_the_bits_can_be_read_back(kind: Kind, millis: int, bits: int) -> None:
    number = 0
    for character in make_id(kind, millis, bits)[4:]:
        number = number * 32 + _DIGITS.index(character)
    assert divmod(number, 2**52) == (millis, bits)


@given(MILLIS, BITS, MILLIS, BITS)
@settings(max_examples=300, deadline=None)
def test_text_order_is_the_order_of_creation(millis: int, bits: int, later: int, others: int) -> None:
    one, other = make_id(Kind.RUN, millis, bits), make_id(Kind.RUN, later, others)
    assert (one < other) == ((millis, bits) < (later, others))


@given(st.sampled_from(Kind), st.sampled_from(Kind), MILLIS, st.integers(0, 2**70))
@settings(max_examples=200, deadline=None)
def test_an_id_is_an_id_of_its_kind_and_no_slug(kind: Kind, other: Kind, millis: int, bits: int) -> None:
    made = make_id(kind, millis, bits)
    assert is_id(kind, made)
    assert is_id(other, made) == (kind is other)
    assert is_id(other, sibling(other, made))
    assert not is_slug(made)
