"""A schedule's slots: those to come, those recorded, and what became of one of them (DSP-9)."""

from shlex import quote
from typing import Annotated

import typer

from gnomon.cli.command import Failed, Talk, asking
from gnomon.cli.counting import counted
from gnomon.cli.names import readable
from gnomon.cli.nouns import Cursor, Limit, Noun
from gnomon.cli.preview import COLUMNS as SLOT_COLUMNS
from gnomon.cli.preview import instant
from gnomon.cli.runs import COLUMNS as RUN_COLUMNS
from gnomon.cli.terminal import Column, shown
from gnomon.cli.wallclock import Read, read, wall
from gnomon.domain.instants import rfc3339

Called = Annotated[
    str, typer.Argument(metavar="ID", help="Its id, or its name where no other schedule has it.")
]
OCCURRENCES = (
    Column("slot", "nominal_fire_at"),
    Column("what", "disposition"),
    Column("reason", "reason"),
    Column("run", "run_id"),
    Column("together", lambda one: one["coalesced"] and counted(one["coalesced"]["count"], "slot")),
    Column("local time", lambda one: (one.get("local_time") or "").replace("T", " ")),
)
REVISIONS = (
    Column("revision", "revision"),
    Column("at", "created_at"),
    Column("by", "author"),
)


def register_slots(group: typer.Typer, app: typer.Typer, noun: Noun) -> None:
    """Add the commands that look at slots to ``gnomon schedules``, and ``gnomon explain``."""

    @asking(group, "next")
    def _next(
        talk: Talk, ref: Called, *, count: Annotated[int, typer.Option(min=1, max=100, help="How many.")] = 5
    ) -> None:
        """Show the next slots of a schedule."""
        place = noun.named(talk, ref)
        answer = talk.api.get(f"{place}/next", {"count": count})
        schedule = None if answer["items"] or talk.out.as_json else readable(talk, place)
        why = f": it is {schedule['status']}" if schedule is not None else ""
        talk.out.listing(answer, SLOT_COLUMNS, empty=f"No slot is to come{why}.")

    @asking(group, "occurrences")
    def _occurrences(talk: Talk, ref: Called, *, limit: Limit = 20, cursor: Cursor = None) -> None:
        """List what became of the slots of a schedule, the latest first."""
        answer = talk.api.get(noun.named(talk, ref, "occurrences"), {"limit": limit, "cursor": cursor})
        talk.out.listing(
            answer,
            OCCURRENCES,
            empty="No slot has come yet.",
            more=f"gnomon schedules occurrences {quote(ref)}",
        )

    @asking(group, "runs")
    def _runs(talk: Talk, ref: Called, *, limit: Limit = 20, cursor: Cursor = None) -> None:
        """List the runs of a schedule, the latest first."""
        answer = talk.api.get(noun.named(talk, ref, "runs"), {"limit": limit, "cursor": cursor})
        talk.out.listing(
            answer, RUN_COLUMNS, empty="It has not run yet.", more=f"gnomon schedules runs {quote(ref)}"
        )

    @asking(group, "revisions")
    def _revisions(talk: Talk, ref: Called, *, limit: Limit = 20, cursor: Cursor = None) -> None:
        """List the revisions of a schedule's definition, the latest first."""
        answer = talk.api.get(noun.named(talk, ref, "revisions"), {"limit": limit, "cursor": cursor})
        talk.out.listing(
            answer, REVISIONS, empty="It has none.", more=f"gnomon schedules revisions {quote(ref)}"
        )

    _register_explain(app, noun)


def _register_explain(app: typer.Typer, noun: Noun) -> None:
    @asking(app, "explain", rich_help_panel="Ask it")
    def _explain(
        talk: Talk,
        ref: Annotated[str, typer.Argument(metavar="SCHEDULE", help="A schedule's id, or its name.")],
        at: Annotated[
            list[str],
            typer.Argument(
                metavar="INSTANT",
                help="As 2026-11-29T08:00:00Z; without an offset, as 2026-11-29T09:00, by the schedule's own clock.",
            ),
        ],
    ) -> None:
        """Say what became of one slot of a schedule, and why."""
        place = noun.named(talk, ref)
        asked, meant = when(talk, place, " ".join(at), "INSTANT")
        found = talk.api.get(f"{place}/explain", {"at": asked})
        if talk.out.as_json:
            talk.out.data(found if meant is None else {**found, "read_as": meant.as_json()})
            return
        if meant is not None:
            talk.out.sentence(meant.sentence)
        talk.out.sentence(shown(found["sentence"]))
        rest = {name: value for name, value in found.items() if name not in ("sentence", "schedule_id")}
        talk.out.record(rest)


def when(talk: Talk, place: str, text: str, option: str) -> tuple[str, Read | None]:
    """An instant as somebody typed it; without an offset it is read by the clock of the schedule at ``place``, and told.

    Raises:
        Failed: it is neither.
    """
    local = wall(text)
    if local is None:
        found = instant(text, option, ", or by the schedule's own clock, as 2026-11-29T13:00")
        return rfc3339(found), None
    zone = talk.api.get(place)["cadence"].get("zone") or "UTC"
    try:
        meant = read(local, zone)
    except KeyError as error:
        raise Failed(
            f"{option}: the zone {zone} is not in the zone data here. Write the offset too."
        ) from error
    return rfc3339(meant.at), meant
