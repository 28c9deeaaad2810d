"""`docs/reference/cadence.md`: the JSON forms of a cadence and the Python package, from the package itself."""

import inspect
from collections.abc import Iterator

import gnomon.cadence
from gnomon.cadence import EVERY_RANGES, Unit
from gnomon.cadence.daily import CANDIDATE_DAYS
from gnomon.cadence.imported import FLOOR_SECONDS
from gnomon.cadence.monthly import CANDIDATE_MONTHS
from gnomon.cadence.rrule import _INTERVALS, _KNOWN, _REASONS
from gnomon.domain.placeholders import NAMES
from support.reference.markdown import cell, table

HEAD = """
# Cadences, in full

What a cadence means is told with examples in the [guide](../guide/cadences.md); this page lists what may be written.
A cadence has exactly one of `unit`, `cron` and `rrule`.

## Fields

| field | with | meaning |
| --- | --- | --- |
| `unit` | | what the rule counts in |
| `every` | every unit but `once` | each so many units; default 1 |
| `days` | `week` | a list of `mon` to `sun`, not empty |
| `day` | `month` | 1 to 31, or `last` |
| `short_month` | `month` with a `day` from 1 to 31 | in a month too short: `clamp` (default) to its last day, or `skip` |
| `weekday`, `nth` | `month`, in place of `day` | the n-th weekday: 1 to 5, or -1 for the last |
| `at` | `day`, `week`, `month`, `rrule` | one time of day or a list: `HH:MM` or `HH:MM:SS` |
| `at` | `once` | a local date and time: `2026-12-24T18:00:00` |
| `cron` | | five fields; names, lists, ranges, steps, `L`, `LW`, `#` |
| `rrule` | | an RFC 5545 rule, without its start |
| `zone` | all | an IANA zone; default `UTC` |
| `anchor` | all | the instant from which an interval counts, and before which no slot lies; default: the creation |
| `exclude` | calendar cadences | local dates without a slot |
| `calendar` | calendar cadences | the slug of a [calendar](../guide/cadences.md#days-without-a-slot) |

Calendar cadences are all but `minute` and `hour`, which count elapsed time.

## Intervals
"""


def cadence_page() -> str:
    """The whole page."""
    return "\n".join([HEAD.strip(), "", *_intervals(), *_rrule(), *_bounds(), *_package()]) + "\n"


def _intervals() -> Iterator[str]:
    rows = [
        (f"`{unit}`", f"{low:,} to {high:,}")
        for unit, (low, high) in EVERY_RANGES.items()
        if unit != Unit.ONCE
    ]
    yield from table(("unit", "`every`"), rows)


def _rrule() -> Iterator[str]:
    yield from ("", "## Recurrence rules", "")
    yield f"Parts that are read: {', '.join(f'`{part}`' for part in ['FREQ', *sorted(_KNOWN - {'FREQ'})])}."
    yield ""
    yield from table(
        ("FREQ", "`INTERVAL`"), ((f"`{freq}`", f"1 to {most}") for freq, most in _INTERVALS.items())
    )
    yield ""
    yield "Refused, with the way out:"
    yield ""
    yield from table(("part", "because"), ((f"`{part}`", cell(why)) for part, why in _REASONS.items()))


def _bounds() -> Iterator[str]:
    yield from ("", "## Bounds", "")
    yield f"- The floor between two slots of a cron or recurrence rule: {FLOOR_SECONDS} seconds by the wall clock."
    yield f"- A search for the next date looks at no more than {CANDIDATE_DAYS} candidate days or {CANDIDATE_MONTHS}"
    yield "  candidate months; where it finds none, there is no slot."
    yield f"- Placeholders of a schedule's query: {', '.join(f'`{{{{{name}}}}}`' for name in NAMES)}."


def _package() -> Iterator[str]:
    yield from ("", "## The Python package", "", "`gnomon.cadence` is pure and of use on its own.", "")
    rows = []
    for name in gnomon.cadence.__all__:
        found = getattr(gnomon.cadence, name)
        said = (inspect.getdoc(found) or "").split("\n\n")[0] if callable(found) else "the intervals above"
        rows.append((f"`{name}`", cell(said)))
    yield from table(("name", "what it is"), rows)
    for name in (
        "next_after",
        "latest_at",
        "is_slot",
        "between",
        "count_between",
        "preview",
        "describe",
        "jitter",
    ):
        yield from ("", "```text", f"{name}{_signature(name)}", "```")


def _signature(name: str) -> str:
    signature = str(inspect.signature(getattr(gnomon.cadence, name)))
    for module in (
        "gnomon.cadence.rule.",
        "gnomon.cadence.walk.",
        "gnomon.cadence.notes.",
        "collections.abc.",
    ):
        signature = signature.replace(module, "")
    return signature.replace("datetime.datetime", "datetime").replace("datetime.date", "date")
