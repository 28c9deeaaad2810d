"""``gnomon schedules``: make, change, pause, resume, and run by hand. Looking at their slots is in ``slots``."""

from typing import Annotated, Any

import typer

from gnomon.cli.command import Talk, Usage, asking
from gnomon.cli.nouns import (
    Cursor,
    File,
    Limit,
    Noun,
    OnceKey,
    Ref,
    Set,
    add_delete,
    add_get,
    add_patch,
    named,
    once,
)
from gnomon.cli.runs import wait_for
from gnomon.cli.slots import register_slots
from gnomon.cli.terminal import Column, shown

NOUN = Noun(
    "schedules",
    "schedule",
    (
        Column("id", "id"),
        Column("name", "name", cut=True),
        Column("status", "status"),
        Column("next slot", "next_fire_at"),
        Column("runs", "run_count"),
        Column("last slot", "last_fire_at"),
    ),
    "There are no schedules yet. `gnomon schedules create --help` shows how to make one.",
)


def list_schedules(
    talk: Talk,
    *,
    status: Annotated[
        str | None, typer.Option(help="Only those that are active, paused, completed, error or disabled.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Only those of this agent or team.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List the schedules."""
    query = {"status": status, "target": target, "limit": limit, "cursor": cursor}
    talk.out.listing(
        talk.api.get("/schedules", query), NOUN.columns, empty=NOUN.empty, more="gnomon schedules list"
    )


def create(
    talk: Talk,
    *,
    file: File = None,
    name: Annotated[str | None, typer.Option(help="Its name for people.")] = None,
    agent: Annotated[str | None, typer.Option(help="It fires this agent: id or slug.")] = None,
    team: Annotated[str | None, typer.Option(help="It fires this team: id or slug.")] = None,
    cadence: Annotated[
        str | None,
        typer.Option(help="When: JSON, @FILE, a cron line, or an RRULE. `gnomon preview` tries one."),
    ] = None,
    zone: Annotated[str | None, typer.Option(help="The zone of its wall clock.")] = None,
    query: Annotated[
        str | None, typer.Option(help="What to ask; {{date}} and {{now}} are the slot's.")
    ] = None,
    overlap: Annotated[
        str | None, typer.Option(help="While a run goes on: skip, queue_one, cancel_running or allow.")
    ] = None,
    timeout_seconds: Annotated[int | None, typer.Option("--timeout", help="Seconds for one attempt.")] = None,
    dedup_key: Annotated[
        str | None, typer.Option(help="The name under which a slot's effect exists once, as report-{{date}}.")
    ] = None,
    pairs: Set = None,
    idempotency_key: OnceKey = None,
) -> None:
    """Make a schedule.

    For example: gnomon schedules create --name Digest --agent digest
    --cadence '0 9 * * 1-5' --zone Europe/Berlin --query 'Sum up {{date}}'
    """
    from gnomon.cli.documents import written
    from gnomon.cli.preview import read_cadence

    if cadence is None and zone is not None:
        raise Usage("--zone goes with --cadence.")
    body = written(
        file,
        pairs or [],
        name=name,
        target=_target(agent, team),
        cadence=None if cadence is None else read_cadence(cadence, zone),
        query=query,
        overlap=overlap,
        timeout_seconds=timeout_seconds,
        dedup_key=dedup_key,
    )
    made = talk.api.post("/schedules", body, headers=once(idempotency_key))
    talk.out.done(f"Made schedule {named(made)}. Its first slot: {shown(made.get('next_fire_at'))}.", made)


def pause(
    talk: Talk,
    ref: Ref,
    *,
    reason: Annotated[str | None, typer.Option(help="Why, for whoever wonders later.")] = None,
    until: Annotated[str | None, typer.Option(help="Go on by itself at this instant.")] = None,
) -> None:
    """Stop firing until it is resumed; a run in flight goes on."""
    from gnomon.cli.preview import instant

    body: dict[str, Any] = {} if reason is None else {"reason": reason}
    if until is not None:
        body["until"] = instant(until, "--until").isoformat().replace("+00:00", "Z")
    paused = talk.api.post(NOUN.of(ref, "pause"), body)
    talk.out.done(f"Paused schedule {named(paused)}.", paused)


def resume(talk: Talk, ref: Ref) -> None:
    """Go on firing, from the next slot on."""
    resumed = talk.api.post(NOUN.of(ref, "resume"), {})
    talk.out.done(
        f"Resumed schedule {named(resumed)}. Its next slot: {shown(resumed.get('next_fire_at'))}.", resumed
    )


def run(
    talk: Talk,
    ref: Ref,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is over, and end as it ends.")] = False,
    idempotency_key: OnceKey = None,
) -> None:
    """Run it now, once; its slots and its cadence stay as they are."""
    made = talk.api.post(NOUN.of(ref, "run"), {}, headers=once(idempotency_key))
    if wait:
        wait_for(talk, made["id"])
        return
    talk.out.done(f"Started run {made['id']}. `gnomon runs tail {made['id']}` follows it.", made)


def _target(agent: str | None, team: str | None) -> dict[str, str] | None:
    if agent is not None and team is not None:
        raise Usage("A schedule fires one thing: name --agent or --team.")
    if agent is None and team is None:
        return None
    return {"kind": "agent", "id": agent} if agent is not None else {"kind": "team", "id": team or ""}


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(
        group,
        name="schedules",
        help="Schedules: make, change, pause, run, look ahead.",
        rich_help_panel=panel,
    )
    asking(group, "list")(list_schedules)
    add_get(group, NOUN)
    asking(group, "create")(create)
    add_patch(group, NOUN)
    add_delete(group, NOUN)
    asking(group, "pause")(pause)
    asking(group, "resume")(resume)
    asking(group, "run")(run)
    register_slots(group, app, NOUN)
