"""Runs of ``role`` agents from a schedule to an instance and back, over a real socket (TGT-1, TGT-2, TGT-3, RUN-10)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.socket_world import World, a_world

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        await made.agent()
        yield made


async def test_a_run_is_told_all_that_a_target_gets(world: World) -> None:
    """TGT-1, TGT-2, IDM-3: and what it says reaches the record and the stream."""
    async with world.instance() as peer:
        path = await world.run(query="hello {{date}}")
        frame = await peer.frame("run_trigger")
        named = {"run_id": frame["run_id"], "fence": frame["fence"]}
        assert frame["idempotency_key"] == frame["run_id"] == path.rpartition("/")[2]
        assert frame["query"].startswith("hello 20")
        assert (frame["attempt"], frame["role"], frame["redelivered"]) == (1, "pm", False)
        assert frame["dedup_key"] is not None
        assert frame["session_id"].startswith("ses_")
        await peer.say("run_ack", **named)
        await peer.say("run_progress", **named, text="half way")
        usage = {"model_calls": 2, "input_tokens": 30, "output_tokens": 4, "cost": 0.5}
        await peer.say("run_result", **named, status="succeeded", output="done", usage=usage)
        found = await world.ended(path)
        assert (found["status"], found["output"], found["usage"]) == ("succeeded", "done", usage)
        stream = (await world.http.get(f"{path}/events")).text
        assert "half way" in stream


async def test_a_failure_is_told_and_tried_again_where_the_instance_says_so(world: World) -> None:
    """RUN-9: each attempt under a fence of its own, and one key."""
    async with world.instance() as peer:
        retry = {"max_attempts": 2, "backoff_seconds": 0, "backoff_max_seconds": 0}
        path = await world.run(retry=retry)
        first = await peer.frame("run_trigger")
        await peer.say(
            "run_result",
            run_id=first["run_id"],
            fence=first["fence"],
            status="failed",
            error="disk full",
            retryable=True,
        )
        second = await peer.work("better")
        found = await world.ended(path)
        assert found["status"] == "succeeded"
        assert [attempt["outcome"] for attempt in found["attempts"]] == ["failed", "succeeded"]
        assert found["attempts"][0]["error"] == {"code": "reported", "message": "disk full"}
        assert second["fence"] > first["fence"]
        assert second["idempotency_key"] == first["idempotency_key"]


async def test_nobody_comes(world: World) -> None:
    """TGT-1: the run waits, then fails with the reason."""
    path = await world.run(timeout_seconds=1)
    found = await world.ended(path)
    assert (found["status"], found["error"]["code"]) == ("failed", "no_instance")
    assert 'role "pm"' in found["error"]["message"]


async def test_whoever_comes_while_it_waits_gets_it(world: World) -> None:
    """TGT-1."""
    path = await world.run()
    async with world.instance() as peer:
        await peer.work("late but there")
        assert (await world.ended(path))["output"] == "late but there"


async def test_a_cancelled_run_is_cancelled_at_its_instance(world: World) -> None:
    """RUN-10."""
    async with world.instance() as peer:
        path = await world.run()
        frame = await peer.frame("run_trigger")
        named = {"run_id": frame["run_id"], "fence": frame["fence"]}
        await peer.say("run_ack", **named)
        assert (await world.http.post(f"{path}/cancel")).status_code == 202
        cancel = await peer.frame()
        assert (cancel["type"], cancel["run_id"], cancel["fence"]) == ("cancel", *named.values())
        await peer.say("run_result", **named, status="cancelled")
        assert (await world.ended(path))["status"] == "cancelled"
        await peer.say("poll")
        assert (await peer.frame())["code"] == "unknown_type"  # its last word was no fault


async def test_a_run_out_of_time_is_cancelled_at_its_instance(world: World) -> None:
    """RUN-2."""
    async with world.instance() as peer:
        path = await world.run(timeout_seconds=1)
        frame = await peer.frame("run_trigger")
        await peer.say("run_ack", run_id=frame["run_id"], fence=frame["fence"])
        assert (await peer.frame())["type"] == "cancel"
        assert (await world.ended(path))["status"] == "timed_out"


async def test_it_works_as_a_node_of_a_team(world: World) -> None:
    """TGT-3: nodes side by side at one instance are told apart, and each has its own key."""
    nodes = [
        {"id": "a", "agent": "hand", "query": "a {{query}}"},
        {"id": "b", "agent": "hand", "query": "b {{query}}"},
        {"id": "end", "agent": "hand", "query": "{{nodes.a.output}}+{{nodes.b.output}}", "after": ["a", "b"]},
    ]
    made = await world.http.post(
        "/v1/teams", json={"slug": "crew", "name": "Crew", "nodes": nodes, "output": "end"}
    )
    assert made.status_code == 201, made.text
    async with world.instance() as peer:
        path = await world.run("crew", "team")
        frames = [await peer.frame("run_trigger"), await peer.frame("run_trigger")]
        run_id = path.rpartition("/")[2]
        assert {frame["run_id"] for frame in frames} == {f"{run_id}/a", f"{run_id}/b"}
        for frame in reversed(frames):
            named = {"run_id": frame["run_id"], "fence": frame["fence"]}
            await peer.say("run_result", **named, status="succeeded", output=frame["query"].upper())
        last = await peer.work("all")
        assert (last["query"], last["idempotency_key"]) == ("A GO+B GO", f"{run_id}/end")
        assert (await world.ended(path))["output"] == "all"


async def test_many_runs_at_once_are_each_done_once(world: World) -> None:
    """TGT-1: by two instances, neither of which gets more than it has room for."""
    done: list[str] = []

    async with world.instance("a", max_in_flight=2) as one, world.instance("b", max_in_flight=2) as other:

        async def works(peer: object) -> None:
            while True:
                frame = await peer.work()  # type: ignore[attr-defined]
                done.append(frame["run_id"])

        workers = [asyncio.create_task(works(peer)) for peer in (one, other)]
        paths = await asyncio.gather(*(world.run() for _ in range(20)))
        found = await asyncio.gather(*(world.ended(path) for path in paths))
        for worker in workers:
            worker.cancel()
    assert {run["status"] for run in found} == {"succeeded"}
    assert sorted(done) == sorted(run["id"] for run in found)
