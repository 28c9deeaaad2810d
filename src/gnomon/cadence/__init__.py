"""Cadences: rules that yield instants. Pure, and of use on its own.

    from gnomon.cadence import Cadence, preview

    rule = Cadence.parse({"unit": "day", "at": "09:00", "zone": "Europe/Berlin"})
    for slot in preview(rule, datetime(2026, 11, 29, tzinfo=UTC), 5):
        print(slot.at, slot.local_time, slot.note or "")

Nothing here reads a clock, a file of its own, a database or the environment; nothing here knows the rest of Gnomon.
"""

from gnomon.cadence.civil import zone_data_version, zone_names
from gnomon.cadence.compiled import Compiled
from gnomon.cadence.faults import CadenceError, Fault
from gnomon.cadence.jitter import jitter
from gnomon.cadence.notes import Slot
from gnomon.cadence.parsing import EVERY_RANGES, ShortMonth, Unit
from gnomon.cadence.rule import Cadence
from gnomon.cadence.walk import (
    SlotRange,
    between,
    count_between,
    describe,
    is_slot,
    latest_at,
    next_after,
    preview,
)

__all__ = [
    "EVERY_RANGES",
    "Cadence",
    "CadenceError",
    "Compiled",
    "Fault",
    "ShortMonth",
    "Slot",
    "SlotRange",
    "Unit",
    "between",
    "count_between",
    "describe",
    "is_slot",
    "jitter",
    "latest_at",
    "next_after",
    "preview",
    "zone_data_version",
    "zone_names",
]
