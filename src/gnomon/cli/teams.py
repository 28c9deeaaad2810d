"""``gnomon teams``: graphs of agents, and what is wrong with one (TGT-3)."""

from typing import Annotated

import typer

from gnomon.cli.command import Exit, Talk, asking
from gnomon.cli.names import schedules_left
from gnomon.cli.nouns import (
    File,
    Noun,
    OnceKey,
    Ref,
    Set,
    add_delete,
    add_get,
    add_list,
    add_patch,
    named,
    once,
)
from gnomon.cli.terminal import Column

NOUN = Noun(
    "teams",
    "team",
    (
        Column("slug", "slug"),
        Column("nodes", lambda team: " ".join(node["id"] for node in team.get("nodes", [])), cut=True),
        Column("output", "output"),
        Column("name", "name", cut=True),
        Column("id", "id"),
    ),
    "There are no teams yet. `gnomon teams create -f FILE` makes one.",
)


def create(
    talk: Talk,
    *,
    file: File = None,
    slug: Annotated[str | None, typer.Option(help="Its short name in addresses and commands.")] = None,
    name: Annotated[str | None, typer.Option(help="Its name for people.")] = None,
    pairs: Set = None,
    idempotency_key: OnceKey = None,
) -> None:
    """Make a team from a file that lists its nodes.

    Each node has an id, an agent, a query, and after: the nodes it waits for.
    """
    from gnomon.cli.documents import written

    body = written(file, pairs or [], slug=slug, name=name or (None if file else slug))
    made = talk.api.post("/teams", body, headers=once(idempotency_key))
    talk.out.done(f"Made team {named(made)}.", made)


def check(talk: Talk, ref: Ref) -> None:
    """Say everything that is wrong with a team's graph."""
    found = talk.api.post(NOUN.of(ref, "check"))
    faults = found["faults"]
    if talk.out.as_json:
        talk.out.data(found)
    elif not faults:
        talk.out.line(f"Team {ref} can be invoked.")
    else:
        talk.out.line(f"Team {ref} can't be invoked:")
        for fault in faults:
            talk.out.line(f"  {fault['field']}: {fault['message']}")
    if faults:
        raise typer.Exit(Exit.FAILED)


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="teams", help="Teams: graphs of agents.", rich_help_panel=panel)
    add_list(group, NOUN)
    add_get(group, NOUN)
    asking(group, "create")(create)
    add_patch(group, NOUN)
    add_delete(group, NOUN, left=schedules_left)
    asking(group, "check")(check)
