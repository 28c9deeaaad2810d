"""A runtime that does what a test tells it, on cue: ``ports.runtime`` for tests, ours and yours.

Plans are made in advance with ``answers``, ``fails``, ``hangs``, ``blocks`` and ``defers``, and used up in that order;
past the last one every call gets the ``otherwise`` of the constructor. Each call is kept in ``calls``. Nothing
sleeps: a test waits for ``started`` and lets go with ``release``.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gnomon.domain.agent import RuntimeSpec
from gnomon.domain.invocation import Deferred, Failing, Invocation, Result, TargetFailure, Usage
from gnomon.ports.runtime import Reporter

Ending = Result | Deferred | Exception


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation as the runtime saw it."""

    spec: RuntimeSpec
    secret: str | None
    invocation: Invocation
    reporter: Reporter


class Hold:
    """One call that hangs until it is released. ``started`` is set once the call is in it."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._stubborn = stubborn
        self._released = asyncio.Event()
        self._ending: Ending = Result("")

    def release(self, ending: Ending | str = "") -> None:
        """Let the call end: with a result, a text, a ``Deferred`` or by raising an exception."""
        self._ending = Result(ending) if isinstance(ending, str) else ending
        self._released.set()

    async def wait(self) -> Ending:
        """Hang. A stubborn hold notes a cancellation and goes on hanging, the way a bad target does."""
        self.started.set()
        while True:
            try:
                await self._released.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                if not self._stubborn:
                    raise
            else:
                return self._ending


Plan = Callable[[Call], Ending] | Hold


class ScriptedRuntime:
    """Stands in for any kind of agent. ``closed`` tells whether ``close`` was called."""

    def __init__(self, otherwise: Ending | None = None) -> None:
        self.calls: list[Call] = []
        self.cancelled = 0
        self.closed = False
        self._otherwise: Ending = Result("ok") if otherwise is None else otherwise
        self._plans: deque[Plan] = deque()
        self._arrival = asyncio.Condition()

    @property
    def invocations(self) -> list[Invocation]:
        """What it was asked to do so far, in order."""
        return [call.invocation for call in self.calls]

    def answers(self, output: str | Callable[[Invocation], str], usage: Usage | None = None) -> None:
        """The next call gives a text, or what a function makes of its invocation."""
        self._plans.append(
            lambda call: Result(output if isinstance(output, str) else output(call.invocation), usage)
        )

    def fails(
        self,
        code: Failing = Failing.EXCEPTION,
        message: str = "scripted",
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        """The next call fails as a target does."""
        failure = TargetFailure(code, message, retryable=retryable, retry_after=retry_after, usage=usage)
        self._plans.append(lambda _: failure)

    def breaks(self, error: Exception) -> None:
        """The next call raises what no runtime should raise."""
        self._plans.append(lambda _: error)

    def defers(self) -> None:
        """The next call is taken to be completed later."""
        self._plans.append(lambda _: Deferred())

    def hangs(self, *, stubborn: bool = False) -> Hold:
        """The next call hangs until the hold is released; a stubborn one does not heed being cancelled."""
        hold = Hold(stubborn=stubborn)
        self._plans.append(hold)
        return hold

    def blocks(self, until: threading.Event, *, at_most: float = 10.0) -> None:
        """The next call blocks the event loop's own thread, as a callable with a blocking call in it does."""

        def block(_: Call) -> Ending:
            until.wait(at_most)
            return Result("unblocked")

        self._plans.append(block)

    async def started(self, count: int = 1, *, within: float = 5.0) -> Call:
        """Wait until ``count`` calls have begun, at most ``within`` seconds; the last of them."""
        async with asyncio.timeout(within), self._arrival:
            await self._arrival.wait_for(lambda: len(self.calls) >= count)
        return self.calls[count - 1]

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """Do what the next plan says (``ports.runtime.Runtime``)."""
        call = Call(spec, secret, invocation, reporter)
        plan = self._plans.popleft() if self._plans else None
        self.calls.append(call)
        async with self._arrival:
            self._arrival.notify_all()
        ending = await self._follow(plan, call)
        if isinstance(ending, Exception):
            raise ending
        return ending

    async def _follow(self, plan: Plan | None, call: Call) -> Ending:
        if plan is None:
            return self._otherwise
        if not isinstance(plan, Hold):
            return plan(call)
        try:
            return await plan.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True
