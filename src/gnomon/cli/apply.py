"""``gnomon apply`` and ``gnomon export``: definitions as code, with a plan first, safe to repeat (SCH-13)."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from gnomon.cli.command import Failed, Talk, Usage, asking
from gnomon.cli.terminal import Terminal, shown

MARKS = {"create": ("+", "green"), "update": ("~", "yellow"), "unchanged": ("=", None)}
SHOWN_CHARACTERS = 60


def apply(
    talk: Talk,
    *,
    file: Annotated[
        str, typer.Option("--file", "-f", help="The file, as YAML or JSON; - is standard input.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask after the plan.")] = False,
) -> None:
    """Make what a file says, all of it or nothing: calendars, agents, teams, schedules, jobs.

    The file is the whole definition of what it names; what it does not name is left alone.
    """
    from gnomon.cli.documents import read_mapping

    carry_out(talk, read_mapping(file), dry_run=dry_run, yes=yes)


def carry_out(talk: Talk, document: Mapping[str, Any], *, dry_run: bool, yes: bool) -> None:
    """Show what a document would do, ask, and do it."""
    out = talk.out
    planned = talk.api.post("/apply", document, query={"dry_run": True})
    changes = planned["items"]
    if dry_run and out.as_json:
        out.data(planned)
        return
    for text, colour in _told(changes):
        out.line(text, colour)
    steps = Counter(change["step"] for change in changes)
    todo = steps["create"] + steps["update"]
    if not dry_run:
        if todo and not yes:
            _ask(out)
        applied = talk.api.post("/apply", document) if todo else {**planned, "applied": True}
        if out.as_json:
            out.data(applied)
            return
        _tell_secrets(out, applied["items"])
    if not todo:
        out.line("Nothing to do: everything is as the file says.")
    elif dry_run:
        out.line(f"Would create {steps['create']} and change {steps['update']}.")
    else:
        out.line(f"Created {steps['create']}, changed {steps['update']}.")


def export(talk: Talk) -> None:
    """Print everything as a file for `gnomon apply`."""
    from gnomon.cli.documents import to_yaml

    document = talk.api.get("/export")
    if talk.out.as_json:
        talk.out.data(document)
        return
    talk.out.line(to_yaml(document).rstrip())
    if not document:
        talk.out.note("There is nothing to export yet.")


def _told(changes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str | None]]:
    for change in changes:
        mark, colour = MARKS[change["step"]]
        yield f"{mark} {change['section'].removesuffix('s')} {change['key']}", colour
        if change["step"] == "update":
            for each in change["differences"]:
                for field, standing, wanted in _apart(each["field"], each["standing"], each["wanted"]):
                    yield f"    {field}: {_short(standing)} -> {_short(wanted)}", None


def _apart(field: str, standing: Any, wanted: Any) -> Iterator[tuple[str, Any, Any]]:
    """One difference, taken apart as far as both sides are objects."""
    if not (isinstance(standing, Mapping) and isinstance(wanted, Mapping)):
        yield field, standing, wanted
        return
    for name in dict.fromkeys((*standing, *wanted)):
        if standing.get(name) != wanted.get(name):
            yield from _apart(f"{field}.{name}", standing.get(name), wanted.get(name))


def _short(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def _ask(out: Terminal) -> None:
    if out.as_json or not sys.stdin.isatty():
        raise Usage("Nobody is here to ask: add --yes to go ahead, or --dry-run to see the plan alone.")
    if not typer.confirm("Go ahead?"):
        raise Failed("Nothing was changed.")


def _tell_secrets(out: Terminal, changes: Sequence[Mapping[str, Any]]) -> None:
    for change in changes:
        if change.get("secret"):
            out.line(
                f"Requests to {change['key']} are signed with {change['secret']}, which is not shown again."
            )


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    asking(app, "apply", rich_help_panel=panel)(apply)
    asking(app, "export", rich_help_panel=panel)(export)
