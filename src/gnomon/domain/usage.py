"""What was used, summed: by day, by target, by who asked (UI-1)."""

from dataclasses import dataclass
from datetime import date

from gnomon.domain.invocation import Usage


@dataclass(frozen=True, slots=True)
class Grouping:
    """What sums are told apart by; what is not, is summed over."""

    day: bool
    target: bool
    principal: bool

    @classmethod
    def of(cls, names: set[str]) -> "Grouping":
        """The grouping of these names: ``day``, ``target``, ``principal``."""
        return cls("day" in names, "target" in names, "principal" in names)


@dataclass(frozen=True, slots=True)
class Used:
    """One sum. ``day`` is in UTC; what it is not told apart by is ``None``, and so is an unnamed principal."""

    day: date | None
    target_kind: str | None
    target_id: str | None
    target_slug: str | None
    principal: str | None
    runs: int
    usage: Usage
