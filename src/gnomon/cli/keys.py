"""``gnomon keys``: API keys, shown once (SEC-3). Making one works on the database itself, which is how one gets the first."""

from typing import Annotated, Any

import typer

from gnomon.cli.command import Talk, Usage, asking
from gnomon.cli.nouns import Noun, add_delete, add_get, add_list, add_patch
from gnomon.cli.terminal import Column

NOUN = Noun(
    "keys",
    "key",
    (
        Column("id", "id"),
        Column(
            "opens", lambda key: key["scopes"] or f"{key['target']['kind']} {key['target']['id']}", cut=True
        ),
        Column("name", "name", cut=True),
        Column("ends with", "hint"),
        Column("last used", "last_used_at"),
        Column("expires", "expires_at"),
    ),
    "There are no keys. `gnomon keys create --scope '*'` makes one that may do everything.",
    "Its id.",
)


def create(
    talk: Talk,
    *,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="What it may do, as schedules:read; '*' is everything. Repeatable."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="It can invoke this agent and nothing else.")] = None,
    team: Annotated[str | None, typer.Option(help="It can invoke this team and nothing else.")] = None,
    role: Annotated[
        str | None, typer.Option(help="It connects and claims for this role alone; with --scope.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its name for people.")] = None,
    expires_at: Annotated[
        str | None, typer.Option("--expires", help="It opens nothing from then on.")
    ] = None,
) -> None:
    """Make a key; its text is printed here and never again.

    For example:

    gnomon keys create --scope '*' --json
    """
    from gnomon.cli.preview import instant

    if sum(bool(each) for each in (scope, agent, team)) != 1:
        raise Usage("Say what it opens: --scope (repeatable), --agent or --team.")
    body: dict[str, Any] = {"scopes": scope} if scope else {}
    if agent or team:
        body["target"] = {"kind": "agent" if agent else "team", "id": agent or team}
    body |= {field: value for field, value in (("role", role), ("name", name)) if value is not None}
    if expires_at is not None:
        body["expires_at"] = instant(expires_at, "--expires").isoformat().replace("+00:00", "Z")
    made = talk.api.post("/keys", body)
    if talk.out.as_json:
        talk.out.data(made)
        return
    talk.out.line(made["key"])
    talk.out.note(f"This is key {made['id']}. It is not shown again.")


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="keys", help="API keys: make, list, revoke.", rich_help_panel=panel)
    add_list(group, NOUN)
    add_get(group, NOUN)
    asking(group, "create", creates=True)(create)
    add_patch(group, NOUN)
    add_delete(
        group, NOUN, verb="revoke", help_text="End one key: from the next request on it opens nothing."
    )
