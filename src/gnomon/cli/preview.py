"""``gnomon preview``: the next slots of a cadence, worked out here, without a server or a database (CAD-8)."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.command import Failed, Usage, local
from gnomon.cli.terminal import Column, Terminal

if TYPE_CHECKING:
    from gnomon.cadence import Slot

COLUMNS = (
    Column("local time", lambda slot: slot["local_time"].replace("T", " ")),
    Column("offset", "offset"),
    Column("utc", lambda slot: slot["at"]),
    Column("note", lambda slot: _short(slot["note"])),
)


def preview(
    out: Terminal,
    cadence: Annotated[
        str,
        typer.Argument(
            help="A cadence as JSON, @FILE with one, a cron line, or an RRULE.", metavar="CADENCE"
        ),
    ],
    *,
    zone: Annotated[
        str | None, typer.Option(help="The zone of its wall clock, where the cadence names none.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=1000, help="How many slots.")] = 5,
    after: Annotated[
        str | None, typer.Option(help="From this instant on, as 2026-11-29T12:00:00Z. Now unless given.")
    ] = None,
    anchor: Annotated[
        str | None, typer.Option(help="Where counting starts for an interval above one. Now unless given.")
    ] = None,
) -> None:
    """Show the next slots of a cadence.

    For example:

    gnomon preview '0 9 * * 1-5' --zone Europe/Berlin
    """
    from gnomon.adapters.clock import SystemClock
    from gnomon.cadence import Cadence, CadenceError
    from gnomon.cadence import preview as upcoming

    now = SystemClock().now()
    start = now if after is None else instant(after, "--after")
    begun = start if anchor is None else instant(anchor, "--anchor")
    try:
        rule = Cadence.parse(read_cadence(cadence, zone))
        slots = upcoming(rule, start, count, anchor=begun)
    except CadenceError as error:
        raise Failed(
            {
                "detail": "This cadence can't be used.",
                "code": "invalid",
                "errors": [{"field": fault.field, "message": fault.message} for fault in error.faults],
            }
        ) from error
    out.listing(
        {"items": [as_item(slot) for slot in slots], "next_cursor": None},
        COLUMNS,
        empty="This cadence has no slot after that instant.",
    )
    for slot in slots:
        if slot.note:
            out.line()
            out.sentence(f"{slot.local_time.replace('T', ' ')}: {slot.note}.")


def cadence_of(rule: str | None, at: str | None, zone: str | None) -> Mapping[str, Any] | None:
    """What ``--cadence``, ``--at`` and ``--zone`` say of when; ``None`` where they say nothing.

    Raises:
        Usage: they contradict each other, or can't be read.
    """
    from gnomon.cli.wallclock import once

    if rule is not None and at is not None:
        raise Usage("--at is one slot and --cadence a rule: name one of them.")
    if at is not None:
        return once(at, zone)
    if rule is not None:
        return read_cadence(rule, zone)
    if zone is not None:
        raise Usage("--zone goes with --cadence or --at.")
    return None


def read_cadence(text: str, zone: str | None = None) -> Mapping[str, Any]:
    """What somebody typed as a cadence: JSON, ``@file``, a cron line, one of cron's nicknames or an RRULE."""
    from gnomon.domain.crontab import NICKNAMES

    text = NICKNAMES.get(text) or read_text(text).strip()
    if text.startswith("{"):
        try:
            rule = json.loads(text)
        except ValueError as error:
            raise Usage(f"This cadence is no JSON: {error}.") from error
    elif "FREQ=" in text.upper():
        rule = {"rrule": text.removeprefix("RRULE:")}
    else:
        rule = {"cron": text}
    return rule if zone is None or "zone" in rule else {**rule, "zone": zone}


def read_text(text: str) -> str:
    """An argument as it is, or, where it begins with ``@``, what is in that file (``@-``: standard input)."""
    if not text.startswith("@"):
        return text
    import sys
    from pathlib import Path

    try:
        return sys.stdin.read() if text == "@-" else Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"{text[1:]} can't be read: {getattr(error, 'strerror', None) or error}.") from error


def instant(text: str, option: str, otherwise: str = "") -> datetime:
    """An instant as somebody typed it, read as the API reads it: RFC 3339, with its offset.

    A space may stand for the T, as it does in what is printed here. ``otherwise`` tells of another form that would do.
    """
    from gnomon.domain.form import read_instant

    try:
        return read_instant(text.strip().replace(" ", "T", 1))
    except ValueError as error:
        raise Usage(
            f'{option}: "{text}" is no instant. Write it with its offset, as 2026-11-29T12:00:00Z or '
            f"2026-11-29T13:00:00+01:00{otherwise}."
        ) from error


def as_item(slot: "Slot") -> dict[str, Any]:
    """A slot as the API gives it (``/v1/preview``)."""
    return {
        "at": slot.at.isoformat().replace("+00:00", "Z"),
        "local_time": slot.local_time,
        "offset": slot.offset,
        "note": slot.note,
    }


def _short(note: str | None) -> str | None:
    return note and ", ".join(part.partition(":")[0] for part in note.split("; "))


def register(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    local(app, "preview", rich_help_panel=panel)(preview)
