"""What a worker asks of the board, as calls, and what the answers mean. PURE (BRD-1 to BRD-3, IDM-2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote

from gnomon.client.calls import Answer, Call, post
from gnomon.client.errors import ClientError, Conflict, LeaseLost, NotFound, Refused
from gnomon.client.lease import Lease, granted, window

Task = Mapping[str, Any]
Status = Literal["done", "in_review", "blocked", "backlog", "cancelled"]
NOTE_CHARACTERS = 2_000
LONGEST_WAIT_SECONDS = 30.0
# What a renewal can be refused with that no later one will change. Anything else may be a server in trouble, a proxy
# in between or a key being exchanged: then it is tried again until the lease is over.
_GONE = frozenset({404, 409, 410, 412, 422})


@dataclass(frozen=True, slots=True)
class Claim:
    """One task that was claimed: its record, its fence, the lease, and whether to look first what is there (BRD-6)."""

    task: Task
    instance: str
    fence: int
    lease: Lease
    verify_first: bool

    @property
    def task_id(self) -> str:
        """The task's id."""
        return str(self.task["id"])


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker says of a task at its end; ``role`` hands it over to another role, with the status ``backlog``."""

    status: Status
    note: str | None = None
    result: Any = None
    role: str | None = None


def claim(role: str, instance: str, limit: int, wait_seconds: float, claim_id: str) -> Call:
    """Ask for up to ``limit`` tasks of a role; where there is none, wait for one (30 seconds at most).

    ``claim_id`` names the wish: asked for again, it gives what it gave, so a claim whose answer was lost is found
    (RUN-5a).
    """
    body = {
        "role": role,
        "instance": instance,
        "limit": limit,
        "wait_seconds": wait_seconds,
        "claim_id": claim_id,
    }
    return replace(post("/tasks/claim", body, key=claim_id), waits_seconds=wait_seconds)


def claims(answer: Answer, instance: str) -> list[Claim]:
    """The tasks that an answer to ``claim`` gives, with leases that began when they were asked for."""
    return [
        Claim(
            task=item["task"],
            instance=instance,
            fence=item["fence"],
            lease=granted(window(item, answer.headers), answer.sent_at),
            verify_first=bool(item["verify_first"]),
        )
        for item in answer.body["items"]
    ]


def renew(held: Claim, note: str | None = None) -> Call:
    """Ask for another window. ``note`` says how far the work is."""
    return post(_of(held.task_id, "renew"), _given(fence=held.fence, instance=held.instance, note=note))


def report(held: Claim, said: Report) -> Call:
    """Report a status, which releases the task (BRD-3)."""
    body = _given(
        fence=held.fence,
        instance=held.instance,
        status=said.status,
        note=said.note,
        result=said.result,
        role=said.role,
    )
    return post(_of(held.task_id, "report"), body)


def look(task_id: str) -> Call:
    """Read a task."""
    return Call("GET", _of(task_id))


def create(task: Mapping[str, Any]) -> Call:
    """Make a task. With a ``dedup_key`` there is one of it, whoever asks how often (IDM-2)."""
    return post("/tasks", _given(**task))


def find(dedup_key: str) -> Call:
    """Ask for the task that has this dedup key."""
    return Call("GET", "/tasks", query={"dedup_key": dedup_key, "limit": 1})


def found(answer: Answer, dedup_key: str) -> Task | None:
    """The task that an answer to ``find`` gives."""
    items: list[Task] = answer.body["items"]
    return next((task for task in items if task.get("dedup_key") == dedup_key), None)


def made(answer: Answer) -> tuple[Task, bool]:
    """The task that an answer to ``create`` gives, and whether it existed before this request.

    A repeat of this very request, whose first answer was lost, is told from another's task by ``doubtful``: then the
    answer is the same as the first one would have been, and the task is new.
    """
    return answer.body, answer.status == 200 or (answer.is_replayed and not answer.doubtful)


def is_gone(refusal: Refused) -> bool:
    """Whether a refused renewal says that the lease is somebody else's, or nobody's."""
    return refusal.status in _GONE and bool(refusal.code)


def in_doubt(error: ClientError) -> bool:
    """Whether a report that ended so may have landed at an earlier try, so that the task must be looked at."""
    return isinstance(error, Conflict | NotFound) and error.doubtful


def landed(held: Claim, said: Report, task: Task) -> bool:
    """Whether a report of this claim is what the task shows."""
    last = task.get("last_report") or {}
    return bool(last.get("fence") == held.fence and last.get("status") == said.status)


def not_ours(held: Claim, error: ClientError) -> ClientError:
    """A refused report as the worker hears it: that it lost the task, where that is what it means."""
    if isinstance(error, Conflict | NotFound):
        return LeaseLost(held.task_id, error.detail, error)
    return error


def storable(text: str) -> str:
    """A text as a server can keep it: no NUL, no half of a surrogate pair."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")


def excerpt(text: str, characters: int = NOTE_CHARACTERS) -> str:
    """The end of a text, where the reason usually stands."""
    text = storable(text).strip()
    return text if len(text) <= characters else "…" + text[1 - characters :]


def unreported(error: BaseException | None) -> Report:
    """How a claim ends whose body reported nothing.

    What failed, or was forgotten, is for a person to see; what a stopped worker had is given back.
    """
    if error is None:
        return Report("blocked", "The worker ended without a report.")
    what = excerpt(f"{type(error).__name__}: {error}".rstrip(": "))
    if isinstance(error, Exception):
        return Report("blocked", what)
    return Report("backlog", f"The worker was stopped ({what}).")


def _of(task_id: str, verb: str = "") -> str:
    return f"/tasks/{quote(task_id, safe='')}" + (f"/{verb}" if verb else "")


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
