"""``gnomon agents``: what a schedule, a team or a key can fire."""

import shlex
from typing import Annotated, Any

import typer

from gnomon.cli.command import Talk, Usage, asking
from gnomon.cli.names import schedules_left
from gnomon.cli.nouns import (
    File,
    Noun,
    OnceKey,
    Set,
    add_delete,
    add_get,
    add_list,
    add_patch,
    flagged,
    named,
    once,
)
from gnomon.cli.terminal import Column

NOUN = Noun(
    "agents",
    "agent",
    (
        Column("slug", "slug"),
        Column("kind", "runtime.kind"),
        Column("name", "name", cut=True),
        Column("enabled", "enabled"),
        Column("id", "id"),
    ),
    "There are no agents yet. `gnomon agents create --help` shows how to make one.",
)


def create(
    talk: Talk,
    *,
    file: File = None,
    slug: Annotated[str | None, typer.Option(help="Its short name in addresses and commands.")] = None,
    name: Annotated[str | None, typer.Option(help="Its name for people.")] = None,
    http: Annotated[str | None, typer.Option(help="It is a service at this URL.", metavar="URL")] = None,
    command: Annotated[
        str | None, typer.Option(help="It is this program with these arguments; no shell is involved.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="It is this callable.", metavar="MODULE:CALLABLE")
    ] = None,
    llm: Annotated[
        str | None, typer.Option(help="It is this model; test answers offline.", metavar="MODEL")
    ] = None,
    instructions: Annotated[str | None, typer.Option(help="The instructions of the model.")] = None,
    role: Annotated[str | None, typer.Option(help="It is one connected instance of this role.")] = None,
    timeout_seconds: Annotated[int | None, typer.Option("--timeout", help="Seconds for one run.")] = None,
    daily_cap: Annotated[int | None, typer.Option(help="At most so many runs a day.")] = None,
    pairs: Set = None,
    idempotency_key: OnceKey = None,
) -> None:
    r"""Make an agent.

    For example:

    gnomon agents create --slug digest \
      --command 'python3 digest.py'
    """
    from gnomon.cli.documents import written

    body = written(
        file,
        pairs or [],
        slug=slug,
        name=name or (None if file else slug),
        runtime=_runtime(http, command, python, llm=llm, instructions=instructions, role=role),
        timeout_seconds=timeout_seconds,
        daily_cap=daily_cap,
    )
    kinds = "--http, --command, --python, --llm or --role"
    with flagged(talk, slug="--slug", name="--slug or --name", runtime=kinds):
        made = talk.api.post("/agents", body, headers=once(idempotency_key))
    talk.out.done(f"Made agent {named(made)}.", made)
    if made.get("secret"):
        talk.out.line(f"Its requests are signed with {made['secret']}, which is not shown again.")


def _runtime(
    http: str | None,
    command: str | None,
    python: str | None,
    *,
    llm: str | None,
    instructions: str | None,
    role: str | None,
) -> dict[str, Any] | None:
    given: list[dict[str, Any]] = []
    if http is not None:
        given.append({"kind": "http", "url": http})
    if command is not None:
        try:
            given.append({"kind": "command", "argv": shlex.split(command)})
        except ValueError as error:
            raise Usage(f"--command: {error}.") from error
    if python is not None:
        given.append({"kind": "python", "path": python})
    if llm is not None:
        extra = {} if instructions is None else {"instructions": instructions}
        given.append({"kind": "llm", "model": llm, **extra})
    if role is not None:
        given.append({"kind": "role", "role": role})
    if len(given) > 1:
        raise Usage("An agent is one thing: name one of --http, --command, --python, --llm and --role.")
    return given[0] if given else None


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="agents", help="Agents: make, list, change.", rich_help_panel=panel)
    add_list(group, NOUN)
    add_get(group, NOUN)
    asking(group, "create")(create)
    add_patch(group, NOUN)
    add_delete(group, NOUN, left=schedules_left)
