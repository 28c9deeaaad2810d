"""``gnomon tasks``: the board from the command line, for people and for workers that speak nothing else (BRD)."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from gnomon.cli.command import Talk, asking
from gnomon.cli.nouns import (
    NO_MATCH,
    Cursor,
    File,
    Id,
    Limit,
    Noun,
    OnceKey,
    Set,
    add_delete,
    add_get,
    again,
    flagged,
    once,
)
from gnomon.cli.terminal import Column, shown

NOUN = Noun(
    "tasks",
    "task",
    (
        Column("id", "id"),
        Column("status", "status"),
        Column("role", "role"),
        Column("title", "title", cut=True, keep=True),
        Column("held by", "held_by.instance"),
        Column("priority", "priority"),
        Column(
            "waits for", lambda task: [need["id"] for need in task.get("waits_for") or []] or None, cut=True
        ),
    ),
    "The board is empty.",
    "Its id.",
)
GRANTED = (
    Column("id", "task.id"),
    Column("fence", "fence"),
    Column("title", "task.title", cut=True),
    Column("verify first", "verify_first"),
    Column("held until", "expires_at"),
)
Role = Annotated[str | None, typer.Option(help="Whose instances may claim it.")]
Title = Annotated[str | None, typer.Option(help="What is to be done, in a line.")]
Text = Annotated[str | None, typer.Option("--body", help="What is to be done, in full.")]
Priority = Annotated[int | None, typer.Option(help="Higher comes first; 0 by itself.")]
Needs = Annotated[
    list[str] | None,
    typer.Option("--needs", help="A task that must be done before, of whatever role. Repeatable."),
]
Fence = Annotated[int, typer.Option(help="The number that the claim was given.")]
Holder = Annotated[
    str | None, typer.Option("--instance", help="Who holds it; needed where another key claimed it.")
]


def create(
    talk: Talk,
    *,
    file: File = None,
    role: Role = None,
    title: Title = None,
    body: Text = None,
    priority: Priority = None,
    needs: Needs = None,
    dedup_key: Annotated[
        str | None, typer.Option(help="The name under which it exists once: a repeat finds what is there.")
    ] = None,
    pairs: Set = None,
    idempotency_key: OnceKey = None,
) -> None:
    r"""Put a task on the board.

    For example:

    gnomon tasks create --role pm \
      --title 'Look at the new issues'
    """
    from gnomon.cli.documents import written

    asked = written(
        file,
        pairs or [],
        role=role,
        title=title,
        body=body,
        priority=priority,
        prerequisites=needs or None,
        dedup_key=dedup_key,
    )
    with flagged(talk, role="--role", title="--title"):
        made = talk.api.post("/tasks", asked, headers=once(idempotency_key))
    talk.out.done(f"Task {made['id']} for {made['role']}: {made['title']}", made)


def list_tasks(
    talk: Talk,
    *,
    role: Annotated[str | None, typer.Option(help="Only those of this role.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only those in this state, as backlog or blocked.")
    ] = None,
    holder: Annotated[str | None, typer.Option(help="Only those that this instance holds.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List the tasks, the oldest first."""
    chosen = {"role": role, "status": status, "holder": holder}
    answer = talk.api.get("/tasks", {**chosen, "limit": limit, "cursor": cursor})
    empty = NO_MATCH if any(chosen.values()) else NOUN.empty
    talk.out.listing(answer, NOUN.columns, empty=empty, more=again("gnomon tasks list", **chosen))


def edit(
    talk: Talk,
    ref: Id,
    *,
    file: File = None,
    role: Role = None,
    title: Title = None,
    body: Text = None,
    priority: Priority = None,
    needs: Needs = None,
    status: Annotated[str | None, typer.Option(help="What it becomes, as done or backlog.")] = None,
    pairs: Set = None,
) -> None:
    """Change fields of a task that nobody holds; what is not named stays."""
    from gnomon.cli.documents import written

    fields: dict[str, Any] = {
        "role": role,
        "title": title,
        "body": body,
        "priority": priority,
        "status": status,
    }
    patch = written(file, pairs or [], prerequisites=needs or None, **fields)
    changed = talk.api.patch(NOUN.of(ref), patch)
    talk.out.done(f"Changed task {ref}; it is {_where(changed)}.", changed)


