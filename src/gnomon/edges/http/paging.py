"""Pages of lists: ``?limit=&cursor=`` answering ``{"items", "next_cursor"}`` (CONTRACT, forms).

A cursor is the position behind the last item, opaque to the caller and of use in the list that gave it alone.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from starlette.requests import Request

from gnomon.domain.errors import Invalid
from gnomon.domain.filters import EVER

T = TypeVar("T")
LIMIT = (1, 200)
LIMIT_DEFAULT = 50
_CURSOR_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Paging:
    """What page is asked for: how many items after which position (``""`` is the beginning) of which list."""

    limit: int
    after: str
    name: str

    @property
    def wanted(self) -> int:
        """How many items to fetch: one more than the page holds, which says whether there is another page."""
        return self.limit + 1

    def page(
        self, items: Sequence[T], show: Callable[[T], Any], position: Callable[[T], str]
    ) -> dict[str, Any]:
        """The page's body, of up to ``wanted`` items."""
        shown = items[: self.limit]
        more = len(items) > self.limit
        return {
            "items": [show(item) for item in shown],
            "next_cursor": _encode(self.name, position(shown[-1])) if more else None,
        }

    def part(self, items: Sequence[T], show: Callable[[T], Any], rest: str | None) -> dict[str, Any]:
        """The page's body where the list itself says at which position the rest begins, if there is any."""
        return {
            "items": [show(item) for item in items],
            "next_cursor": None if rest is None else _encode(self.name, rest),
        }


async def paging(
    request: Request,
    limit: Annotated[int, Query(ge=LIMIT[0], le=LIMIT[1], description="How many items")] = LIMIT_DEFAULT,
    cursor: Annotated[
        str | None,
        Query(max_length=_CURSOR_CHARACTERS, description="Where the page before ended: its next_cursor"),
    ] = None,
) -> Paging:
    """Read the two parameters; the list is the route's path."""
    name = request.scope["path"]
    return Paging(limit, "" if not cursor else _decode(name, cursor), name)


Paged = Annotated[Paging, Depends(paging)]


def number(position: str, beginning: int) -> int:
    """The number that a cursor of ours holds; ``beginning`` where there is none.

    Raises:
        Invalid: ``bad_cursor``.
    """
    if not position:
        return beginning
    digits = position.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise _not_given()
    return max(-EVER, min(EVER, int(position)))


def _encode(name: str, position: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([name, position]).encode()).decode().rstrip("=")


def _decode(name: str, cursor: str) -> str:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found = json.loads(raw)
    except (binascii.Error, ValueError, RecursionError):
        found = None
    if (
        not isinstance(found, list)
        or len(found) != 2
        or found[0] != name
        or not isinstance(found[1], str)
        or not found[1].isprintable()
    ):
        raise _not_given()
    position: str = found[1]
    return position


def _not_given() -> Invalid:
    return Invalid("The cursor is not one that this list gave.", code="bad_cursor")
