"""Invoking a grant's target: an agent through its runtime, a team node by node from its last checkpoint (TGT-1, TGT-3)."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Protocol

from gnomon.domain import dedup
from gnomon.domain.agent import Agent, RuntimeSpec
from gnomon.domain.grant import Grant
from gnomon.domain.instants import SECOND, maybe_instant
from gnomon.domain.invocation import (
    Deferred,
    Failing,
    Invocation,
    Limits,
    Message,
    Result,
    TargetFailure,
    Usage,
)
from gnomon.domain.team import Node, NodeOutput
from gnomon.domain.trace import traceparent
from gnomon.ports.runtime import Reporter
from gnomon.services.team_walk import walk
from gnomon.stores import runs
from gnomon.stores.database import Database, Tx

MESSAGES = 200  # of a fixed session, the newest: what a model can still be expected to read

_slot = lru_cache(maxsize=1_000)(maybe_instant)  # the runs of a batch have few


class Runtimes(Protocol):
    """The table of runtimes, as the invoker sees it."""

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """Run one attempt through the adapter for this spec; see ``ports.runtime.Runtime``."""


@dataclass(slots=True)  # not frozen: one is made for each run
class Prepared:
    """A grant with what its target will be told, and the nodes that need not be run again."""

    grant: Grant
    invocation: Invocation
    done: Mapping[str, NodeOutput] = field(default_factory=dict)


class Invoker:
    """Turns grants into invocations."""

    def __init__(self, database: Database, runtimes: Runtimes, process_id: str) -> None:
        self._database = database
        self._runtimes = runtimes
        self._process_id = process_id

    async def prepare(self, grant: Grant, deadline: datetime) -> Prepared:
        """Read what the session and the checkpoints hold; nothing is sent yet."""
        messages: tuple[Message, ...] = ()
        done: dict[str, NodeOutput] = {}
        if grant.continues_session or grant.resolved.team is not None:
            messages, done = await self._database.read(lambda tx: _memory(tx, grant))
        agent = grant.resolved.agent
        nominal = _slot(grant.nominal_fire_at)
        invocation = Invocation(  # mostly by place: by name it takes twice as long
            grant.run_id,
            grant.attempt,
            grant.fence,
            grant.run_id,
            grant.query,
            deadline,
            dedup.of_run(grant.dedup_key, grant.schedule_id, nominal),
            nominal,
            session_id=grant.session_id,
            messages=messages,
            traceparent=traceparent(grant.trace_id, grant.run_id, grant.attempt),
            limits=Limits() if agent is None else agent.limits,
        )
        return Prepared(grant, invocation, done)

    async def invoke(self, prepared: Prepared, reporter: Reporter) -> Result | Deferred:
        """Invoke the target once.

        Raises:
            TargetFailure: the attempt failed.
        """
        resolved = prepared.grant.resolved
        if resolved.agent is not None:
            agent = resolved.agent
            return await self._runtimes.invoke(agent.runtime, agent.secret, prepared.invocation, reporter)
        return await self._invoke_team(prepared, reporter)

    async def defer(self, grant: Grant) -> None:
        """The target took the work: the run outlives this process until its timeout."""
        timeout_us = grant.timeout_seconds * SECOND
        await self._database.write_guarded(
            lambda tx: runs.defer(tx, grant.run_id, self._process_id, grant.fence, timeout_us)
        )

    async def _invoke_team(self, prepared: Prepared, reporter: Reporter) -> Result:
        grant = prepared.grant
        team = grant.resolved.team
        assert team is not None
        spent = _Spent(team.limits, prepared.done)

        async def run_node(node: Node, query: str) -> Result:
            agent = grant.resolved.agents[node.agent]
            invocation = replace(
                prepared.invocation,
                query=query,
                idempotency_key=f"{grant.run_id}/{node.id}",
                dedup_key=dedup.of_node(prepared.invocation.dedup_key, node.id),
                limits=agent.limits,
            )
            reporter.progress(f"node {node.id}: started")
            answer = await self._invoke_node(agent, invocation, reporter, node)
            spent.add(answer.usage, node)
            return answer

        async def on_done(node: Node, result: Result) -> None:
            await self._checkpoint(grant, node, result)
            reporter.progress(f"node {node.id}: done")

        return await walk(team, grant.query, prepared.done, run_node, on_done)

    async def _invoke_node(
        self, agent: Agent, invocation: Invocation, reporter: Reporter, node: Node
    ) -> Result:
        try:
            async with asyncio.timeout(agent.timeout_seconds):
                answer = await self._runtimes.invoke(agent.runtime, agent.secret, invocation, reporter)
        except TimeoutError:
            raise TargetFailure(
                Failing.TIMEOUT,
                f"The agent {agent.slug} of node {node.id} took longer than its {agent.timeout_seconds} s.",
                retryable=True,
            ) from None
        if isinstance(answer, Deferred):
            raise TargetFailure(
                Failing.NONSENSE,
                f"Node {node.id} answered 202: the node of a team can't be completed later.",
            )
        return answer

    async def _checkpoint(self, grant: Grant, node: Node, result: Result) -> None:
        usage = None if result.usage is None else json.dumps(asdict(result.usage))

        async def work(tx: Tx) -> bool:
            return await runs.checkpoint(
                tx,
                run_id=grant.run_id,
                node=node.id,
                fence=grant.fence,
                owner=self._process_id,
                output=result.output,
                usage=usage,
            )

        await self._database.write_guarded(work)


class _Spent:
    """What the nodes of one run have used, against the team's limits (TGT-5)."""

    def __init__(self, limits: Limits, done: Mapping[str, NodeOutput]) -> None:
        self._limits = limits
        self._usage = sum((node.usage for node in done.values() if node.usage is not None), Usage())

    def add(self, usage: Usage | None, node: Node) -> None:
        """Count a node's usage.

        Raises:
            TargetFailure: the team's limit is passed.
        """
        if usage is None:
            return
        self._usage += usage
        calls, cost = self._limits.model_calls, self._limits.cost
        if calls is not None and self._usage.model_calls > calls:
            raise TargetFailure(
                Failing.MODEL_CALLS_EXCEEDED,
                f"After node {node.id} the team had made {self._usage.model_calls} model calls; its limit is {calls}.",
                usage=usage,  # the walk has counted the other nodes
            )
        if cost is not None and self._usage.cost > cost:
            raise TargetFailure(
                Failing.COST_EXCEEDED,
                f"After node {node.id} the team had cost {self._usage.cost}; its limit is {cost}.",
                usage=usage,  # the walk has counted the other nodes
            )


async def _memory(tx: Tx, grant: Grant) -> tuple[tuple[Message, ...], dict[str, NodeOutput]]:
    messages: list[Message] = []
    if grant.continues_session:
        turns = await runs.history_of_session(tx, grant.session_id, grant.run_id, MESSAGES // 2)
        for query, output in turns:
            messages += [Message("user", query), Message("assistant", output)]
    rows = await runs.checkpoints(tx, grant.run_id) if grant.resolved.team is not None else []
    done = {
        row["node"]: NodeOutput(
            row["output"], None if row["usage"] is None else Usage(**json.loads(row["usage"]))
        )
        for row in rows
    }
    return tuple(messages), done
