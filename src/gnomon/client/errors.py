"""What can go wrong for a worker: one tree. A refusal carries the server's problem document.

    ClientError
    ├── Unreachable        nobody answered within the patience
    ├── Refused            the server said no: ``status``, ``code``, ``detail``, ``errors``, ``problem``
    │   ├── Unauthenticated   401   ├── Invalid       400, 413, 415, 422
    │   ├── Forbidden         403   ├── RateLimited   429
    │   ├── NotFound          404   └── ServerFault   5xx
    │   └── Conflict          409, 412
    ├── LeaseLost          the task is no longer this worker's: stop, and change nothing more
    ├── NotReported        the context of a claim was left without a report
    └── Replaced           another process connected as the same instance

This module knows statuses and problem documents, and nothing that sends them.
"""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """The root: whatever this library raises of its own."""


class Unreachable(ClientError):  # noqa: N818 - a branch is named by what happened, as in domain/errors.py
    """Nobody answered. ``doubtful`` says that the request may have taken effect all the same."""

    def __init__(self, message: str, *, doubtful: bool = False) -> None:
        super().__init__(message)
        self.doubtful = doubtful


class Refused(ClientError):  # noqa: N818 - likewise
    """The server's no. ``code`` is stable and for programs, ``detail`` for people, ``errors`` field by field.

    ``doubtful`` says that an earlier try of the same request may have taken effect before this refusal.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code = str(problem.get("code") or "")
        self.detail = str(problem.get("detail") or problem.get("title") or f"The answer was {status}.")
        self.errors: list[dict[str, str]] = list(problem.get("errors") or [])
        self.request_id = str(problem.get("request_id") or "")
        self.doubtful = False
        faults = [f"{fault.get('field')}: {fault.get('message')}" for fault in self.errors]
        shown = [self.detail, *(fault for fault in faults if fault != self.detail)]
        super().__init__(" ".join(shown) + (f" ({self.code})" if self.code else ""))


class Unauthenticated(Refused):
    """No key, or one that opens nothing."""


class Forbidden(Refused):
    """The key's scopes do not cover this, or it is bound to another role."""


class NotFound(Refused):
    """Nothing is there under that id."""


class Conflict(Refused):
    """The world moved: taken, busy, an old fence."""


class Invalid(Refused):
    """The request says something that can't be."""


class RateLimited(Refused):
    """Too much, too soon, for longer than the patience."""


class ServerFault(Refused):
    """The server could not do it now."""


class LeaseLost(ClientError):  # noqa: N818 - likewise
    """The task is no longer this worker's (BRD-2): somebody else may be at it already, so stop at once.

    ``because`` is the server's refusal where there was one.
    """

    def __init__(self, task_id: str, reason: str, because: Refused | None = None) -> None:
        super().__init__(f"{task_id} is no longer held: {reason}")
        self.task_id = task_id
        self.reason = reason
        self.because = because


class NotReported(ClientError):  # noqa: N818 - likewise
    """The body of a claim ended without ``held.report(…)``; the task was set to blocked, for a person to look at."""

    def __init__(self, task_id: str) -> None:
        super().__init__(
            f"{task_id} was left without a report, so it is blocked now. Call held.report('done') at the end of the "
            "work, or held.report('backlog') to give the task back."
        )
        self.task_id = task_id


class Replaced(ClientError):  # noqa: N818 - likewise
    """Another process connected under the same role and name; this one stays away, or the two would take turns."""


_BY_STATUS: dict[int, type[Refused]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
}


def refused(status: int, body: object) -> Refused:
    """The error for an answer that is no success; ``body`` is its JSON, or ``None`` where it had none."""
    problem = body if isinstance(body, Mapping) else {}
    if not problem:
        problem = {"detail": f"The answer was {status}, and not as Gnomon gives it."}
    kind = _BY_STATUS.get(status, ServerFault if status >= 500 else Refused)
    return kind(status, problem)
