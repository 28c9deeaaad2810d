"""The named SQL: read once from ``sql/<noun>.sql``, one text for both engines, and never composed elsewhere.

A query starts at ``-- name: <words>`` and is called ``<noun>.<words>``. Parameters are ``:name``. ``@lease_seconds``
is replaced by the domain's formula (DSP-4). An engine's own folder (``sqlite/sql``) replaces a query of the same name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from gnomon.domain.lease import LEASE_SECONDS_SQL

_NAME = re.compile(r"^--\s*name:\s*(\w+)\s*$")
PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_MACROS = {"@lease_seconds": LEASE_SECONDS_SQL}


@dataclass(frozen=True, slots=True)
class Query:
    """One statement: its name, its text, its parameters in the order of their first use."""

    name: str
    text: str
    parameters: tuple[str, ...]


def load(engine: str) -> Mapping[str, Query]:
    """All named queries as ``engine`` (``sqlite`` or ``postgres``) reads them."""
    found: dict[str, Query] = {}
    here = files("gnomon.stores")
    for folder in (here / "sql", here / engine / "sql"):
        if folder.is_dir():
            for file in sorted(folder.iterdir(), key=lambda f: f.name):
                if file.name.endswith(".sql"):
                    found.update(_parse(file))
    return found


def _parse(file: Traversable) -> dict[str, Query]:
    noun = file.name.removesuffix(".sql")
    blocks: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in file.read_text("utf-8").splitlines():
        match = _NAME.match(line)
        if match:
            name = f"{noun}.{match.group(1)}"
            if name in blocks:
                raise ValueError(f"{name} stands twice in {file.name}")
            current = blocks.setdefault(name, [])
        elif current is not None and not line.lstrip().startswith("--"):
            current.append(line)
    return {name: _query(name, "\n".join(lines)) for name, lines in blocks.items()}


def _query(name: str, text: str) -> Query:
    for macro, value in _MACROS.items():
        text = text.replace(macro, value)
    text = text.strip().rstrip(";")
    return Query(name, text, tuple(dict.fromkeys(PARAMETER.findall(text))))
