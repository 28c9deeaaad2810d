"""``gnomon audit``: who did what, when; entries never change (SEC-7)."""

from typing import Annotated

import typer

from gnomon.cli.command import Talk, asking
from gnomon.cli.nouns import Limit
from gnomon.cli.terminal import Column

COLUMNS = (
    Column("seq", "seq"),
    Column("at", "at"),
    Column("action", "action"),
    Column("subject", lambda entry: f"{entry['subject']['kind']} {entry['subject']['id']}"),
    Column("actor", "actor"),
    Column("detail", lambda entry: entry.get("detail"), cut=True),
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
        talk.out.note(f"There are more: gnomon audit --after {answer['items'][-1]['seq']}")


def register(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    asking(app, "audit", rich_help_panel=panel)(audit)
