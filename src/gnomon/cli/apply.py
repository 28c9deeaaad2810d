"""``gnomon apply`` and ``gnomon export``: definitions as code, with a plan first, safe to repeat (SCH-13)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.command import Failed, Talk, Usage, asking
from gnomon.cli.terminal import Terminal, paint, shown

if TYPE_CHECKING:
    from gnomon.cli.api import Api
    from gnomon.cli.plan import Change

MARKS = {"create": ("+", "green"), "update": ("~", "yellow"), "unchanged": ("=", None)}
# What a record has beside its definition, and an export leaves out.
READ_ONLY = frozenset(
    [
        "id",
        "version",
        "revision",
        "status",
        "status_detail",
        "next_fire_at",
        "last_fire_at",
        "run_count",
        "failure_streak",
        "last_error",
        "in_flight_run_id",
        "secret",
        "created_at",
        "created_by",
        "updated_at",
        "updated_by",
        "deleted_at",
        "hint",
    ]
)


def apply(
    talk: Talk,
    *,
    file: Annotated[
        str, typer.Option("--file", "-f", help="The file, as YAML or JSON; - is standard input.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask after the plan.")] = False,
) -> None:
    """Make what a file says: agents, teams, calendars and schedules.

    What is there already as the file says stays as it is, and what the file does not name is left alone.
    """
    from gnomon.cli.documents import read_mapping

    changes = planned(talk.api, read_mapping(file))
    out = talk.out
    todo = [change for change in changes if change.fields or change.record is None]
    for text in _told(out, changes):
        out.line(text)
    if todo and not dry_run and not yes:
        _ask(out)
    if not dry_run:
        for change in todo:
            carry_out(talk.api, change)
    steps = Counter(change.step.value for change in changes)
    if out.as_json:
        out.data({"applied": not dry_run, "changes": [_as_json(change) for change in changes]})
    elif not todo:
        out.line("Nothing to do: everything is as the file says.")
    else:
        said = "Would create" if dry_run else "Created"
        out.line(f"{said} {steps['create']}, {'change' if dry_run else 'changed'} {steps['update']}.")


def export(talk: Talk) -> None:
    """Print everything as a file for `gnomon apply`."""
    from gnomon.cli.documents import to_yaml
    from gnomon.cli.plan import SECTIONS

    slugs = _slugs(talk.api)
    document = {
        section: [_definition(record, slugs) for record in talk.api.every(f"/{section}")]
        for section in SECTIONS
    }
    if talk.out.as_json:
        talk.out.data(document)
    else:
        talk.out.line(to_yaml({name: found for name, found in document.items() if found}).rstrip())


def planned(api: "Api", document: Mapping[str, Any]) -> "list[Change]":
    """What each definition of a document would do; asks the API and changes nothing."""
    from gnomon.cli.plan import SECTIONS, ambiguous, faults_of, plan

    faults = list(faults_of(document))
    if not faults:
        sections = [section for section in SECTIONS if document.get(section)]
        slugs = _slugs(api)
        records = {section: list(api.every(f"/{section}")) for section in sections}
        for section in sections:
            names = [definition[SECTIONS[section]] for definition in document[section]]
            faults += ambiguous(section, names, records[section])
    if faults:
        problem = {"detail": "This file can't be applied.", "code": "invalid"}
        raise Failed(
            {**problem, "errors": [{"field": each.field, "message": each.message} for each in faults]}
        )
    return [
        change for section in sections for change in plan(section, document[section], records[section], slugs)
    ]


def carry_out(api: "Api", change: "Change") -> dict[str, Any]:
    """Do one change of a plan; refused where the record has changed since the plan was made."""
    try:
        if change.record is None:
            made: dict[str, Any] = api.post(f"/{change.section}", dict(change.definition))
            return made
        tag = change.record.get("revision") or change.record.get("version")
        headers = {} if tag is None else {"If-Match": f'"{tag}"'}
        fields = {name: said for name, _, said in change.fields}
        changed: dict[str, Any] = api.patch(
            f"/{change.section}/{change.record['id']}", fields, headers=headers
        )
    except Failed as error:
        where = f"{change.section} {change.name}"
        problem = {**error.problem, "detail": f"{where}: {error.problem.get('detail')}"}
        raise Failed(problem, error.code) from error
    return changed


def _slugs(api: "Api") -> dict[str, str]:
    return {record["id"]: record["slug"] for noun in ("agents", "teams") for record in api.every(f"/{noun}")}


def _definition(record: Mapping[str, Any], slugs: Mapping[str, str]) -> dict[str, Any]:
    """A record in the form in which it is written: what is set by the centre or not set at all is left out."""
    kept = {
        name: value
        for name, value in record.items()
        if name not in READ_ONLY and value not in (None, [], {}, "")
    }
    if "target" in kept:
        kept["target"] = {**kept["target"], "id": slugs.get(kept["target"]["id"], kept["target"]["id"])}
    if "nodes" in kept:
        kept["nodes"] = [{**node, "agent": slugs.get(node["agent"], node["agent"])} for node in kept["nodes"]]
    return kept


def _told(out: Terminal, changes: "Sequence[Change]") -> Iterator[str]:
    import sys

    for change in changes:
        mark, colour = MARKS[change.step.value]
        text = f"{mark} {change.section.removesuffix('s')} {change.name}"
        yield paint(text, colour if out.coloured(sys.stdout) else None)
        for name, there, said in change.fields:
            yield f"    {name}: {_short(there)} -> {_short(said)}"


def _short(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _ask(out: Terminal) -> None:
    import sys

    if out.as_json or not sys.stdin.isatty():
        raise Usage("Nobody is here to ask: add --yes to go ahead, or --dry-run to see the plan alone.")
    if not typer.confirm("Go ahead?"):
        raise Failed("Nothing was changed.")


def _as_json(change: "Change") -> dict[str, Any]:
    return {
        "section": change.section,
        "name": change.name,
        "step": change.step.value,
        "fields": [{"field": name, "from": there, "to": said} for name, there, said in change.fields],
    }


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    asking(app, "apply", rich_help_panel=panel)(apply)
    asking(app, "export", rich_help_panel=panel)(export)
