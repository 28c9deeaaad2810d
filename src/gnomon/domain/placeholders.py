"""Query templates, resolved against the slot (SCH-6).

A query without ``{{`` passes through untouched after that one containment test. Substitution is a single pass: what
was put in is never looked at again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gnomon.domain.instants import rfc3339

NAMES = ("now", "date", "lastRunAt", "runCount")
_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """What a query may name: the slot, its local date (``YYYY-MM-DD``), the run before it, how many so far."""

    nominal_fire_at: datetime
    local_date: str
    last_run_at: datetime | None
    run_count: int


def named(template: str) -> list[str]:
    """What the placeholders of a template name, in order, each once."""
    if "{{" not in template:
        return []
    return list(dict.fromkeys(match.strip() for match in _PLACEHOLDER.findall(template)))


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with the values put in, in one pass; a name without a value stays as it is written."""
    return _PLACEHOLDER.sub(lambda match: values.get(match.group(1).strip(), match.group(0)), template)


def unknown(query: str) -> list[str]:
    """The placeholders of a query that mean nothing here, in order, each once."""
    return [name for name in named(query) if name not in NAMES]


def uses_slot(query: str) -> bool:
    """Whether the query has to be resolved at all."""
    return "{{" in query


def resolve(query: str, facts: SlotFacts) -> str:
    """The query with its placeholders replaced. ``{{lastRunAt}}`` is empty before the first run."""
    if "{{" not in query:
        return query
    values = {
        "now": rfc3339(facts.nominal_fire_at),
        "date": facts.local_date,
        "lastRunAt": "" if facts.last_run_at is None else rfc3339(facts.last_run_at),
        "runCount": str(facts.run_count),
    }
    return fill(query, values)
