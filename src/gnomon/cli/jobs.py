"""``gnomon jobs``: periodic work that is pushed to one instance of a role, and what became of its slots (JOB-1)."""

from typing import Annotated, Any

import typer

from gnomon.cli.command import Talk, Usage, asking
from gnomon.cli.counting import counted
from gnomon.cli.in_full import job_in_full
from gnomon.cli.names import readable
from gnomon.cli.nouns import (
    NO_MATCH,
    Cursor,
    File,
    Limit,
    Noun,
    OnceKey,
    Ref,
    Set,
    add_delete,
    add_get,
    again,
    flagged,
    named,
    once,
)
from gnomon.cli.preview import COLUMNS as SLOT_COLUMNS
from gnomon.cli.terminal import Column, shown, to_the_minute
from gnomon.cli.wallclock import with_local

NOUN = Noun(
    "jobs",
    "job",
    (
        Column("slug", "slug", keep=True),
        Column("role", "role"),
        Column("enabled", "enabled"),
        Column("next slot", lambda job: to_the_minute(job.get("next_fire_at"))),
        Column("last slot", lambda job: to_the_minute(job.get("last_fire_at"))),
        Column("name", "name", cut=True),
        Column("id", "id"),
    ),
    "There are no jobs yet. `gnomon jobs create --help` shows how to make one.",
    in_full=job_in_full,
)
TRIGGERS = (
    Column("slot", "nominal_fire_at"),
    Column("status", "status"),
    Column("reason", "reason"),
    Column("instance", "instance_id"),
    Column("pushes", "pushes"),
    Column("together", lambda one: one["coalesced"] and counted(one["coalesced"]["count"], "slot")),
    Column("note", "note", cut=True),
    Column("id", "id"),
)
Role = Annotated[str | None, typer.Option("--role", help="Whose instances get it.")]
Name = Annotated[str | None, typer.Option("--name", help="Its name for people.")]
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
Payload = Annotated[
    str | None, typer.Option("--payload", help="What the instance gets with each slot: JSON.")
]
DedupKey = Annotated[
    str | None,
    typer.Option(
        "--dedup-key", help="The name under which a slot's effect exists once, as {{job}}-{{date}}."
    ),
]
Grace = Annotated[int | None, typer.Option("--grace", help="Seconds that a slot waits for an instance.")]


def create(
    talk: Talk,
    *,
    file: File = None,
    slug: Annotated[str | None, typer.Option("--slug", help="Its short name.")] = None,
    name: Name = None,
    role: Role = None,
    cadence: When = None,
    at: At = None,
    zone: Zone = None,
    payload: Payload = None,
    dedup_key: DedupKey = None,
    grace_seconds: Grace = None,
    disabled: Annotated[
        bool, typer.Option("--disabled", help="Make it without letting it fire yet.")
    ] = False,
    pairs: Set = None,
    idempotency_key: OnceKey = None,
) -> None:
    r"""Make a job.

    For example:

    gnomon jobs create --slug digest --role pm \
      --cadence '0 9 * * 1-5' --zone Europe/Berlin \
      --dedup-key '{{job}}-{{date}}'
    """
    body = _written(
        file,
        pairs,
        (cadence, at, zone),
        payload,
        slug=slug,
        name=name,
        role=role,
        dedup_key=dedup_key,
        grace_seconds=grace_seconds,
        enabled=False if disabled else None,
    )
    fields = {"name": "--name", "slug": "--slug", "role": "--role", "dedup_key": "--dedup-key"}
    with flagged(talk, cadence="--cadence or --at", **fields):
        made = talk.api.post("/jobs", body, headers=once(idempotency_key))
    _told(talk, made, "Made", "first")


