"""``gnomon instances``: which live processes there are of each role, and draining one (JOB-5)."""

from typing import Annotated

import typer

from gnomon.cli.command import Talk, asking
from gnomon.cli.nouns import NO_MATCH, Cursor, Id, Limit, Noun, add_get, again
from gnomon.cli.terminal import Column

NOUN = Noun(
    "instances",
    "instance",
    (
        Column("id", "id"),
        Column("role", "role"),
        Column("name", "name", cut=True),
        Column("status", "status"),
        Column("in flight", "in_flight"),
        Column("last heard", "last_heartbeat_at"),
        Column("server", "server"),
    ),
    "No instance has connected yet.",
    "Its id.",
)


def list_instances(
    talk: Talk,
    *,
    role: Annotated[str | None, typer.Option(help="Only those of this role.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only those in this state: online, draining or offline.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List the instances, the first to come first."""
    answer = talk.api.get("/instances", {"role": role, "status": status, "limit": limit, "cursor": cursor})
    more = again("gnomon instances list", role=role, status=status)
    talk.out.listing(answer, NOUN.columns, empty=NO_MATCH if role or status else NOUN.empty, more=more)


def drain(talk: Talk, ref: Id) -> None:
    """Give an instance nothing new; what it has goes on, and it stays so until it was offline."""
    drained = talk.api.post(NOUN.of(ref, "drain"), {})
    talk.out.done(f"{drained['name']} is draining; {drained['in_flight']} in flight.", drained)


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="instances", help="Live processes that work for a role.", rich_help_panel=panel)
    asking(group, "list")(list_instances)
    add_get(group, NOUN, "show")
    asking(group, "drain")(drain)
