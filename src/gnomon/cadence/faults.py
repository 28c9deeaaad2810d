"""What is wrong with a cadence: every fault of a rule at once, each with the field it sits in."""

from dataclasses import dataclass
from typing import Any

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: `field` is a path such as `zone` or `days.1` ("" is the rule as a whole)."""

    field: str
    message: str


class CadenceError(ValueError):
    """A rule that can't be accepted, with all its faults."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(f"{fault.field}: {fault.message}".removeprefix(": ") for fault in faults))
        self.faults = faults


class ExpressionError(ValueError):
    """A cron or RRULE text that has no form here; the text of the error says which part, and why."""


def shown(value: Any) -> str:
    """Quote a value in a message: short, and plain ASCII whatever it holds."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**18:
        return "a number of more than 18 digits"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    text = ascii(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
