"""``gnomon schedules``: make, change, pause, resume, and run by hand. Looking at their slots is in ``slots``."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from gnomon.cli.command import Talk, Usage, asking
from gnomon.cli.in_full import schedule_in_full
from gnomon.cli.names import Names, readable, schedule_called, with_names
from gnomon.cli.nouns import (
    NO_MATCH,
    Cursor,
    File,
    Limit,
    Noun,
    OnceKey,
    Set,
    add_delete,
    add_get,
    again,
    flagged,
    named,
    once,
)
from gnomon.cli.runs import wait_for
from gnomon.cli.slots import Called, register_slots, when
from gnomon.cli.terminal import Column, shown, to_the_minute
from gnomon.cli.wallclock import moved, with_local

NOUN = Noun(
    "schedules",
    "schedule",
    (
        Column("name", "name", cut=True),
        Column("target", "called", cut=True),
        Column("status", "status"),
        Column("next slot", lambda schedule: to_the_minute(schedule.get("next_fire_at"))),
        Column("id", "id", keep=True),
        Column("fired", "run_count"),
        Column("last slot", lambda schedule: to_the_minute(schedule.get("last_fire_at"))),
    ),
    "There are no schedules yet. `gnomon schedules create --help` shows how to make one.",
    "Its id, or its name where no other schedule has it.",
    schedule_called,
    schedule_in_full,
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
    told = with_names(talk, talk.api.get("/schedules", query), called=Names.target)
    more = again("gnomon schedules list", status=status, target=target)
    talk.out.listing(told, NOUN.columns, empty=NO_MATCH if status or target else NOUN.empty, more=more)


Name = Annotated[str | None, typer.Option("--name", help="Its name for people.")]
Agent = Annotated[str | None, typer.Option("--agent", help="It fires this agent: id or slug.")]
Team = Annotated[str | None, typer.Option("--team", help="It fires this team: id or slug.")]
When = Annotated[
    str | None,
    typer.Option(
        "--cadence", help="When: JSON, @FILE, a cron line, or an RRULE. `gnomon preview` tries one."
    ),
]
At = Annotated[
    str | None,
    typer.Option("--at", help="When, for one slot alone: 2027-01-05T09:00, by the wall clock of --zone."),
]
Zone = Annotated[str | None, typer.Option("--zone", help="The zone of its wall clock.", show_default="UTC")]
Query = Annotated[
    str | None, typer.Option("--query", help="What to ask; {{date}} and {{now}} are the slot's.")
]
Overlap = Annotated[
    str | None,
    typer.Option("--overlap", help="While a run goes on: skip, queue_one, cancel_running or allow."),
]
Timeout = Annotated[int | None, typer.Option("--timeout", help="Seconds for one attempt.")]
DedupKey = Annotated[
    str | None,
    typer.Option("--dedup-key", help="The name under which a slot's effect exists once, as report-{{date}}."),
]


def create(
    talk: Talk,
    *,
    file: File = None,
    name: Name = None,
    agent: Agent = None,
    team: Team = None,
    cadence: When = None,
    at: At = None,
    zone: Zone = None,
    query: Query = None,
    overlap: Overlap = None,
    timeout_seconds: Timeout = None,
    dedup_key: DedupKey = None,
    pairs: Set = None,
    idempotency_key: OnceKey = None,
) -> None:
    r"""Make a schedule.

    For example:

    gnomon schedules create --name Digest --agent digest \
      --cadence '0 9 * * 1-5' --zone Europe/Berlin \
      --query 'Sum up {{date}}'
    """
    body = _written(
        file,
        pairs,
        (agent, team),
        (cadence, at, zone),
        name=name,
        query=query,
        overlap=overlap,
        timeout_seconds=timeout_seconds,
        dedup_key=dedup_key,
    )
    with flagged(
        talk, name="--name", target="--agent or --team", cadence="--cadence or --at", query="--query"
    ):
        made = talk.api.post("/schedules", body, headers=once(idempotency_key))
    talk.out.done(f"Made schedule {named(made)}.", made)
    _tell_slot(talk, made, "first")


def patch(
    talk: Talk,
    ref: Called,
    *,
    file: File = None,
    name: Name = None,
    agent: Agent = None,
    team: Team = None,
    cadence: When = None,
    at: At = None,
    zone: Zone = None,
    query: Query = None,
    overlap: Overlap = None,
    timeout_seconds: Timeout = None,
    dedup_key: DedupKey = None,
    pairs: Set = None,
) -> None:
    """Change fields of one schedule; what is not named stays.

    A cadence is changed as a whole: --zone goes with --cadence or --at.
    """
    body = _written(
        file,
        pairs,
        (agent, team),
        (cadence, at, zone),
        name=name,
        query=query,
        overlap=overlap,
        timeout_seconds=timeout_seconds,
        dedup_key=dedup_key,
    )
    changed = talk.api.patch(NOUN.named(talk, ref), body)
    talk.out.done(f"Changed schedule {named(changed)}.", changed)
    _tell_slot(talk, changed, "next")


def _tell_slot(talk: Talk, schedule: Mapping[str, Any], which: str) -> None:
    """The slot that is to come, also by the schedule's own clock, and what a clock change made of it."""
    if talk.out.as_json:
        return
    slot = with_local(schedule.get("next_fire_at"), schedule["cadence"])
    talk.out.sentence(
        f"It has no next slot: it is {schedule['status']}."
        if slot is None
        else f"Its {which} slot: {shown(slot)}."
    )
    if (told := moved(schedule["cadence"])) is not None:
        talk.out.sentence(told)


