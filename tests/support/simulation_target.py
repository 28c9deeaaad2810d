"""What simulated runs call: a target that answers, fails, hangs, breaks or defers as the seed draws, and records it all."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from gnomon.domain.agent import RuntimeSpec
from gnomon.domain.instants import maybe_micros
from gnomon.domain.invocation import Deferred, Failing, Invocation, Result, TargetFailure, Usage
from gnomon.ports.runtime import Reporter
from support.history import History, Hit
from support.simulation_loop import VirtualLoop

STORMY = ("quick",) * 8 + ("slow",) * 4 + ("long", "long", "hang", "again", "again", "fail", "break", "defer")
CALM = ("quick",) * 8 + ("slow",) * 4 + ("again", "fail", "defer")


@dataclass
class Promise:
    """Work that was taken with a 202 and is still to be completed."""

    run_id: str
    fence: int
    at: float


@dataclass
class SimTarget:
    """One for all processes, as a real target is."""

    loop: VirtualLoop
    rng: random.Random
    history: History
    plans: tuple[str, ...] = STORMY
    promises: list[Promise] = field(default_factory=list)

    def seen_by(self, process: str, wall: Callable[[], int]) -> "SimRuntime":
        """The way of one process to it."""
        return SimRuntime(self, process, wall)

    def stopped_with(self, process: str) -> None:
        """The process is dead, and with it what it was calling."""
        for hit in self.history.hits:
            if hit.process == process and hit.end is None:
                hit.end, hit.ended = self.loop.time(), "killed"


@dataclass
class SimRuntime:
    """``services.invoking.Runtimes`` for one process."""

    target: SimTarget
    process: str
    wall: Callable[[], int]  # the machine's wall clock, microseconds
    on_hit: Callable[[], None] = field(default=lambda: None)

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """One call."""
        target = self.target
        hit = Hit(
            run_id=invocation.run_id,
            key=invocation.idempotency_key,
            fence=invocation.fence,
            attempt=invocation.attempt,
            nominal=maybe_micros(invocation.nominal_fire_at),
            process=self.process,
            begin=target.loop.time(),
            plan=target.rng.choice(target.plans),
        )
        target.history.hits.append(hit)
        target.history.seen[f"target {hit.plan}"] += 1
        self.on_hit()
        try:
            answer = await self._follow(hit, invocation, reporter)
        except BaseException as error:
            self._end(hit, type(error).__name__)
            raise
        self._end(hit, "answered")
        return answer

    def _end(self, hit: Hit, how: str) -> None:
        if not self.target.loop.closing and hit.end is None:
            hit.end, hit.ended = self.target.loop.time(), how

    async def _follow(self, hit: Hit, invocation: Invocation, reporter: Reporter) -> Result | Deferred:
        rng = self.target.rng
        left = invocation.deadline.timestamp() - self.wall() / 1_000_000
        if hit.plan == "quick":
            await asyncio.sleep(rng.choice((0.0, 0.01, 0.3)))
        elif hit.plan == "slow":
            reporter.progress("working")
            await asyncio.sleep(rng.uniform(1.0, 40.0))
        elif hit.plan == "long":
            await asyncio.sleep(max(0.0, left) * rng.uniform(0.6, 0.98))
        elif hit.plan == "hang":
            await asyncio.sleep(1e7)
        elif hit.plan == "defer":
            at = self.target.loop.time() + rng.choice((0.5, 5.0, 60.0, 500.0))
            self.target.promises.append(Promise(hit.run_id, hit.fence, at))
            return Deferred()
        if hit.plan in ("again", "fail"):
            await asyncio.sleep(rng.uniform(0.0, 3.0))
            raise TargetFailure(Failing.HTTP_STATUS, "drawn", retryable=hit.plan == "again")
        if hit.plan == "break":
            raise RuntimeError("a runtime that breaks")
        return Result(f"done {invocation.run_id}", Usage(model_calls=1))
