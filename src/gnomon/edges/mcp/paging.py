"""Pages of the tools' lists: the cursor is the position behind the last item, opaque to the agent."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import Field

T = TypeVar("T")
LIMIT: Any = Field(20, ge=1, le=100, description="How many at most")
CURSOR: Any = Field(
    None,
    description="The next_cursor of the page before",
    min_length=1,
    max_length=120,
    pattern=r"^[0-9A-Za-z_~ -]+$",
)


def page_of(found: Sequence[T], limit: int, position: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """The items of a page out of up to one more than it holds, and the cursor of the next page, if there is one."""
    shown = found[:limit]
    return shown, position(shown[-1]) if len(found) > limit else None
