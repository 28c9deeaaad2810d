"""``gnomon audit``: who did what, when; entries never change (SEC-7)."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from gnomon.cli.command import Talk, asking
from gnomon.cli.nouns import Limit, again
from gnomon.cli.terminal import Column
from gnomon.domain.instants import from_micros, rfc3339


def _detail(entry: Mapping[str, Any]) -> dict[str, Any]:
    """With its instants as people read them: the dispatcher and the watchdog write microseconds."""
    detail = entry.get("detail") or {}
    return {
        name: rfc3339(from_micros(value)) if name.endswith("_at") and isinstance(value, int) else value
        for name, value in detail.items()
    }


COLUMNS = (
    Column("seq", "seq"),
    Column("at", "at"),
    Column("action", "action"),
    Column("subject", lambda entry: f"{entry['subject']['kind']} {entry['subject']['id']}"),
    Column("actor", "actor"),
    Column("detail", _detail, cut=True),
)


def audit(
    talk: Talk,
    *,
    after: Annotated[int | None, typer.Option(help="Only entries after this seq.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action, as CLAIM or PAUSE.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only about this id.")] = None,
    limit: Limit = 50,
) -> None:
    """List the audit log, in order."""
    query = {"after": after, "action": action, "subject": subject, "limit": limit}
    answer = talk.api.get("/audit", query)
    talk.out.listing(answer, COLUMNS, empty="There is no such entry.")
    if answer.get("next_cursor") and answer["items"]:
        more = again("gnomon audit", action=action, subject=subject)
        talk.out.note(f"There are more: {more} --after {answer['items'][-1]['seq']}")


def register(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    asking(app, "audit", rich_help_panel=panel)(audit)
