"""``gnomon doctor``: what could happen twice, not at all, or be lost, each with what to do (IDM-4)."""

from typing import Annotated, Any

import typer

from gnomon.cli.command import Exit, Talk, Usage, asking
from gnomon.cli.terminal import shown
from gnomon.domain.finding import Kind


def doctor(
    talk: Talk,
    *,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="Leave out findings of this kind, as key_without_slot. Repeatable."),
    ] = None,
) -> None:
    """List each loop whose rerun could double something, and what else should be looked at; exit 1 where there is one.

    It changes nothing. What is broken already, `gnomon verify` finds.
    """
    found = _without(talk.api.get("/doctor"), {kind.strip() for kind in ignore or ()})
    if talk.out.as_json:
        talk.out.data(found)
    else:
        _tell(talk, found)
    if not found["healthy"]:
        raise typer.Exit(Exit.FAILED)


def _without(found: dict[str, Any], ignored: set[str]) -> dict[str, Any]:
    if unknown := sorted(ignored - {kind.value for kind in Kind}):
        raise Usage(f"{', '.join(unknown)}: there is no such kind of finding. There are {', '.join(Kind)}.")
    counts = {kind: count for kind, count in found["counts"].items() if kind not in ignored}
    items = [item for item in found["items"] if item["finding"] not in ignored]
    return {"healthy": not counts, "counts": counts, "items": items}


def _tell(talk: Talk, found: dict[str, Any]) -> None:
    for item in found["items"]:
        where = item["where"]
        talk.out.line(f"{item['finding']}: {where['kind']} {where['name']} ({where['id']})")
        talk.out.sentence(f"  {shown(item['what'])}")
        talk.out.sentence(f"  {shown(item['advice'])}")
    named, total = len(found["items"]), sum(found["counts"].values())
    if total > named:
        talk.out.note(f"There are {total - named:,} more of the same kinds.")
    talk.out.line("Nothing found." if found["healthy"] else f"{total:,} found.")


def register(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    asking(app, "doctor", rich_help_panel=panel)(doctor)
