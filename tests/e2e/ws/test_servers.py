"""Several processes on one file: the connection here, the lease there, and a server that is killed between (TGT-1, JOB-5)."""

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from support.processes import until
from support.product import Running, running, up
from support.socket_world import Peer

pytestmark = [pytest.mark.process, pytest.mark.anyio]
QUICK = {
    "GNOMON_SWEEP_SECONDS": "0.5",
    "GNOMON_HEARTBEAT_SECONDS": "0.5",
    "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": "10",
}


class Field:
    """Two servers that do no runs, and a worker that does nothing else."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.first = stack.enter_context(up(folder, **QUICK, GNOMON_WORK="false"))
        self.second = stack.enter_context(running("serve", "--port", "0", "--json", cwd=folder, **QUICK))
        self.worker = stack.enter_context(running("worker", "--json", cwd=folder, **QUICK))
        for process in (self.second, self.worker):
            process.wait_for_start()
        self.second.started["key"] = self.first.started["key"]
        made, _ = self.first.ask(
            "/v1/agents",
            method="POST",
            body={"slug": "hand", "name": "Hand", "runtime": {"kind": "role", "role": "pm"}},
        )
        assert made == 201

    def run(self) -> str:
        """A run in the queue; its id."""
        body = {
            "name": "s",
            "target": {"kind": "agent", "id": "hand"},
            "cadence": {"unit": "hour"},
            "query": "go",
        }
        _, made = self.second.ask("/v1/schedules", method="POST", body=body)
        code, run = self.second.ask(f"/v1/schedules/{made['id']}/run", method="POST")
        assert code == 202
        found: str = run["id"]
        return found

    def ended(self, run_id: str) -> dict[str, Any]:
        """A run once it is over."""

        def over() -> dict[str, Any] | None:
            _, run = self.second.ask(f"/v1/runs/{run_id}")
            return run if run["status"] not in ("queued", "running") else None

        found: dict[str, Any] = until(over, "the run's end")
        return found


@pytest.fixture
def field(tmp_path: Path) -> Iterator[Field]:
    with ExitStack() as stack:
        yield Field(tmp_path, stack)


def opened(server: Running) -> Any:
    """A connection to a server."""
    url = server.started["address"].replace("http://", "ws://") + "/v1/connect"
    return connect(
        url, additional_headers={"Authorization": f"Bearer {server.started['key']}"}, compression=None
    )


@pytest.mark.parametrize("acknowledged", [True, False])
async def test_a_run_outlives_the_server_that_pushed_it(field: Field, acknowledged: bool) -> None:
    """JOB-5, JOB-4: killed, it says no goodbye. Acknowledged work goes on over the next server, any other is sent again."""
    async with opened(field.first) as socket:
        peer = Peer(socket)
        await peer.say("hello", role="pm", instance="a", in_flight=[])
        await peer.frame("welcome")
        run_id = await asyncio.to_thread(field.run)
        frame = await peer.frame("run_trigger")
        named = {"run_id": frame["run_id"], "fence": frame["fence"]}
        if acknowledged:
            await peer.say("run_ack", **named)
            await peer.say("poll")
            await peer.frame("error")
        await asyncio.to_thread(field.first.stop, signal.SIGKILL)
        await peer.closed()
    async with opened(field.second) as socket:
        peer = Peer(socket)
        await peer.say("hello", role="pm", instance="a", in_flight=[named] if acknowledged else [])
        welcome = await peer.frame("welcome")
        if not acknowledged:
            again = await peer.frame("run_trigger")
            assert again["redelivered"] is True
            assert {again[name] == frame[name] for name in ("run_id", "fence", "idempotency_key")} == {True}
            await peer.say("run_ack", **named)
        await peer.say("run_result", **named, status="succeeded", output="over the second")
        found = await asyncio.to_thread(field.ended, run_id)
    assert (found["status"], found["output"], len(found["attempts"])) == ("succeeded", "over the second", 1)
    assert welcome["epoch"] == 2
    assert found["attempts"][0]["worker"] == field.worker.started["process_id"]


async def test_an_instance_that_restarted_without_its_work_makes_the_run_fail(field: Field) -> None:
    """TGT-1: it may be half done, so it is not done again."""
    async with opened(field.first) as socket:
        peer = Peer(socket)
        await peer.say("hello", role="pm", instance="a", in_flight=[])
        await peer.frame("welcome")
        run_id = await asyncio.to_thread(field.run)
        frame = await peer.frame("run_trigger")
        await peer.say("run_ack", run_id=frame["run_id"], fence=frame["fence"])
        await peer.say("poll")
        await peer.frame("error")
    async with opened(field.second) as socket:
        await socket.send(json.dumps({"type": "hello", "role": "pm", "instance": "a", "in_flight": []}))
        found = await asyncio.to_thread(field.ended, run_id)
    assert (found["status"], found["error"]["code"]) == ("failed", "unreachable")
