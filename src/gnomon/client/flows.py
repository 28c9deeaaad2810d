"""What takes more than one request, written once for both faces: a flow yields calls and is sent their answers. PURE.

``follow`` and ``follow_async`` drive a flow; what a call raises is raised inside of the flow, where it may be caught.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from gnomon.client import board
from gnomon.client.board import Claim, Report, Task
from gnomon.client.calls import Answer, Call
from gnomon.client.errors import ClientError, Conflict, Invalid, NotFound
from gnomon.client.http import AsyncHttp, Http
from gnomon.client.lease import granted

T = TypeVar("T")
Flow = Generator[Call, Answer, T]


def claim(role: str, instance: str, limit: int, wait_seconds: float, claim_id: str) -> Flow[list[Claim]]:
    """Tasks of a role. One that was waited for is renewed before it is handed out: its age is not known (BRD-2).

    Where that can't be, its lease counts from when it was asked for: too short, never too long.
    """
    answer = yield board.claim(role, instance, limit, wait_seconds, claim_id)
    fresh = []
    for each in board.claims(answer, instance):
        renewed_at = each.lease.granted_at
        if wait_seconds:
            try:
                renewed_at = (yield board.renew(each)).sent_at
            except (Conflict, NotFound):
                continue
            except ClientError:
                pass
        fresh.append(replace(each, lease=granted(each.lease.window_seconds, renewed_at)))
    return fresh


def report(held: Claim, said: Report) -> Flow[None]:
    """Report a status. One whose answer was lost is looked up before it is taken for a refusal (RUN-5a, BRD-3).

    Raises:
        LeaseLost: the task is not this worker's any more.
        Refused: otherwise the server's no; the task is still held.
    """
    try:
        yield board.report(held, said)
    except ClientError as error:
        if board.in_doubt(error):
            seen = yield board.look(held.task_id)
            if board.landed(held, said, seen.body):
                return
        raise board.not_ours(held, error) from error


def create(task: Mapping[str, Any]) -> Flow[tuple[Task, bool]]:
    """Make a task: the task, and whether there was one of its dedup key already (IDM-2)."""
    answer = yield board.create(task)
    return board.made(answer)


def create_named(task: Mapping[str, Any], dedup_key: str) -> Flow[tuple[Task, bool]]:
    """Make the task of a dedup key that nobody had a moment ago; whoever came first in between has made it (IDM-2)."""
    try:
        return (yield from create(_with_key(task, dedup_key)))
    except Invalid as error:
        if error.code != "dedup_key_reused":
            raise
        found = yield from look_up(dedup_key)
        if found is None:
            raise
        return found, True


def look_up(dedup_key: str) -> Flow[Task | None]:
    """The task of a dedup key, or ``None``."""
    answer = yield board.find(dedup_key)
    return board.found(answer, dedup_key)


def _with_key(task: Mapping[str, Any], dedup_key: str) -> dict[str, Any]:
    """What is to be created, under the key that was asked for."""
    if task.get("dedup_key", dedup_key) != dedup_key:
        raise ValueError(f"the task has another dedup key than the {dedup_key!r} that was checked")
    return {**task, "dedup_key": dedup_key}


def follow(http: Http, flow: Flow[T], patience_seconds: float | None = None) -> T:
    """Drive a flow to its end, sync."""
    step: Callable[[], Call] = lambda: next(flow)  # noqa: E731 - the first of the steps that the loop replaces
    while True:
        try:
            call = step()
        except StopIteration as end:
            value: T = end.value
            return value
        try:
            answer = http.send(call, patience_seconds=patience_seconds)
        except ClientError as error:
            step = _raising(flow, error)
        else:
            step = _sending(flow, answer)


async def follow_async(http: AsyncHttp, flow: Flow[T], patience_seconds: float | None = None) -> T:
    """Drive a flow to its end, async."""
    step: Callable[[], Call] = lambda: next(flow)  # noqa: E731 - likewise
    while True:
        try:
            call = step()
        except StopIteration as end:
            value: T = end.value
            return value
        try:
            answer = await http.send(call, patience_seconds=patience_seconds)
        except ClientError as error:
            step = _raising(flow, error)
        else:
            step = _sending(flow, answer)


def _raising(flow: Flow[T], error: ClientError) -> Callable[[], Call]:
    return lambda: flow.throw(error)


def _sending(flow: Flow[T], answer: Answer) -> Callable[[], Call]:
    return lambda: flow.send(answer)
