"""The client as an instance of a real server: pushed to, cancelled, reconnected, replaced (JOB-4, JOB-5, TGT-1)."""

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from gnomon.client import (
    AsyncClient,
    Client,
    Forbidden,
    PushedRun,
    PushedTrigger,
    Replaced,
    Result,
    Stopped,
    Unauthenticated,
    Unreachable,
    Usage,
)
from support.chaos_proxy import FaultProxy, Mode
from support.processes import until
from support.product import Running, running
from support.workers import QUICK, a_job, a_role, a_run, client_of, ended, served, the_trigger

pytestmark = pytest.mark.process
BOUND = 20


@pytest.fixture
async def aclient(server: Running) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.started["address"], server.started["key"]) as made:
        yield made


def the_instance(client: Client, role: str) -> dict[str, Any]:
    [found] = [each for each in client.request("GET", "/instances")["items"] if each["role"] == role]
    return dict(found)


def heartbeat(client: Client, role: str) -> datetime:
    return datetime.fromisoformat(the_instance(client, role)["last_heartbeat_at"])


async def test_a_run_is_worked_on_and_answered(aclient: AsyncClient, client: Client) -> None:
    """TGT-1, TGT-2, RUN-6."""
    schedule, seen = a_role(client, "answers"), []

    async def answer(run: PushedRun) -> Result:
        seen.append(run)
        run.progress("half of it")
        return Result(f"because of {run.query}", Usage(model_calls=2))

    async with aclient.connect("answers", "a-1", on_run=answer):
        run = a_run(client, schedule)
        found = await asyncio.to_thread(ended, client, run)
    assert (found["status"], found["output"]) == ("succeeded", "because of how?")
    assert found["usage"]["model_calls"] == 2
    [pushed] = seen
    assert (pushed.id, pushed.fence, pushed.idempotency_key) == (run, found["fence"], run)
    until(lambda: the_instance(client, "answers")["status"] == "offline", "a goodbye that is heard")


async def test_what_a_handler_raises_is_the_failure(aclient: AsyncClient, client: Client) -> None:
    schedule = a_role(client, "raises")

    async def fail(run: PushedRun) -> str:
        raise ValueError(f"no {run.query}")

    async with aclient.connect("raises", "r-1", on_run=fail):
        found = await asyncio.to_thread(ended, client, a_run(client, schedule))
    assert found["status"] == "failed"
    assert "ValueError: no how?" in found["error"]["message"]


async def test_who_takes_no_runs_says_so(aclient: AsyncClient, client: Client) -> None:
    schedule = a_role(client, "takes-none")
    async with aclient.connect("takes-none", "t-1"):
        found = await asyncio.to_thread(ended, client, a_run(client, schedule))
    assert found["error"]["message"].endswith("This instance takes no runs.")


async def test_a_cancel_cancels_the_handler(aclient: AsyncClient, client: Client) -> None:
    """RUN-10."""
    schedule = a_role(client, "cancels")
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def work(run: PushedRun) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with aclient.connect("cancels", "c-1", on_run=work) as instance:
        run = a_run(client, schedule)
        await asyncio.wait_for(begun.wait(), BOUND)
        client.request("POST", f"/runs/{run}/cancel")
        await asyncio.wait_for(cancelled.wait(), BOUND)
        assert (await asyncio.to_thread(ended, client, run))["status"] == "cancelled"
        await asyncio.to_thread(until, lambda: instance.is_idle, "the end of the work")


def test_a_cancel_tells_a_sync_handler(client: Client) -> None:
    """RUN-10: it looks for itself."""
    schedule, stopped = a_role(client, "looks"), threading.Event()

    def work(run: PushedRun) -> None:
        run.progress("begun")
        assert run.wait_stopped(BOUND)
        try:
            run.check()
        except Stopped:
            stopped.set()
            raise

    with client.connect("looks", "l-1", on_run=work) as instance:
        run = a_run(client, schedule)
        until(lambda: the_instance(client, "looks")["in_flight"], "the push")
        client.request("POST", f"/runs/{run}/cancel")
        assert stopped.wait(BOUND)
        assert ended(client, run)["status"] == "cancelled"
        assert not instance.wait(0)


