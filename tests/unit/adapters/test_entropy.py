"""The machine's randomness, drawn in pieces: every bit once, whoever asks."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gnomon.adapters.clock import SystemEntropy


@pytest.mark.parametrize("count", [1, 7, 8, 50, 52, 160, 100_000])
def test_so_many_bits_and_no_more(count: int) -> None:
    entropy = SystemEntropy()
    drawn = [entropy.bits(count) for _ in range(200)]
    assert all(0 <= number < 1 << count for number in drawn)
    assert max(drawn).bit_length() > count - 16
    if count >= 50:
        assert len(set(drawn)) == 200


def test_threads_never_share_a_bit() -> None:
    entropy = SystemEntropy()
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: entropy.bits(52), range(20_000)))
    assert len(set(drawn)) == 20_000
