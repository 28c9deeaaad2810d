"""The worker itself: claims tasks, is pushed triggers and runs, has the command do them, drains (BRD-1 to BRD-3, JOB-4).

One claim is asked for at a time, for as many tasks as there is room; what is pushed has the room of ``most`` too, and
takes it from the claims, from one that waits as well. It knows nothing of the terminal: it tells what happens through ``Tell``.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

from gnomon.cli.work import asked, verdict
from gnomon.cli.work.child import Commands
from gnomon.client.backoff import Backoff
from gnomon.client.calls import new_key
from gnomon.client.client import AsyncClient
from gnomon.client.errors import ClientError, LeaseLost, RateLimited, ServerFault, Unreachable
from gnomon.client.frames import Outcome
from gnomon.client.held import AsyncHeld
from gnomon.client.instance import AsyncInstance
from gnomon.client.pushed import PushedRun, PushedTrigger

WAIT_SECONDS = 20.0
_GIVE_BACK_SECONDS = 5.0
_chance = random.SystemRandom().random

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How a worker works. ``kill_seconds`` lie between SIGTERM and SIGKILL, ``drain_seconds`` are for what is at work."""

    role: str
    instance: str
    most: int
    once: bool
    tasks: bool
    pushes: bool
    kill_seconds: float
    drain_seconds: float