async def test_a_handler_that_blocks_does_not_keep_the_heartbeat(tmp_path: Path) -> None:
    """JOB-5: the connection has a thread of its own."""
    quick = {"GNOMON_HEARTBEAT_SECONDS": "0.2", "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": "1"}
    with served(tmp_path, **quick) as server, client_of(server) as client:
        schedule = a_role(client, "blocks")

        async def block(run: PushedRun) -> str:
            enough = heartbeat(client, "blocks") + timedelta(seconds=2)
            until(lambda: heartbeat(client, "blocks") > enough, "heartbeats for twice their timeout")
            return str(the_instance(client, "blocks")["status"])

        aclient = AsyncClient(server.started["address"], server.started["key"])
        async with aclient, aclient.connect("blocks", "b-1", on_run=block):
            found = await asyncio.to_thread(ended, client, a_run(client, schedule))
        assert (found["status"], found["output"]) == ("succeeded", "online")
        assert the_instance(client, "blocks")["epoch"] == 1


async def test_a_trigger_is_worked_on_and_answered(aclient: AsyncClient, client: Client) -> None:
    """JOB-2, JOB-3, IDM-3."""
    seen: list[PushedTrigger] = []

    async def work(trigger: PushedTrigger) -> str:
        seen.append(trigger)
        return f"depth {trigger.payload['depth']}"

    async with aclient.connect("triggered", "t-1", on_trigger=work):
        job = await asyncio.to_thread(a_job, client, "triggered", {"depth": 2})
        found = await asyncio.to_thread(the_trigger, client, job, "succeeded")
    [pushed] = seen
    assert (pushed.id, pushed.dedup_key) == (found["id"], found["dedup_key"])
    assert found["note"] == "depth 2"
    assert found["pushes"] == 1


def test_a_trigger_is_kept_over_a_reconnect_and_begun_once(server: Running, client: Client) -> None:
    """JOB-4, JOB-5: it is acknowledged, its connection breaks, and its answer comes over the next one."""
    go, begun = threading.Event(), list[str]()

    def work(trigger: PushedTrigger) -> None:
        begun.append(trigger.id)
        assert go.wait(BOUND)

    port = urlsplit(server.started["address"]).port or 0
    with FaultProxy("127.0.0.1", port) as line, through(line, server) as broken:
        with broken.connect("kept", "k-1", on_trigger=work):
            job = a_job(client, "kept")
            trigger = the_trigger(client, job, "acknowledged")
            line.cut_all()
            until(partial(is_at, client, "kept", 2), "a reconnect")
            go.set()
            assert the_trigger(client, job, "succeeded")["id"] == trigger["id"]
        assert begun == [trigger["id"]]


def test_what_ended_without_a_connection_is_told_over_the_next_one(server: Running, client: Client) -> None:
    """JOB-5."""
    go = threading.Event()
    port = urlsplit(server.started["address"]).port or 0
    with (
        FaultProxy("127.0.0.1", port) as line,
        through(line, server) as broken,
        broken.connect("told", "t-1", on_trigger=lambda _: go.wait(BOUND) and "late") as instance,
    ):
        job = a_job(client, "told")
        the_trigger(client, job, "acknowledged")
        line.turn(Mode.HOLD)
        line.cut_all()
        go.set()
        until(lambda: not instance._session.in_flight, "the end of the work")
        assert the_trigger(client, job)["status"] == "acknowledged"
        line.turn(Mode.PASS)
        assert the_trigger(client, job, "succeeded")["note"] == "late"


def is_at(client: Client, role: str, epoch: int) -> bool:
    return bool(the_instance(client, role)["epoch"] == epoch)


def through(line: FaultProxy, server: Running) -> Client:
    return Client(f"http://127.0.0.1:{line.port}", server.started["key"])


def test_ws_08_a_connection_that_breaks_is_followed_by_one(server: Running, client: Client) -> None:
    """ws-08, JOB-5: error and end come together, and there is one reconnect, as the same instance, with its work."""
    schedule, go = a_role(client, "again"), threading.Event()
    begun: list[str] = []

    def work(run: PushedRun) -> str:
        begun.append(run.id)
        assert go.wait(BOUND)
        return "done"

    port = urlsplit(server.started["address"]).port or 0
    with FaultProxy("127.0.0.1", port) as line, through(line, server) as broken:
        with broken.connect("again", "a-1", on_run=work):
            run = a_run(client, schedule)
            until(lambda: begun, "the push")
            first = the_instance(client, "again")
            for cut in range(1, 4):
                line.cut_all()
                until(partial(is_at, client, "again", cut + 1), "a reconnect")
                assert len(line._open) == 2, "one connection through the line has two ends"
            go.set()
            found = ended(client, run)
        last = the_instance(client, "again")
    assert (found["status"], found["output"]) == ("succeeded", "done")
    assert begun == [run], "the work went on, and was begun once"
    assert (last["id"], last["epoch"]) == (first["id"], 4)


