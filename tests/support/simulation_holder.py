"""What a simulated instance does at the board: it claims, holds as long as it believes that it may, and reports as drawn.

A lease is counted from the sending of the request, by the instance's own clock, as the client library does.
"""

import asyncio
from typing import TYPE_CHECKING

from gnomon.domain.errors import GnomonError
from gnomon.domain.task import TaskGrant
from support.simulation_board_history import Held, Told
from support.simulation_server import CALLER, LOCK_SECONDS, NoAnswerError

if TYPE_CHECKING:
    from support.simulation_worker import SimWorker

STORMY = ("quick",) * 6 + (
    "slow",
    "slow",
    "long",
    "forgets",
    "zombie",
    "twice",
    "wrong fence",
    "back",
    "foreign",
)
CALM = ("quick", "quick", "quick", "slow", "twice", "long")
OURS = LOCK_SECONDS * 11 / 12


class Holder:
    """The board's side of one incarnation of an instance."""

    def __init__(self, worker: "SimWorker") -> None:
        self._worker, self._world = worker, worker.world
        self._claims = 0

    async def live(self) -> None:
        """Claim and work, for ever."""
        rng = self._world.rng
        while True:
            await asyncio.sleep(rng.choice((1.0, 10.0, 30.0, 60.0)))
            await self._claim()

    async def _claim(self) -> None:
        worker, loop = self._worker, self._world.loop
        self._claims += 1
        wanted = {
            "role": worker.role,
            "instance": worker.name,
            "limit": self._world.rng.choice((1, 1, 3)),
            "claim_id": f"{worker.label}:{self._claims}",
        }
        first_at = loop.time()
        for again in range(3):
            sent_at = loop.time()
            try:
                granted = await worker.call(lambda server: server.board.claim(CALLER, wanted))
            except NoAnswerError:
                continue  # asked again under the same id: what was granted is given, and nothing else (RUN-5a)
            except GnomonError:
                return
            for each in granted:
                # granted before: its window began with an earlier request
                self._begin(each, first_at + OURS if again else sent_at + OURS)
            return

    def _begin(self, grant: TaskGrant, until: float) -> None:
        now = self._world.loop.time()
        if until <= now:
            self._world.history.seen["granted too late"] += 1
        held = Held(grant.task.id, grant.fence, self._worker.label, now, max(now, until))
        self._world.board.holds.append(held)
        plan = self._world.rng.choice(self._world.board_plans)
        self._world.history.seen[f"task {plan}"] += 1
        self._worker.do(self._hold(held, plan))

    async def _hold(self, held: Held, plan: str) -> None:
        rng, loop = self._world.rng, self._world.loop
        seconds = {"slow": 60.0, "long": 260.0, "forgets": 1e6, "zombie": 160.0}.get(
            plan, rng.choice((0.0, 0.5, 8.0))
        )
        over = loop.time() + seconds
        while loop.time() < min(over, held.end):
            await asyncio.sleep(min(LOCK_SECONDS / 3, over - loop.time(), max(0.0, held.end - loop.time())))
            if plan in ("slow", "long") and not await self._renew(held):
                break
        if loop.time() >= held.end and plan != "zombie":
            return  # a good client says nothing more under a lease that it lost
        if plan == "zombie":
            await asyncio.sleep(max(0.0, over - loop.time()))
        await self._report(held, plan)

    async def _renew(self, held: Held) -> bool:
        loop, sent_at = self._world.loop, self._world.loop.time()
        if sent_at >= held.end:
            return False
        given = {"fence": held.fence, "instance": self._worker.name, "note": "on it"}
        try:
            await self._worker.call(lambda server: server.board.renew(CALLER, held.task_id, given))
        except (NoAnswerError, GnomonError) as error:
            return isinstance(error, NoAnswerError) and loop.time() < held.end
        if loop.time() < held.end:  # an answer that comes after the end brings nothing back
            held.end = max(held.end, sent_at + OURS)
        return True

    async def _report(self, held: Held, plan: str) -> None:
        status = "backlog" if plan == "back" else "done"
        fence = held.fence + (self._world.rng.choice((-1, 1)) if plan == "wrong fence" else 0)
        task_id = held.task_id
        if plan == "foreign":
            task_id = self._world.rng.choice(self._world.board.holds).task_id
        answered = await self._tell(task_id, max(0, fence), status)
        if answered == "no answer" or plan == "twice":
            answered = await self._tell(task_id, max(0, fence), status)
        if plan in ("wrong fence", "foreign") and self._world.loop.time() < held.end + 20.0:
            await self._tell(held.task_id, held.fence, "done")

    async def _tell(self, task_id: str, fence: int, status: str) -> str:
        given = {"fence": fence, "status": status, "instance": self._worker.name}
        for held in self._world.board.holds:  # whatever becomes of it, it is let go of
            if (held.task_id, held.fence) == (task_id, fence) and held.worker.startswith(
                f"{self._worker.name}/"
            ):
                held.end = min(held.end, self._world.loop.time())
        try:
            done = await self._worker.call(lambda server: server.board.report(CALLER, task_id, given))
            answer = "replayed" if done.replayed else "taken"
        except NoAnswerError:
            answer = "no answer"
        except GnomonError as error:
            answer = error.code
        self._world.history.seen[f"report {answer}"] += 1
        self._world.board.told.append(Told(self._world.loop.time(), task_id, fence, status, answer))
        return answer
