"""What the sections of a document share: whose definition it is, everything that stands, forms without what says nothing."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from gnomon.domain import agent_form

T = TypeVar("T")
BATCH = 200


def slug_given(given: Mapping[str, Any]) -> str | None:
    """The slug that a definition has or gets: its own, or the one made from its name."""
    slug, name = given.get("slug"), given.get("name")
    if slug is None and isinstance(name, str):
        return agent_form.slug_of(name)
    return slug if isinstance(slug, str) else None


async def every(page: Callable[[str], Awaitable[list[T]]], id_of: Callable[[T], str]) -> list[T]:
    """All records of pages that go on after an id."""
    found: list[T] = []
    after = ""
    while batch := await page(after):
        found += batch
        after = id_of(batch[-1])
    return found


def sparse(written: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A written form without what says nothing."""
    kept: dict[str, Any] = {}
    for name, value in written.items():
        if isinstance(value, dict):
            inner = {key: _plain(entry) for key, entry in value.items() if entry is not None}
            if inner:
                kept[name] = inner
        elif value is not None and (name not in defaults or value != defaults[name]):
            kept[name] = value
    return kept


def _plain(value: Any) -> Any:
    """A value as a document has it: JSON knows no tuples."""
    return list(value) if isinstance(value, tuple) else value
