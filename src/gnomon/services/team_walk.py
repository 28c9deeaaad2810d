"""Executes a team's graph (TGT-3): each node as soon as what it needs is done, side by side with the others.

How a node is run and where a checkpoint goes are callables handed in: no store, no runtime and no clock is known here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from gnomon.domain.invocation import Failing, Result, TargetFailure, Usage
from gnomon.domain.team import Node, NodeOutput, Team, render

RunNode = Callable[[Node, str], Awaitable[Result]]
OnDone = Callable[[Node, Result], Awaitable[None]]


async def walk(
    team: Team, query: str, done: Mapping[str, NodeOutput], run_node: RunNode, on_done: OnDone
) -> Result:
    """The answer of a team that ``check`` found no fault in, with the usage of the nodes that ran in this walk.

    ``run_node`` gets a node and its query, placeholders filled in. ``on_done`` is awaited before anything that needs
    the node starts, so a node whose checkpoint could not be written was never built upon. Nodes in ``done`` are not
    run again, and what they cost belongs to the attempt that ran them.

    Raises:
        TargetFailure: ``node_failed`` naming the first node that failed, retryable as the node's own failure was;
            the other nodes have been cancelled by then. ``target_invalid`` if the graph comes to no output.
    """
    if team.output in done:
        return Result(done[team.output].output)
    return await _Walk(team, query, done, run_node, on_done).run()


class _Walk:
    """The state of one walk: outputs so far, who waits for whom, what was spent, what went wrong first."""

    def __init__(
        self, team: Team, query: str, done: Mapping[str, NodeOutput], run_node: RunNode, on_done: OnDone
    ) -> None:
        self._team = team
        self._query = query
        self._run_node = run_node
        self._on_done = on_done
        self._outputs = {name: output.output for name, output in done.items()}
        self._started = set(done)
        self._usage: Usage | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._first: BaseException | None = None

    async def run(self) -> Result:
        # Not a TaskGroup: Python 3.11's leaves its own cancellation counted on the task that entered it, and the
        # runner could not tell that from a cancellation of the run.
        try:
            self._start_ready()
            while self._tasks:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                if isinstance(self._first, asyncio.CancelledError):
                    # nobody cancelled it: a cancelled walk would not have come back from the wait
                    raise TargetFailure(Failing.NODE_FAILED, "a node cancelled itself", usage=self._usage)
                if self._first is not None:
                    raise self._first
                self._tasks = {task for task in self._tasks if not task.done()}
                self._start_ready()
        finally:
            await self._end_others()
        if self._team.output not in self._outputs:
            message = f'the team\'s graph never comes to its output "{self._team.output}"'
            raise TargetFailure(Failing.TARGET_INVALID, message, usage=self._usage)
        return Result(self._outputs[self._team.output], self._usage)

    async def _end_others(self) -> None:
        """Cancel what still runs and wait for its end; a cancellation in between is passed on, not obeyed early."""
        cancelled = False
        while pending := [task for task in self._tasks if not task.done()]:
            for task in pending:
                task.cancel()
            try:
                await asyncio.wait(pending)
            except asyncio.CancelledError:
                cancelled = True
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if cancelled:
            raise asyncio.CancelledError

    def _start_ready(self) -> None:
        for node in self._team.nodes:
            if node.id not in self._started and all(name in self._outputs for name in node.after):
                self._started.add(node.id)
                self._tasks.add(asyncio.create_task(self._step(node), name=f"node {node.id}"))

    async def _step(self, node: Node) -> None:
        try:
            result = await self._attempt(node)
            await self._on_done(node, result)
        except BaseException as error:
            self._first = self._first or error
            raise
        self._outputs[node.id] = result.output

    async def _attempt(self, node: Node) -> Result:
        try:
            result = await self._run_node(node, render(node.query, self._query, self._outputs))
        except TargetFailure as failure:
            self._spend(failure.usage)
            raise TargetFailure(
                Failing.NODE_FAILED,
                f'node "{node.id}" failed ({failure.code}): {failure.message}',
                retryable=failure.retryable,
                retry_after=failure.retry_after,
                usage=self._usage,
            ) from failure
        self._spend(result.usage)
        return result

    def _spend(self, usage: Usage | None) -> None:
        if usage is not None:
            self._usage = usage if self._usage is None else self._usage + usage
