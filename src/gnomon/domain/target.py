"""What a schedule or a key fires: an agent or a team, by kind and id (SCH-1)."""

from dataclasses import dataclass
from enum import StrEnum


class TargetKind(StrEnum):
    """The two kinds of target."""

    AGENT = "agent"
    TEAM = "team"


@dataclass(frozen=True, slots=True)
class Target:
    """One target: its kind and its id."""

    kind: TargetKind
    id: str
