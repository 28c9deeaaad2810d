"""Sealed answers open for who has the secret, and for nobody else (SEC-3)."""

from hypothesis import given
from hypothesis import strategies as st

from gnomon.domain.sealing import seal, unseal

SECRETS = st.binary(min_size=16, max_size=64)


@given(SECRETS, st.binary(max_size=300))
def test_the_same_secret_opens_it(secret: bytes, text: bytes) -> None:
    assert unseal(secret, seal(secret, text)) == text


@given(SECRETS, SECRETS, st.binary(max_size=300))
def test_another_secret_does_not(secret: bytes, other: bytes, text: bytes) -> None:
    assert secret == other or unseal(other, seal(secret, text)) is None


@given(SECRETS, st.binary(max_size=60), st.data())
def test_a_changed_bit_is_noticed(secret: bytes, text: bytes, data: st.DataObject) -> None:
    sealed = bytearray(seal(secret, text))
    sealed[data.draw(st.integers(0, len(sealed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert unseal(secret, bytes(sealed)) is None


@given(SECRETS, st.binary(min_size=16, max_size=300))
def test_the_text_does_not_stand_in_it(secret: bytes, text: bytes) -> None:
    assert text not in seal(secret, text)


@given(SECRETS, st.binary(max_size=31))
def test_what_is_too_short_to_be_sealed_does_not_open(secret: bytes, noise: bytes) -> None:
    assert unseal(secret, noise) is None
