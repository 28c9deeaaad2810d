"""How long to wait before trying again. PURE: chance is an argument, nothing waits here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Full jitter: anything from nothing to a bound that doubles, so that many who failed together come back apart."""

    first_seconds: float = 0.25
    longest_seconds: float = 10.0

    def pause(self, failures: int, chance: float) -> float:
        """Seconds to wait after ``failures`` in a row, from 1; ``chance`` is in [0, 1)."""
        # past some 60 doublings every bound is reached, and a float would not hold the number
        bound = min(self.longest_seconds, self.first_seconds * 2.0 ** min(failures - 1, 60))
        return bound * chance
