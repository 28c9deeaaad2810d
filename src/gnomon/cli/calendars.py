"""``gnomon calendars``: dates on which the schedules that name one do not fire (CAD-9)."""

from typing import Annotated

import typer

from gnomon.cli.command import Talk, asking
from gnomon.cli.nouns import File, Noun, OnceKey, Set, add_delete, add_get, add_list, add_patch, named, once
from gnomon.cli.terminal import Column

NOUN = Noun(
    "calendars",
    "calendar",
    (
        Column("slug", "slug"),
        Column("dates", lambda calendar: len(calendar.get("dates", []))),
        Column("name", "name", cut=True),
        Column("id", "id"),
    ),
    "There are no calendars yet.",
)


def create(
    talk: Talk,
    *,
    file: File = None,
    slug: Annotated[str | None, typer.Option(help="Its short name, which a cadence uses.")] = None,
    name: Annotated[str | None, typer.Option(help="Its name for people.")] = None,
    date: Annotated[list[str] | None, typer.Option(help="A date, as 2026-12-25. Repeatable.")] = None,
    pairs: Set = None,
    idempotency_key: OnceKey = None,
) -> None:
    """Make a calendar of dates that have no slot."""
    from gnomon.cli.documents import written

    body = written(file, pairs or [], slug=slug, name=name or (None if file else slug), dates=date or None)
    made = talk.api.post("/calendars", body, headers=once(idempotency_key))
    talk.out.done(f"Made calendar {named(made)}.", made)


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="calendars", help="Calendars: dates without slots.", rich_help_panel=panel)
    add_list(group, NOUN)
    add_get(group, NOUN)
    asking(group, "create")(create)
    add_patch(group, NOUN)
    add_delete(group, NOUN)