def list_jobs(
    talk: Talk,
    *,
    role: Annotated[str | None, typer.Option(help="Only those of this role.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List the jobs, the oldest first."""
    answer = talk.api.get("/jobs", {"role": role, "limit": limit, "cursor": cursor})
    more = again("gnomon jobs list", role=role)
    talk.out.listing(answer, NOUN.columns, empty=NO_MATCH if role else NOUN.empty, more=more)


def edit(
    talk: Talk,
    ref: Ref,
    *,
    file: File = None,
    name: Name = None,
    role: Role = None,
    cadence: When = None,
    at: At = None,
    zone: Zone = None,
    payload: Payload = None,
    dedup_key: DedupKey = None,
    grace_seconds: Grace = None,
    pairs: Set = None,
) -> None:
    """Change fields of one job; what is not named stays.

    A cadence is changed as a whole: --zone goes with --cadence or --at. So is a payload.
    """
    body = _written(
        file,
        pairs,
        (cadence, at, zone),
        payload,
        name=name,
        role=role,
        dedup_key=dedup_key,
        grace_seconds=grace_seconds,
    )
    _told(talk, talk.api.patch(NOUN.of(ref), body), "Changed")


def enable(talk: Talk, ref: Ref) -> None:
    """Let a job fire, from its next slot on."""
    _told(talk, talk.api.patch(NOUN.of(ref), {"enabled": True}), "Enabled")


def disable(talk: Talk, ref: Ref) -> None:
    """Let a job fire no more; what was pushed already goes on."""
    _told(talk, talk.api.patch(NOUN.of(ref), {"enabled": False}), "Disabled")


def triggers(
    talk: Talk,
    ref: Ref,
    *,
    status: Annotated[
        str | None,
        typer.Option(help="Only those that are pending, pushed, acknowledged, succeeded, failed or missed."),
    ] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> None:
    """List what became of a job's slots, the latest first."""
    answer = talk.api.get(NOUN.of(ref, "triggers"), {"status": status, "limit": limit, "cursor": cursor})
    more = again(f"gnomon jobs triggers {ref}", status=status)
    talk.out.listing(answer, TRIGGERS, empty=NO_MATCH if status else "No slot has come yet.", more=more)


def next_slots(
    talk: Talk, ref: Ref, *, count: Annotated[int, typer.Option(min=1, max=100, help="How many.")] = 5
) -> None:
    """Show the next slots of a job."""
    answer = talk.api.get(NOUN.of(ref, "next"), {"count": count})
    job = None if answer["items"] or talk.out.as_json else readable(talk, NOUN.of(ref))
    why = ": it is disabled" if job is not None and not job["enabled"] else ""
    talk.out.listing(answer, SLOT_COLUMNS, empty=f"No slot is to come{why}.")


def _told(talk: Talk, job: dict[str, Any], done: str, which: str = "next") -> None:
    talk.out.done(f"{done} job {named(job)}.", job)
    if job.get("next_fire_at") and not talk.out.as_json:
        talk.out.sentence(f"Its {which} slot: {shown(with_local(job['next_fire_at'], job['cadence']))}.")


def _written(
    file: str | None,
    pairs: list[str] | None,
    when: tuple[str | None, str | None, str | None],
    payload: str | None,
    **fields: Any,
) -> dict[str, Any]:
    """What a file, the flags and ``--set`` say of a job."""
    import json

    from gnomon.cli.documents import written
    from gnomon.cli.preview import cadence_of

    if payload is not None:
        try:
            fields["payload"] = json.loads(payload)
        except ValueError as error:
            raise Usage(f"--payload has to be JSON: {error}.") from error
    return written(file, pairs or [], cadence=cadence_of(*when), **fields)


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(
        group, name="jobs", help="Jobs: periodic work that is pushed to a role.", rich_help_panel=panel
    )
    asking(group, "create")(create)
    asking(group, "list")(list_jobs)
    add_get(group, NOUN, "show")
    asking(group, "edit")(edit)
    asking(group, "patch", hidden=True)(edit)
    asking(group, "enable")(enable)
    asking(group, "disable")(disable)
    asking(group, "triggers")(triggers)
    asking(group, "next")(next_slots)
    add_delete(group, NOUN)
