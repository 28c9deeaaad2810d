"""``gnomon runs``: what ran, what runs, and following one to its end."""

import time
from typing import Annotated, Any

import typer

from gnomon.cli.command import Exit, Talk, asking
from gnomon.cli.in_full import run_in_full
from gnomon.cli.nouns import NO_MATCH, Cursor, Id, Limit, Noun, add_get, again
from gnomon.cli.terminal import Column, shown

COLUMNS = (
    Column("id", "id"),
    Column("status", "status"),
    Column("started", lambda run: run.get("started_at") or run.get("scheduled_for")),
    Column(
        "seconds",
        lambda run: None if run.get("duration_seconds") is None else round(run["duration_seconds"], 2),
    ),
    Column("trigger", "trigger"),
    Column("error", lambda run: (run.get("error") or {}).get("code")),
)
# A list over many schedules says first what each run is one of; the runs of one schedule all are of that.
OF_ALL = (
    COLUMNS[0],
    Column("target", "called", cut=True),
    *COLUMNS[1:4],
    Column("schedule", "schedule_called", cut=True),
    *COLUMNS[4:],
)
NOUN = Noun("runs", "run", OF_ALL, "Nothing has run yet.", "Its id.", in_full=run_in_full)
OVER = frozenset({"succeeded", "failed", "timed_out", "cancelled", "lost"})
POLL_SECONDS = 0.5
MANY = 2


def list_runs(
    talk: Talk,
    *,
    status: Annotated[
        str | None, typer.Option(help="Only those in this state, as running or failed.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Only those of this agent or team.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> None:
    """List the runs, the latest first."""
    from gnomon.cli.names import Names, with_names

    answer = talk.api.get("/runs", {"status": status, "target": target, "limit": limit, "cursor": cursor})
    told = with_names(talk, answer, called=Names.target, schedule_called=Names.schedule)
    more = again("gnomon runs list", status=status, target=target)
    talk.out.listing(told, OF_ALL, empty=NO_MATCH if status or target else NOUN.empty, more=more)


def cancel(talk: Talk, ref: Id) -> None:
    """Ask a run to stop; it is ended by force after a grace."""
    asked = talk.api.post(NOUN.of(ref, "cancel"), {})
    over = asked.get("status") == "cancelled"
    talk.out.done(
        f"Cancelled run {ref}." if over else f"Asked run {ref} to stop; it is still running.", asked
    )


def tail(talk: Talk, ref: Id) -> None:
    """Follow a run to its end; ends as the run ends."""
    wait_for(talk, ref)


def wait_for(talk: Talk, run_id: str) -> None:
    """Print what happens to a run until it is over; exit code 0 where it succeeded."""
    run = _followed(talk, run_id) if talk.api.local else _streamed(talk, run_id)
    if talk.out.as_json:
        talk.out.event({"event": "end", "data": run})
    elif run.get("status") == "succeeded":
        talk.out.line(run.get("output") or run.get("response_preview") or "")
    else:
        error = run.get("error") or {}
        talk.out.note(f"The run {run.get('status')}: {error.get('message') or error.get('code') or '-'}")
    if run.get("status") != "succeeded":
        raise typer.Exit(Exit.FAILED)


def _followed(talk: Talk, run_id: str) -> dict[str, Any]:
    """Look at the record until it is over: another process works on it, and nobody tells this one."""
    seen: tuple[Any, ...] = ()
    while True:
        run: dict[str, Any] = talk.api.get(NOUN.of(run_id))
        state = (run["status"], len(run.get("attempts") or []))
        if state != seen:
            seen = state
            _tell(talk, "status", {"run_id": run["id"], "status": run["status"], "attempt": state[1]})
        if run["status"] in OVER:
            return run
        time.sleep(POLL_SECONDS)  # noqa: TID251 - this process has nothing else to do than to look again


def _streamed(talk: Talk, run_id: str) -> dict[str, Any]:
    for name, data in talk.api.events(f"/runs/{run_id}/events"):
        _tell(talk, name, data)
    run: dict[str, Any] = talk.api.get(NOUN.of(run_id))
    return run if run["status"] in OVER else _followed(talk, run_id)


def _tell(talk: Talk, name: str, data: Any) -> None:
    if talk.out.as_json:
        talk.out.event({"event": name, "data": data})
    elif name == "status":
        tried = data.get("attempt") or 0
        talk.out.note(data["status"] if tried < MANY else f"{data['status']}, attempt {tried}")
    else:
        talk.out.note(f"{name}: {shown(data)}")


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="runs", help="Runs: what ran, what runs.", rich_help_panel=panel)
    asking(group, "list")(list_runs)
    add_get(group, NOUN)
    asking(group, "cancel")(cancel)
    asking(group, "tail")(tail)
