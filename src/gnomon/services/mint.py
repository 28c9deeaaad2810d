"""Making ids: the clock's milliseconds and the machine's randomness, handed in as ports."""

from gnomon.domain.ids import Kind, make_id, make_ids, make_process_id
from gnomon.ports.clock import Clock, Entropy


class Mint:
    """Makes ids of every kind."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy

    def make(self, kind: Kind) -> str:
        """A new id of ``kind``, sortable by the instant of its making."""
        return make_id(kind, self._clock.micros() // 1_000, self._entropy.bits(52))

    def many(self, kind: Kind, count: int) -> list[str]:
        """``count`` new ids of ``kind``, of one instant."""
        bits = self._entropy.bits(64 * count).to_bytes(8 * count, "little")
        return make_ids(kind, self._clock.micros() // 1_000, memoryview(bits).cast("Q"))

    def process(self) -> str:
        """A new id for this start of this process (RUN-5a)."""
        return make_process_id(self._entropy.bits(50))
