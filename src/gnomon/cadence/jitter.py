"""A delay that spreads slots without moving them: the same for the same schedule and slot, always (CAD-10)."""

from hashlib import blake2b

from gnomon.cadence.civil import MICRO


def jitter(schedule_key: str, nominal_us: int, jitter_seconds: int, next_us: int | None) -> int:
    """Give the delay of one slot in microseconds: from 0 to `jitter_seconds`, and short of the next slot.

    `next_us` is the instant of the next slot, None if there is none. ValueError for a negative jitter.
    """
    if jitter_seconds < 0:
        raise ValueError(f"jitter can't be negative: {jitter_seconds}")
    room = jitter_seconds * MICRO
    if next_us is not None:
        room = min(room, next_us - nominal_us - 1)
    if room <= 0:
        return 0
    seed = f"{nominal_us}:{schedule_key}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(seed, digest_size=16).digest()) % (room + 1)
