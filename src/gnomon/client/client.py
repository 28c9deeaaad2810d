"""The two faces of the client: what a worker asks for, sync and async. What it means is in ``board`` and ``flows``.

with Client() as client:
    with client.claim("pm", "pm-1") as held:
        if held is not None:
            held.report("done", note=work(held.task))
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, Self

from gnomon.client import board, flows
from gnomon.client.board import Task
from gnomon.client.calls import PATIENCE_SECONDS, Answer, Call, Unanswered, new_key, post
from gnomon.client.held import AsyncHeld, Held
from gnomon.client.http import AsyncHttp, Http
from gnomon.client.instance import (
    GRACE_SECONDS,
    AsyncInstance,
    AsyncOnRun,
    AsyncOnTrigger,
    Instance,
    OnRun,
    OnTrigger,
)
from gnomon.client.place import find


class Client:
    """A worker's side of one server. Safe to use from several threads; close it, or use it as a context.

    ``url`` and ``key`` stand over ``GNOMON_URL`` and ``GNOMON_API_KEY``; without any it is the server of this machine.
    Every method raises ``Refused`` (by its subclasses) and ``Unreachable``; each tries again where that is safe, every
    POST under an Idempotency-Key of its own (IDM-2), for ``patience_seconds`` in all.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._place = find(url, key)
        self._patience = patience_seconds
        self._http = Http(self._place, patience_seconds=patience_seconds)
        self._renewing = Http(self._place)  # connections of its own: a renewal waits for nobody

    def claim(
        self, role: str, instance: str, *, wait_seconds: float = 0
    ) -> AbstractContextManager[Held | None]:
        """A context over one task of the role, claimed at its start; ``None`` where there is none (BRD-1, BRD-2).

        With ``wait_seconds``, 30 at most, it waits so long for one.

        The lease is renewed on a thread until the report. Leaving without one reports an error as ``blocked`` and
        raises what ``Held`` says.
        """
        return _Claiming(lambda: self.claim_batch(role, instance, 1, wait_seconds=wait_seconds))

    def claim_batch(
        self, role: str, instance: str, limit: int, *, wait_seconds: float = 0, claim_id: str | None = None
    ) -> list[Held]:
        """Up to ``limit`` tasks at once, each renewed from now on; enter each as a context of its own.

        ``claim_id`` names this wish: with the same one it gives what it gave before (RUN-5a).
        """
        flow = flows.claim(role, instance, limit, wait_seconds, claim_id or new_key())
        return [Held(claim, self._http, self._try) for claim in flows.follow(self._http, flow)]

    def create_task(
        self,
        role: str,
        title: str,
        *,
        body: str | None = None,
        priority: int | None = None,
        prerequisites: list[str] | None = None,
        dedup_key: str | None = None,
    ) -> tuple[Task, bool]:
        """Make a task: the task, and whether one with this dedup key existed already (IDM-2)."""
        task: dict[str, Any] = {"role": role, "title": title, "body": body, "priority": priority}
        task |= {"prerequisites": prerequisites, "dedup_key": dedup_key}
        return flows.follow(self._http, flows.create(task))

    def check_before_create(
        self, dedup_key: str, create: Callable[[], Mapping[str, Any]]
    ) -> tuple[Task, bool]:
        """The task of a dedup key, and whether it existed (IDM-2, IDM-3).

        ``create`` is called only where there is none: it gives the fields of the task to make. Of two workers that
        find none at once, one makes it and the other gets that one.
        """
        found = flows.follow(self._http, flows.look_up(dedup_key))
        if found is not None:
            return found, True
        return flows.follow(self._http, flows.create_named(create(), dedup_key))

    def task(self, task_id: str) -> Task:
        """Read a task."""
        task: Task = self._http.send(board.look(task_id)).body
        return task

    def request(self, method: str, path: str, body: Any = None, **query: str | float | bool) -> Any:
        """Any other request under ``/v1``: the JSON of its answer. A POST goes under an Idempotency-Key."""
        call = post(path, body) if method == "POST" else Call(method, path, body, query or None)
        return self._http.send(call).body

    def connect(
        self,
        role: str,
        instance: str,
        *,
        on_trigger: OnTrigger | None = None,
        on_run: OnRun | None = None,
        max_in_flight: int = 1,
        grace_seconds: float = GRACE_SECONDS,
    ) -> Instance:
        """An instance of the role, connected while the context is open (JOB-5).

        Each handler is called on a thread of its own and answers ``None``, a text, a mapping or a ``Result``; what it
        raises is a failure. Leaving drains: what is worked on has ``grace_seconds``.
        """
        return Instance(
            self._place,
            role,
            instance,
            on_trigger=on_trigger,
            on_run=on_run,
            max_in_flight=max_in_flight,
            grace_seconds=grace_seconds,
            patience_seconds=self._patience,
        )

    def close(self) -> None:
        """Let go of the connections. What is still held is renewed no more."""
        self._http.close()
        self._renewing.close()

    def _try(self, call: Call, seconds: float) -> Answer | Unanswered:
        return self._renewing.try_once(call, seconds=seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """``Client`` for an event loop. Leases are still renewed on threads: a coroutine that blocks can't starve them."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._place = find(url, key)
        self._patience = patience_seconds
        self._http = AsyncHttp(self._place, patience_seconds=patience_seconds)
        self._renewing = Http(self._place)

    def claim(
        self, role: str, instance: str, *, wait_seconds: float = 0
    ) -> AbstractAsyncContextManager[AsyncHeld | None]:
        """A context over one task of the role; see ``Client.claim``. A lost lease cancels the body."""
        return _AsyncClaiming(lambda: self.claim_batch(role, instance, 1, wait_seconds=wait_seconds))

    async def claim_batch(
        self, role: str, instance: str, limit: int, *, wait_seconds: float = 0, claim_id: str | None = None
    ) -> list[AsyncHeld]:
        """Up to ``limit`` tasks at once; see ``Client.claim_batch``."""
        flow = flows.claim(role, instance, limit, wait_seconds, claim_id or new_key())
        claims = await flows.follow_async(self._http, flow)
        return [AsyncHeld(claim, self._http, self._try) for claim in claims]

    async def create_task(
        self,
        role: str,
        title: str,
        *,
        body: str | None = None,
        priority: int | None = None,
        prerequisites: list[str] | None = None,
        dedup_key: str | None = None,
    ) -> tuple[Task, bool]:
        """Make a task; see ``Client.create_task``."""
        task: dict[str, Any] = {"role": role, "title": title, "body": body, "priority": priority}
        task |= {"prerequisites": prerequisites, "dedup_key": dedup_key}
        return await flows.follow_async(self._http, flows.create(task))

    async def check_before_create(
        self, dedup_key: str, create: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> tuple[Task, bool]:
        """The task of a dedup key, and whether it existed; see ``Client.check_before_create``."""
        found = await flows.follow_async(self._http, flows.look_up(dedup_key))
        if found is not None:
            return found, True
        return await flows.follow_async(self._http, flows.create_named(await create(), dedup_key))

    async def task(self, task_id: str) -> Task:
        """Read a task."""
        task: Task = (await self._http.send(board.look(task_id))).body
        return task

    async def request(self, method: str, path: str, body: Any = None, **query: str | float | bool) -> Any:
        """Any other request under ``/v1``; see ``Client.request``."""
        call = post(path, body) if method == "POST" else Call(method, path, body, query or None)
        return (await self._http.send(call)).body

    def connect(
        self,
        role: str,
        instance: str,
        *,
        on_trigger: AsyncOnTrigger | None = None,
        on_run: AsyncOnRun | None = None,
        max_in_flight: int = 1,
        grace_seconds: float = GRACE_SECONDS,
    ) -> AsyncInstance:
        """An instance of the role; see ``Client.connect``. Handlers are coroutines, which a cancel cancels."""
        return AsyncInstance(
            self._place,
            role,
            instance,
            on_trigger=on_trigger,
            on_run=on_run,
            max_in_flight=max_in_flight,
            grace_seconds=grace_seconds,
            patience_seconds=self._patience,
        )

    async def close(self) -> None:
        """Let go of the connections. What is still held is renewed no more."""
        await self._http.close()
        self._renewing.close()

    def _try(self, call: Call, seconds: float) -> Answer | Unanswered:
        return self._renewing.try_once(call, seconds=seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Claiming:
    """Claims one task when it is entered."""

    def __init__(self, claim: Callable[[], list[Held]]) -> None:
        self._claim = claim
        self._held: Held | None = None

    def __enter__(self) -> Held | None:
        held = self._claim()
        self._held = held[0].__enter__() if held else None
        return self._held

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._held is not None:
            self._held.__exit__(kind, error, traceback)


class _AsyncClaiming:
    """Claims one task when it is entered."""

    def __init__(self, claim: Callable[[], Awaitable[list[AsyncHeld]]]) -> None:
        self._claim = claim
        self._held: AsyncHeld | None = None

    async def __aenter__(self) -> AsyncHeld | None:
        held = await self._claim()
        self._held = await held[0].__aenter__() if held else None
        return self._held

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._held is not None:
            await self._held.__aexit__(kind, error, traceback)