def test_an_instance_that_is_given_up_stops_its_run(tmp_path: Path) -> None:
    """RUN-5: the centre says how long it waits, and by then a run may be another's."""
    quick = {"GNOMON_HEARTBEAT_SECONDS": "0.3", "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": "1.5"}
    begun, stopped = threading.Event(), list[object]()

    def work(run: PushedRun) -> None:
        begun.set()
        run.wait_stopped(BOUND)
        stopped.append(run.stopped)

    with served(tmp_path, **quick) as server, client_of(server) as client:
        schedule = a_role(client, "given-up")
        port = urlsplit(server.started["address"]).port or 0
        with (
            FaultProxy("127.0.0.1", port) as line,
            through(line, server) as broken,
            broken.connect("given-up", "g-1", on_run=work),
        ):
            run = a_run(client, schedule)
            assert begun.wait(BOUND)
            line.turn(Mode.HOLD)
            line.cut_all()
            assert until(lambda: stopped, "the stop") == ["revoked"]
            assert ended(client, run)["status"] == "failed"


def test_two_of_one_name_do_not_take_turns(server: Running, client: Client) -> None:
    """JOB-5: the newest wins, and the other one stays away."""
    with (
        client.connect("twins", "t-1") as first,
        client_of(server) as another,
        another.connect("twins", "t-1"),
    ):
        with pytest.raises(Replaced):
            first.wait(BOUND)
        assert the_instance(client, "twins")["epoch"] == 2
        assert the_instance(client, "twins")["status"] == "online"


def test_an_instance_outlives_its_server(tmp_path: Path) -> None:
    """JOB-4, JOB-5: the same instance comes back to the next one, with the trigger that it works on."""
    go, begun = threading.Event(), list[str]()

    def work(trigger: PushedTrigger) -> str:
        begun.append(trigger.id)
        assert go.wait(BOUND * 2)
        return "over two servers"

    with served(tmp_path) as server:
        client = client_of(server)
        schedule = a_role(client, "stays")
        with client.connect(
            "stays", "s-1", on_trigger=work, on_run=lambda run: f"by {run.query}", max_in_flight=2
        ):
            first = the_instance(client, "stays")
            the_trigger(client, a_job(client, "stays"), "acknowledged")
            server.process.kill()
            server.wait()
            port = server.started["address"].rpartition(":")[2]
            with running("up", "--port", port, "--json", cwd=tmp_path, **QUICK) as again:
                again.wait_for_start()
                until(partial(is_at, client, "stays", 2), "the reconnect")
                assert the_instance(client, "stays")["id"] == first["id"]
                assert ended(client, a_run(client, schedule))["output"] == "by how?"
                go.set()
                found = the_trigger(client, "stays", "succeeded", "failed")
        client.close()
    assert (found["note"], found["pushes"], begun) == ("over two servers", 1, [found["id"]])


def test_a_drained_instance_finishes_and_gets_nothing_new(client: Client) -> None:
    """JOB-5."""
    schedule, go = a_role(client, "drains", timeout_seconds=2), threading.Event()
    begun: list[str] = []

    def work(run: PushedRun) -> str:
        begun.append(run.id)
        assert go.wait(BOUND)
        return "done"

    with client.connect("drains", "d-1", on_run=work, max_in_flight=5) as instance:
        run = a_run(client, schedule)
        until(lambda: begun, "the push")
        instance.drain()
        until(lambda: the_instance(client, "drains")["status"] == "draining", "the drain")
        go.set()
        assert ended(client, run)["status"] == "succeeded"
        late = ended(client, a_run(client, schedule))
    assert late["status"] == "failed"
    assert begun == [run]


def test_who_may_not_connect_is_told_so(server: Running, client: Client) -> None:
    """SEC-1, SEC-3."""
    address = server.started["address"]
    made = client.request("POST", "/keys", {"name": "reader", "scopes": ["tasks:read"]})
    bound = client.request("POST", "/keys", {"name": "pm", "scopes": ["instances:connect"], "role": "pm"})
    with Client(address, made["key"]) as reader, pytest.raises(Forbidden, match="instances:connect"):
        reader.connect("pm", "pm-1").__enter__()
    with Client(address, bound["key"]) as pm, pytest.raises(Forbidden) as raised:
        pm.connect("dev", "dev-1").__enter__()
    assert raised.value.code == "key_bound_to_role"
    with Client(address, "gnk_no_such_key") as nobody, pytest.raises(Unauthenticated):
        nobody.connect("pm", "pm-1").__enter__()
    nowhere = Client("http://127.0.0.1:9", "gnk_x", patience_seconds=0.3)
    with nowhere, pytest.raises(Unreachable):
        nowhere.connect("pm", "pm-1").__enter__()
