"""What ``apply`` would do: a file of definitions held against what the API has (SCH-13). Pure; asks and changes nothing.

A file has sections, one for each noun, each a list of definitions in the form that the API takes. Agents, teams and
calendars are known by their slug, schedules by their name. What a file doesn't name is left alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from gnomon.cadence import Cadence, CadenceError
from gnomon.domain.errors import Fault

# The order is that of need: a team names agents, a schedule names all three.
SECTIONS: dict[str, str] = {"calendars": "slug", "agents": "slug", "teams": "slug", "schedules": "name"}


class Step(StrEnum):
    """What happens to one definition."""

    CREATE = "create"
    UPDATE = "update"
    KEEP = "unchanged"


@dataclass(frozen=True, slots=True)
class Change:
    """One definition: ``fields`` holds what differs, as (name, what is there, what the file says)."""

    section: str
    name: str
    step: Step
    definition: Mapping[str, Any]
    record: Mapping[str, Any] | None = None
    fields: tuple[tuple[str, Any, Any], ...] = ()


def faults_of(document: Mapping[str, Any]) -> Iterator[Fault]:
    """What makes a file impossible to plan: unknown sections, nameless or repeated definitions."""
    for section, definitions in document.items():
        if section not in SECTIONS:
            yield Fault(section, f"is no section; there are {', '.join(SECTIONS)}")
            continue
        if not isinstance(definitions, list):
            yield Fault(section, "must be a list of definitions")
            continue
        seen: set[str] = set()
        for index, definition in enumerate(definitions):
            place, key = f"{section}.{index}", SECTIONS[section]
            name = definition.get(key) if isinstance(definition, Mapping) else None
            if not isinstance(name, str) or not name:
                yield Fault(place, f"needs a {key}: it is known by that")
            elif name in seen:
                yield Fault(f"{place}.{key}", f"there is another {name!r} in the file")
            else:
                seen.add(name)


def ambiguous(section: str, names: Sequence[str], records: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Definitions whose name several records have: which one is meant can't be told."""
    key = SECTIONS[section]
    for name in names:
        found = [str(record["id"]) for record in records if record[key] == name]
        if len(found) > 1:
            yield Fault(section, f"{name!r} is the {key} of {len(found)} of them: {', '.join(found)}")


def plan(
    section: str,
    definitions: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    slugs: Mapping[str, str],
) -> Iterator[Change]:
    """What each definition of a section would do. ``slugs`` maps ids of agents and teams to their slugs."""
    key = SECTIONS[section]
    by_name = {record[key]: record for record in records}
    for definition in definitions:
        record = by_name.get(definition[key])
        if record is None:
            yield Change(section, definition[key], Step.CREATE, definition)
            continue
        fields = tuple(
            (name, record.get(name), value)
            for name, value in definition.items()
            if not _same(name, value, record.get(name), slugs)
        )
        step = Step.UPDATE if fields else Step.KEEP
        yield Change(section, definition[key], step, definition, record, fields)


def _same(name: str, said: Any, there: Any, slugs: Mapping[str, str]) -> bool:
    """Whether the file says what is there already, however it is written."""
    if said == there:
        return True
    if name == "cadence" and isinstance(said, Mapping) and isinstance(there, Mapping):
        return _same_cadence(said, there)
    if isinstance(said, Mapping) and isinstance(there, Mapping):
        return all(_same(inner, value, there.get(inner), slugs) for inner, value in said.items())
    if isinstance(said, list) and isinstance(there, list):
        return len(said) == len(there) and all(
            _same(name, mine, other, slugs) for mine, other in zip(said, there, strict=True)
        )
    if isinstance(said, str) and isinstance(there, str):
        return slugs.get(there) == said or (name.endswith("_at") and _same_instant(said, there))
    return said in ([], {}, "", None) and there in ([], {}, "", None)


def _same_cadence(said: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    try:
        mine, other = Cadence.parse(dict(said)), Cadence.parse(dict(there))
    except CadenceError:
        return False  # the API says what is wrong with it, better than a plan can
    return mine.to_json() == other.to_json()


def _same_instant(said: str, there: str) -> bool:
    try:
        return datetime.fromisoformat(said) == datetime.fromisoformat(there)
    except (ValueError, TypeError):  # one of them without an offset can't be compared
        return False