def claim(
    talk: Talk,
    *,
    role: Annotated[str, typer.Option(help="Whose tasks.")],
    instance: Annotated[str, typer.Option(help="Who works on them: a name that is yours alone.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="At most so many.")] = 1,
    wait: Annotated[
        float | None, typer.Option(min=0, max=30, help="Wait so many seconds where there is nothing yet.")
    ] = None,
    claim_id: Annotated[
        str | None, typer.Option(help="A name of this claim: repeated, it gives what is still held by it.")
    ] = None,
) -> None:
    """Take tasks to work on; they are yours until they expire, or you renew or report them.

    For example:

    gnomon tasks claim --role pm --instance pm-1
    """
    asked: dict[str, Any] = {"role": role, "instance": instance, "limit": limit}
    asked |= {
        name: value for name, value in (("wait_seconds", wait), ("claim_id", claim_id)) if value is not None
    }
    answer = talk.api.post("/tasks/claim", asked)
    talk.out.listing(answer, GRANTED, empty=f"There is nothing to do for {role} now.")


def renew(
    talk: Talk,
    ref: Id,
    *,
    fence: Fence,
    instance: Holder = None,
    note: Annotated[str | None, typer.Option(help="How far it has come.")] = None,
) -> None:
    """Hold a task for another lock window."""
    renewed = talk.api.post(NOUN.of(ref, "renew"), _held(fence, instance, note=note))
    talk.out.done(f"Task {ref} is yours until {shown(renewed['expires_at'])}.", renewed)


def report(
    talk: Talk,
    ref: Id,
    *,
    fence: Fence,
    status: Annotated[
        str, typer.Option(help="What became of it: done, in_review, blocked, cancelled, or backlog.")
    ],
    note: Annotated[str | None, typer.Option(help="What there is to say of it.")] = None,
    result: Annotated[str | None, typer.Option(help="What came out: JSON, or text.")] = None,
    role: Annotated[str | None, typer.Option(help="With backlog: the role that goes on.")] = None,
    instance: Holder = None,
) -> None:
    """Say what became of a task; that releases it."""
    body = _held(fence, instance, status=status, note=note, role=role)
    if result is not None:
        body["result"] = _json_or_text(result)
    task = talk.api.post(NOUN.of(ref, "report"), body)
    talk.out.done(f"Task {ref} is {_where(task)}.", task)


def release(
    talk: Talk,
    ref: Id,
    *,
    reason: Annotated[str | None, typer.Option(help="Why; it stands in the audit.")] = None,
    status: Annotated[
        str | None, typer.Option(help="What it becomes instead of the backlog's again.")
    ] = None,
) -> None:
    """Take a task from whoever holds it; their next word about it is refused."""
    body = {name: value for name, value in (("reason", reason), ("status", status)) if value is not None}
    task = talk.api.post(NOUN.of(ref, "release"), body)
    talk.out.done(f"Task {ref} is {_where(task)}.", task)


def _where(task: Mapping[str, Any]) -> str:
    """Its status, in a sentence."""
    status = str(task["status"])
    return f"in the backlog of {task['role']}" if status == "backlog" else status


def _held(fence: int, instance: str | None, **rest: str | None) -> dict[str, Any]:
    given = {"instance": instance, **rest}
    return {"fence": fence, **{name: value for name, value in given.items() if value is not None}}


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="tasks", help="Tasks: the board, and working on it.", rich_help_panel=panel)
    asking(group, "create")(create)
    asking(group, "list")(list_tasks)
    add_get(group, NOUN, "show")
    asking(group, "edit")(edit)
    asking(group, "patch", hidden=True)(edit)
    asking(group, "claim")(claim)
    asking(group, "renew")(renew)
    asking(group, "report")(report)
    asking(group, "release")(release)
    add_delete(group, NOUN)