def _written(
    file: str | None,
    pairs: list[str] | None,
    target: tuple[str | None, str | None],
    when: tuple[str | None, str | None, str | None],
    **fields: Any,
) -> dict[str, Any]:
    """What a file, the flags and ``--set`` say of a schedule."""
    from gnomon.cli.documents import written
    from gnomon.cli.preview import cadence_of

    return written(file, pairs or [], target=_target(*target), cadence=cadence_of(*when), **fields)


def pause(
    talk: Talk,
    ref: Called,
    *,
    reason: Annotated[str | None, typer.Option(help="Why, for whoever wonders later.")] = None,
    until: Annotated[
        str | None, typer.Option(help="Go on by itself then: an instant, or a time of its own clock.")
    ] = None,
) -> None:
    """Stop firing until it is resumed; a run in flight goes on."""
    place = NOUN.named(talk, ref)
    body: dict[str, Any] = {} if reason is None else {"reason": reason}
    meant = None
    if until is not None:
        body["until"], meant = when(talk, place, until, "--until")
    paused, changed = _moved(talk, place, "pause", body)
    since = f"by {paused['status_detail']['by']} since {shown(paused['status_detail']['at'])}"
    talk.out.done(
        f"Paused schedule {named(paused)}."
        if changed
        else f"Schedule {named(paused)} was paused already, {since}. Nothing was changed.",
        paused,
    )
    if meant is not None:
        talk.out.sentence(meant.sentence)


def resume(talk: Talk, ref: Called) -> None:
    """Go on firing, from the next slot on."""
    resumed, changed = _moved(talk, NOUN.named(talk, ref), "resume", {})
    talk.out.done(
        f"Resumed schedule {named(resumed)}."
        if changed
        else f"Schedule {named(resumed)} was active already. Nothing was changed.",
        resumed,
    )
    _tell_slot(talk, resumed, "next")


def _moved(talk: Talk, place: str, verb: str, body: Mapping[str, Any]) -> tuple[Any, bool]:
    """A schedule after a change of its status, and whether there was one; a program is not told, and sees it."""
    before = None if talk.out.as_json else readable(talk, place)
    after = talk.api.post(f"{place}/{verb}", body)
    return after, before is None or before["status_detail"] != after["status_detail"]


def run(
    talk: Talk,
    ref: Called,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is over, and end as it ends.")] = False,
    idempotency_key: OnceKey = None,
) -> None:
    """Run it now, once; its slots and its cadence stay as they are."""
    made = talk.api.post(NOUN.named(talk, ref, "run"), {}, headers=once(idempotency_key))
    if wait:
        wait_for(talk, made["id"])
        return
    talk.out.done(f"Started {made['id']}. To follow it:", made)
    talk.out.line(f"    gnomon runs tail {made['id']}")


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
    asking(group, "patch")(patch)
    add_delete(group, NOUN)
    asking(group, "pause")(pause)
    asking(group, "resume")(resume)
    asking(group, "run")(run)
    register_slots(group, app, NOUN)
