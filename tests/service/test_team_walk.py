"""Walking a team's graph: order, parallelism, checkpoints, resume, failure and cancellation (TGT-3)."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from gnomon.domain.invocation import Failing, Limits, Result, TargetFailure, Usage
from gnomon.domain.team import Node, Team
from gnomon.services.team_walk import walk

THEN = datetime(2026, 11, 29, tzinfo=UTC)


def team(*nodes: Node, output: str = "z") -> Team:
    return Team("tea_1", "t", "T", nodes, output, None, Limits(), True, 1, THEN, "prn_1", THEN)


DIAMOND = team(
    Node("a", "x", "{{query}}"),
    Node("b", "x", "b({{nodes.a.output}})", ("a",)),
    Node("c", "x", "c({{nodes.a.output}})", ("a",)),
    Node("z", "x", "{{nodes.b.output}}+{{nodes.c.output}}+{{nodes.a.output}}", ("b", "c")),
)


class Runs:
    """Runs nodes by a function, and keeps the order in which things happened."""

    def __init__(self, answer: Callable[[Node, str], Awaitable[Result]] | None = None) -> None:
        self.log: list[str] = []
        self._answer = answer

    async def run_node(self, node: Node, query: str) -> Result:
        self.log.append(f"start {node.id}")
        try:
            return Result(f"<{query}>", Usage(1)) if self._answer is None else await self._answer(node, query)
        except asyncio.CancelledError:
            self.log.append(f"cancelled {node.id}")
            raise

    async def on_done(self, node: Node, result: Result) -> None:
        await asyncio.sleep(0)
        self.log.append(f"done {node.id} {result.output}")


def test_nodes_get_what_is_upstream_and_usage_is_summed_tgt_3() -> None:
    runs = Runs()
    found = asyncio.run(walk(DIAMOND, "q", {}, runs.run_node, runs.on_done))
    assert found == Result("<<b(<q>)>+<c(<q>)>+<q>>", Usage(4))
    assert runs.log[:2] == ["start a", "done a <q>"]
    assert runs.log[-2:] == ["start z", "done z <<b(<q>)>+<c(<q>)>+<q>>"]


def test_nodes_that_wait_for_nothing_run_side_by_side_tgt_3() -> None:
    async def scenario() -> None:
        both = asyncio.Barrier(2)

        async def answer(node: Node, query: str) -> Result:
            if node.id in "bc":
                await asyncio.wait_for(both.wait(), 5)
            return Result(node.id)

        runs = Runs(answer)
        assert await walk(DIAMOND, "q", {}, runs.run_node, runs.on_done) == Result("z")

    asyncio.run(scenario())


def test_a_node_runs_as_soon_as_what_it_needs_is_done_tgt_3() -> None:
    """A slow neighbour holds up nobody who does not need it."""

    async def scenario() -> None:
        last = asyncio.Event()

        async def answer(node: Node, query: str) -> Result:
            if node.id == "slow":
                await asyncio.wait_for(last.wait(), 5)
            if node.id == "third":
                last.set()
            return Result(node.id)

        graph = team(
            Node("slow", "x", ""),
            Node("first", "x", ""),
            Node("second", "x", "", ("first",)),
            Node("third", "x", "", ("second",)),
            Node("z", "x", "", ("slow", "third")),
        )
        runs = Runs(answer)
        await walk(graph, "q", {}, runs.run_node, runs.on_done)
        assert runs.log.index("done third third") < runs.log.index("done slow slow")

    asyncio.run(scenario())


def test_a_checkpoint_is_written_before_anything_is_built_upon_it_tgt_3() -> None:
    async def scenario() -> None:
        runs = Runs()

        async def on_done(node: Node, result: Result) -> None:
            raise ConnectionError("the database has gone")

        with pytest.raises(ConnectionError):
            await walk(DIAMOND, "q", {}, runs.run_node, on_done)
        assert runs.log == ["start a"]

    asyncio.run(scenario())


def test_finished_nodes_are_not_run_again_tgt_3() -> None:
    runs = Runs()
    done = {"a": Result("A", Usage(100)), "b": Result("B", Usage(100))}
    found = asyncio.run(walk(DIAMOND, "q", done, runs.run_node, runs.on_done))
    assert found == Result("<B+<c(A)>+A>", Usage(2))
    assert [line for line in runs.log if line.startswith("start")] == ["start c", "start z"]


def test_when_the_output_is_done_nothing_runs_tgt_3() -> None:
    runs = Runs()
    found = asyncio.run(walk(DIAMOND, "q", {"z": Result("Z", Usage(9))}, runs.run_node, runs.on_done))
    assert found == Result("Z")
    assert runs.log == []


@pytest.mark.parametrize("retryable", [True, False])
def test_the_first_failure_cancels_the_others_and_names_the_node_tgt_3(retryable: bool) -> None:
    async def scenario() -> None:
        hanging = asyncio.Event()

        async def answer(node: Node, query: str) -> Result:
            if node.id == "b":
                hanging.set()
                await asyncio.Event().wait()
            if node.id == "c":
                await asyncio.wait_for(hanging.wait(), 5)
                raise TargetFailure(
                    Failing.HTTP_STATUS, "said 503", retryable=retryable, retry_after=4, usage=Usage(2)
                )
            return Result(node.id, Usage(1))

        runs = Runs(answer)
        with pytest.raises(TargetFailure) as caught:
            await walk(DIAMOND, "q", {}, runs.run_node, runs.on_done)
        failure = caught.value
        assert failure.code is Failing.NODE_FAILED
        assert failure.message == 'node "c" failed (http_status): said 503'
        assert failure.retryable is retryable
        assert failure.retry_after == 4
        assert failure.usage == Usage(3)
        assert runs.log[-1] == "cancelled b"
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    asyncio.run(scenario())


def test_an_error_that_is_no_targets_comes_out_as_itself() -> None:
    async def answer(node: Node, query: str) -> Result:
        raise ZeroDivisionError

    runs = Runs(answer)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(walk(DIAMOND, "q", {}, runs.run_node, runs.on_done))


def test_a_node_that_cancels_itself_is_a_failure_not_a_cancellation() -> None:
    async def answer(node: Node, query: str) -> Result:
        raise asyncio.CancelledError

    runs = Runs(answer)
    with pytest.raises(TargetFailure) as caught:
        asyncio.run(walk(DIAMOND, "q", {}, runs.run_node, runs.on_done))
    assert caught.value.code is Failing.NODE_FAILED


def test_cancelling_the_walk_cancels_its_nodes_run_10() -> None:
    async def scenario() -> None:
        both = asyncio.Barrier(3)

        async def answer(node: Node, query: str) -> Result:
            if node.id in "bc":
                await both.wait()
                await asyncio.Event().wait()
            return Result(node.id)

        runs = Runs(answer)
        walking = asyncio.create_task(walk(DIAMOND, "q", {}, runs.run_node, runs.on_done))
        await asyncio.wait_for(both.wait(), 5)
        walking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await walking
        assert sorted(runs.log[-2:]) == ["cancelled b", "cancelled c"]

    asyncio.run(scenario())


def test_a_node_that_fails_while_the_walk_is_cancelled_does_not_hide_the_cancellation_run_10() -> None:
    async def scenario() -> None:
        hanging = asyncio.Event()

        async def answer(node: Node, query: str) -> Result:
            hanging.set()
            try:
                await asyncio.Event().wait()
            finally:
                raise TargetFailure(Failing.UNREACHABLE, "closed")

        runs = Runs(answer)
        walking = asyncio.create_task(walk(team(Node("z", "x", "")), "q", {}, runs.run_node, runs.on_done))
        await asyncio.wait_for(hanging.wait(), 5)
        walking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await walking

    asyncio.run(scenario())


def test_a_graph_that_was_never_checked_ends_all_the_same() -> None:
    graph = team(Node("a", "x", "", ("z",)), Node("z", "x", "", ("a",)))
    runs = Runs()
    with pytest.raises(TargetFailure) as caught:
        asyncio.run(walk(graph, "q", {}, runs.run_node, runs.on_done))
    assert caught.value.code is Failing.TARGET_INVALID
    assert runs.log == []


def test_an_output_that_holds_a_placeholder_is_not_expanded_tgt_3() -> None:
    async def answer(node: Node, query: str) -> Result:
        return Result("{{query}}" if node.id == "a" else query)

    graph = team(Node("a", "x", ""), Node("z", "x", "{{nodes.a.output}}", ("a",)))
    runs = Runs(answer)
    assert asyncio.run(walk(graph, "q", {}, runs.run_node, runs.on_done)) == Result("{{query}}")
