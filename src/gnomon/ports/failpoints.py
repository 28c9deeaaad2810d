"""The switch of the named failpoints: off, unless a test's process armed them at its start (PRF-1).

Services name the steps that they pass, with the names of ``domain/failpoint.py``; what is armed decides what happens
there. While nothing is armed, each point costs one look at ``None``. One switch for the process and not an argument of
every service, as the thread of the heartbeat and the tasks of runs pass them too.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")
Work = Callable[..., Awaitable[T]]


class Armed(Protocol):
    """What is done at the points."""

    def reach(self, point: str) -> None:
        """A point is passed: return, or fail, or never come back.

        Raises:
            Unavailable: as the database would, where that is what was asked for.
        """
        ...


_armed: Armed | None = None


def arm(armed: Armed | None) -> None:
    """Arm the points for the rest of the process, or with ``None`` disarm them."""
    global _armed  # noqa: PLW0603 - the one switch of the process
    _armed = armed


def reach(point: str) -> None:
    """Pass a point."""
    if _armed is not None:
        _armed.reach(point)


def through(step: str, write: Callable[[Any], Awaitable[Any]], work: Work[T]) -> Awaitable[T]:
    """``write(work)``, one step of the product, past its three points."""
    if _armed is None:
        return write(work)
    return _through(_armed, step, write, work)


def directly(step: str, write: Callable[[Any], Any], work: Work[T]) -> T:
    """The same over a connection that does not wait for the event loop (``DirectDatabase``)."""
    if _armed is None:
        return cast("T", write(work))
    _armed.reach(f"{step}.sent")
    answer: T = write(_to_its_end(_armed, step, work))
    _armed.reach(f"{step}.committed")
    return answer


async def _through(armed: Armed, step: str, write: Callable[[Any], Awaitable[Any]], work: Work[T]) -> T:
    armed.reach(f"{step}.sent")
    answer: T = await write(_to_its_end(armed, step, work))
    armed.reach(f"{step}.committed")
    return answer


def _to_its_end(armed: Armed, step: str, work: Work[T]) -> Work[T]:
    async def marked(*given: Any) -> T:
        answer = await work(*given)
        armed.reach(f"{step}.written")
        return answer

    return marked
