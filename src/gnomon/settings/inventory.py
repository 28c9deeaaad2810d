"""The one inventory of settings (OPS-5): what the program prints, and what the reference is made of."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic.fields import FieldInfo

from gnomon.settings.database import shown
from gnomon.settings.record import Settings, variable


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting as people read it: ``type`` and ``range`` are texts, ``origin`` says where the value came from."""

    name: str
    variable: str
    type: str
    range: str
    default: object
    meaning: str
    value: object
    origin: str


def inventory(settings: Settings) -> Iterator[Entry]:
    """Every setting there is, with its value in ``settings`` (OPS-5)."""
    for name, field in Settings.model_fields.items():
        kind, bounds = type_and_range(field)
        yield Entry(
            name=name,
            variable=variable(name),
            type=kind,
            range=bounds,
            default=field.default,
            meaning=field.description or "",
            value=shown(settings.database_url) if name == "database_url" else getattr(settings, name),
            origin=settings.origin(name),
        )


def type_and_range(field: FieldInfo) -> tuple[str, str]:
    """The type of a setting and the values it may have, in words."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "text", " | ".join(kind)
    if kind in (bool, bool | None):
        return "switch", "true | false"
    bounds = {type(rule).__name__: rule for rule in field.metadata}
    if "Ge" in bounds:
        return _TYPES[kind], f"{bounds['Ge'].ge:,} to {bounds['Le'].le:,}"
    return _TYPES[kind], ""


_TYPES: dict[Any, str] = {str: "text", int: "whole number", float: "number"}