class Worker:
    """One instance of a role that has a command do its work."""

    def __init__(self, client: AsyncClient, commands: Commands, options: Options, tell: Tell) -> None:
        self._client = client
        self._commands = commands
        self._options = options
        self._tell = tell
        self._works: set[asyncio.Task[Any]] = set()
        self._ended = asyncio.Event()
        self._draining = asyncio.Event()
        self._crowded = asyncio.Event()
        self._backoff = Backoff(first_seconds=0.5, longest_seconds=15)
        self._is_reached = False
        self.failed = 0
        self.done = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop``, or once; then drain: nothing new, and a grace for what is at work.

        Raises:
            ClientError: the server refuses this worker for good, or could not be reached at the start.
        """
        async with AsyncExitStack() as stack:
            instance: AsyncInstance | None = None
            if self._options.pushes:
                instance = await stack.enter_async_context(self._connection())
                self._reached()
            ends: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
            if instance is not None:
                ends.append(asyncio.create_task(instance.wait()))
            if self._options.tasks:
                ends.append(asyncio.create_task(self._claim()))
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await self._drain(instance, asked_for=stop.is_set())
            for end in ends[:-1] if self._options.tasks else ends:
                end.cancel()
            found = await asyncio.gather(*ends, return_exceptions=True)
        for error in found:
            if isinstance(error, Exception):
                raise error

    async def _drain(self, instance: AsyncInstance | None, *, asked_for: bool) -> None:
        """Nothing new; what is at work has the grace, then it is ended and given back."""
        self._draining.set()
        if asked_for:
            self._tell({"event": "draining", "at_work": len(self._works)})
        if instance is not None:
            instance.drain()
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._options.drain_seconds
        while self._works and loop.time() < ends_at:
            await asyncio.wait(set(self._works), timeout=ends_at - loop.time())
        for work in self._works:
            work.cancel()
        if self._works:
            await asyncio.wait(set(self._works))
        if instance is not None:
            instance.grace_seconds = max(0.0, ends_at - loop.time())

    def _reached(self) -> None:
        """The server has answered this worker."""
        if not self._is_reached:
            self._is_reached = True
            self._tell({"event": "started", "role": self._options.role, "instance": self._options.instance})

    # tasks

    async def _claim(self) -> None:
        failures = 0
        while not self._draining.is_set():
            free = self._room()
            if not free:
                await self._until_one_ends()
                continue
            try:
                found = await self._wish(free)
            except (Unreachable, ServerFault, RateLimited) as error:
                if not self._is_reached:
                    raise
                failures += 1
                self._tell({"event": "waiting", "detail": str(error)})
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._draining.wait(), self._backoff.pause(failures, _chance()))
                continue
            failures = 0
            self._reached()
            for held in found:
                self._begin(self._task(held))
            if self._options.once:
                if not found:
                    self._tell({"event": "nothing", "role": self._options.role})
                while self._works:
                    await self._until_one_ends()
                return

    async def _wish(self, free: int) -> list[AsyncHeld]:
        """Ask for tasks, and wait for some, until the worker drains or a push takes room that was asked for."""
        claim_id = new_key()
        self._crowded.clear()
        # the first claim waits for nothing: whether there is a server at all is to be known soon
        wait = WAIT_SECONDS if self._is_reached and not self._options.once else 0
        most = 1 if self._options.once else free
        wish = asyncio.create_task(self._batch(most, wait, claim_id))
        ends = [asyncio.create_task(event.wait()) for event in (self._draining, self._crowded)]
        await asyncio.wait({wish, *ends}, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        if wish.done() and not self._draining.is_set() and not self._crowded.is_set():
            return wish.result()
        wish.cancel()
        with suppress(asyncio.CancelledError, ClientError):
            for held in await wish:
                held.stop()
        return await self._withdraw(most, claim_id)

    async def _withdraw(self, most: int, claim_id: str) -> list[AsyncHeld]:
        """Ask for what a wish that was cancelled may have got; give back what there is no room for."""
        try:
            async with asyncio.timeout(_GIVE_BACK_SECONDS):
                # under the same name it gives what it gave before (RUN-5a)
                found = await self._batch(most, 0, claim_id)
        except (ClientError, TimeoutError):
            return []
        while over := found[self._room() :]:  # another push may come while some are given back
            found = found[: -len(over)]
            why = "The worker was stopped" if self._draining.is_set() else "The worker was full"
            await asyncio.gather(*(_give_back(held, why) for held in over))
        return found

    async def _batch(self, most: int, wait_seconds: float, claim_id: str) -> list[AsyncHeld]:
        role, instance = self._options.role, self._options.instance
        return await self._client.claim_batch(
            role, instance, most, wait_seconds=wait_seconds, claim_id=claim_id
        )

    async def _task(self, held: AsyncHeld) -> None:
        """One task from its claim to its report."""
        task_id = str(held.task["id"])
        self._tell({"event": "begun", "task": task_id, "title": held.task["title"], "fence": held.fence})
        kill = self._options.kill_seconds
        try:
            async with held:
                what = asked.of_task(held, self._options.role, self._options.instance)
                # after a lost lease only as long as nobody else can have the task
                ended = await self._commands.run(what, held.note, lambda: min(kill, held.seconds_left))
                said = verdict.of_task(ended)
                await held.report(said.status, note=said.note, result=said.result, role=said.role)
        except LeaseLost as lost:
            self.failed += 1
            self._tell({"event": "lost", "task": task_id, "detail": lost.reason})
        except ClientError as error:
            self.failed += 1
            self._tell({"event": "refused", "task": task_id, "detail": str(error)})
        else:
            self.done += ended.is_done
            self.failed += not ended.is_done
            self._tell({"event": "reported", "task": task_id, "status": said.status, "note": said.note})

    # pushes

    def _connection(self) -> AsyncInstance:
        return self._client.connect(
            self._options.role,
            self._options.instance,
            on_trigger=self._trigger,
            on_run=self._run,
            max_in_flight=self._options.most,
            grace_seconds=self._options.drain_seconds,
        )

    async def _trigger(self, pushed: PushedTrigger) -> Outcome:
        what = asked.of_trigger(pushed.trigger, self._options.role, self._options.instance)
        return await self._push(what, _nothing)

    async def _run(self, pushed: PushedRun) -> Outcome:
        what = asked.of_run(pushed.invocation, self._options.role, self._options.instance)
        return await self._push(what, pushed.progress)

    async def _push(self, what: asked.Asked, say: Callable[[str], None]) -> Outcome:
        """One pushed piece of work. It is the instance's task; here it takes its place among the works."""
        work = asyncio.current_task()
        assert work is not None
        self._works.add(work)
        self._crowded.set()
        of_job = {"job": what.variables["JOB"]} if what.kind == "trigger" else {}
        self._tell({"event": "begun", what.kind: what.id, **of_job})
        try:
            ended = await self._commands.run(what, say, lambda: self._options.kill_seconds)
        except asyncio.CancelledError:
            self._tell({"event": "stopped", what.kind: what.id})
            raise
        finally:
            self._over(work)
        outcome = verdict.of_push(ended)
        self.done += ended.is_done
        self.failed += not ended.is_done
        self._tell({"event": "reported", what.kind: what.id, "status": outcome.status, "note": outcome.text})
        return outcome

    # room

    def _room(self) -> int:
        """How much more may begin."""
        return 0 if self._draining.is_set() else max(0, self._options.most - len(self._works))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._works.add(task)
        task.add_done_callback(self._over)

    def _over(self, work: "asyncio.Task[Any]") -> None:
        self._works.discard(work)
        self._ended.set()

    async def _until_one_ends(self) -> None:
        """Until there may be room again, or the worker drains."""
        self._ended.clear()
        waits = [asyncio.create_task(self._ended.wait()), asyncio.create_task(self._draining.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


async def _give_back(held: AsyncHeld, why: str) -> None:
    """Put a task back that was not begun, or leave it to its lease. What was said of it before stays readable."""
    before = (held.last_report or {}).get("note")
    note = f"{why} before it began."
    try:
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(_GIVE_BACK_SECONDS):
                await held.report("backlog", note=note if before is None else f"{note} Before that: {before}")
    finally:
        held.stop()


def _nothing(text: str) -> None:
    """Progress that nobody is told."""


__all__ = ["Options", "Worker"]
