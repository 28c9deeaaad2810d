"""The client on the board of a real server: claims that renew themselves, reports, what was lost on the way (BRD, IDM)."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from gnomon.client import (
    AsyncClient,
    Client,
    Conflict,
    Forbidden,
    Invalid,
    LeaseLost,
    NotFound,
    NotReported,
    Unauthenticated,
    Unreachable,
)
from gnomon.client.calls import Unanswered
from support.chaos_proxy import FaultProxy, Mode
from support.processes import until
from support.product import Running

pytestmark = pytest.mark.process


@pytest.fixture
async def aclient(server: Running) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.started["address"], server.started["key"]) as made:
        yield made


def a_task(client: Client, role: str, **more: Any) -> str:
    task, existed = client.create_task(role, "Look into it", **more)
    assert not existed
    return str(task["id"])


def audited(client: Client, task_id: str) -> Counter[str]:
    entries = client.request("GET", "/audit", subject=task_id, limit=100)["items"]
    return Counter(entry["action"] for entry in entries)


def test_a_claim_is_held_and_reported(client: Client) -> None:
    """BRD-1, BRD-3."""
    task_id = a_task(client, "held", body="all of it", priority=3)
    with client.claim("held", "held-1") as held:
        assert held is not None
        assert held.task["id"] == task_id
        assert held.task["body"] == "all of it"
        assert held.fence == 1
        assert not held.verify_first
        assert client.task(task_id)["held_by"]["instance"] == "held-1"
        with client.claim("held", "held-2") as other:
            assert other is None
        held.report("done", note="looked", result={"n": 1})
        assert held.is_reported
        held.check()
    task = client.task(task_id)
    assert (task["status"], task["held_by"]) == ("done", None)
    assert (task["last_report"]["note"], task["last_report"]["result"]) == ("looked", {"n": 1})
    assert audited(client, task_id)["RELEASE"] == 1


def test_a_lease_is_renewed_while_the_work_goes_on(client: Client) -> None:
    """BRD-2: three times as long as a lock without a renewal would hold."""
    task_id = a_task(client, "renewed")
    with client.claim("renewed", "r-1") as held:
        assert held is not None
        until(lambda: audited(client, task_id)["RENEW"] >= 6, "six renewals of a third each")
        held.check()
        held.report("done")
    assert client.task(task_id)["status"] == "done"


async def test_a_coroutine_that_blocks_does_not_starve_the_renewal(
    aclient: AsyncClient, client: Client
) -> None:
    """BRD-2: the lease is kept on a thread."""
    task_id = a_task(client, "blocking")
    async with aclient.claim("blocking", "b-1") as held:
        assert held is not None
        until(lambda: audited(client, task_id)["RENEW"] >= 4, "renewals while the event loop stands still")
        await held.report("done")
    assert client.task(task_id)["status"] == "done"


def test_progress_is_kept_and_renews(client: Client) -> None:
    """BRD-6: the next holder would read it."""
    task_id = a_task(client, "progress")
    with client.claim("progress", "p-1") as held:
        assert held is not None
        held.progress("half of it")
        assert client.task(task_id)["last_report"]["note"] == "half of it"
        held.report("in_review")


def test_a_body_that_raises_blocks_its_task(client: Client) -> None:
    task_id = a_task(client, "raises")
    with pytest.raises(ZeroDivisionError), client.claim("raises", "r-1"):
        _ = 1 // 0
    task = client.task(task_id)
    assert task["status"] == "blocked"
    assert task["last_report"]["note"].startswith("ZeroDivisionError: ")


def test_a_worker_that_is_interrupted_gives_its_task_back(client: Client) -> None:
    task_id = a_task(client, "interrupted")
    with pytest.raises(KeyboardInterrupt), client.claim("interrupted", "i-1"):
        raise KeyboardInterrupt
    assert client.task(task_id)["status"] == "backlog"


def test_a_body_that_forgets_its_report_is_told(client: Client) -> None:
    task_id = a_task(client, "forgets")
    with pytest.raises(NotReported, match=r"held\.report\('done'\)"), client.claim("forgets", "f-1"):
        pass
    assert client.task(task_id)["status"] == "blocked"


def test_a_task_is_handed_over_to_another_role(client: Client) -> None:
    task_id = a_task(client, "first-hand")
    with client.claim("first-hand", "h-1") as held:
        assert held is not None
        held.report("backlog", note="yours", role="second-hand")
    with client.claim("second-hand", "h-2") as held:
        assert held is not None
        assert held.task["id"] == task_id
        assert held.last_report is not None
        assert held.last_report["note"] == "yours"
        held.report("done")


def test_a_report_that_can_t_be_keeps_the_task(client: Client) -> None:
    task_id = a_task(client, "odd")
    with client.claim("odd", "o-1") as held:
        assert held is not None
        with pytest.raises(Invalid) as raised:
            held.report("finished")  # type: ignore[arg-type]
        assert raised.value.errors[0]["field"] == "status"
        assert client.task(task_id)["held_by"] is not None
        held.report("done")
        with pytest.raises(RuntimeError, match="reported already"):
            held.report("done")


def test_a_lease_that_was_taken_is_raised(client: Client) -> None:
    """BRD-2, BRD-3: at the next renewal it is known, at the check and at the end it is raised."""
    task_id = a_task(client, "taken")

    def work() -> None:
        with client.claim("taken", "t-1") as held:
            assert held is not None
            client.request("POST", f"/tasks/{task_id}/release", {"reason": "mine"})
            until(lambda: held.is_lost, "the loss of the lease")
            assert held.seconds_left == 0
            for late in (held.check, lambda: held.report("done")):
                with pytest.raises(LeaseLost):
                    late()

    with pytest.raises(LeaseLost) as raised:
        work()
    assert isinstance(raised.value.because, Conflict)
    assert client.task(task_id)["status"] == "backlog"


async def test_a_lease_that_was_taken_cancels_the_body(aclient: AsyncClient, client: Client) -> None:
    """BRD-2."""
    task_id = a_task(client, "cancelled")
    cancelled: list[str] = []

    async def work() -> None:
        async with aclient.claim("cancelled", "c-1") as held:
            assert held is not None
            client.request("POST", f"/tasks/{task_id}/release")
            try:
                await asyncio.wait_for(asyncio.Event().wait(), 20)
            except asyncio.CancelledError:
                cancelled.append(task_id)
                raise

    with pytest.raises(LeaseLost):
        await work()
    assert cancelled == [task_id]
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0, "the cancellation was the context's own, and is taken back"
    await asyncio.sleep(0)


async def test_who_cancels_the_worker_is_heard(aclient: AsyncClient, client: Client) -> None:
    task_id = a_task(client, "stopped")
    inside = asyncio.Event()

    async def work() -> None:
        async with aclient.claim("stopped", "s-1"):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.wait_for(inside.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.task(task_id)["status"] == "backlog"


async def test_who_is_cancelled_twice_leaves_no_thread(aclient: AsyncClient, client: Client) -> None:
    """A lease that nobody holds is renewed no more, whatever cuts the last word off."""
    task_id = a_task(client, "twice")
    inside = asyncio.Event()

    async def work() -> None:
        async with aclient.claim("twice", "t-1"):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.wait_for(inside.wait(), 20)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([task], timeout=20)
    name = f"renew-{task_id}"
    await asyncio.to_thread(
        until, lambda: name not in {each.name for each in threading.enumerate()}, "its end"
    )


def test_a_lease_that_nobody_renews_is_over_here_before_it_is_there(client: Client) -> None:
    """RUN-5, BRD-4: and the late report is refused."""
    task_id = a_task(client, "silent")

    def work() -> None:
        with client.claim("silent", "s-1") as held:
            assert held is not None
            held._renewal._ask = lambda _call, _seconds: Unanswered("the line is dead", sent=False)
            until(lambda: held.is_lost, "the end of the lease by the worker's own clock")
            assert client.task(task_id)["held_by"]["instance"] == "s-1", "the server still keeps it"
            until(lambda: client.task(task_id)["status"] == "backlog", "the sweep")
            with pytest.raises(Conflict) as refused:
                client.request("POST", f"/tasks/{task_id}/report", {"fence": held.fence, "status": "done"})
            assert refused.value.code == "fence_stale"

    with pytest.raises(LeaseLost, match="the line is dead"):
        work()
    assert client.task(task_id)["possibly_half_done"]
    with client.claim("silent", "s-2") as held:
        assert held is not None
        assert held.verify_first
        assert held.fence == 2
        held.report("done")


def test_what_was_waited_for_comes_at_once(client: Client) -> None:
    made = threading.Timer(0.3, lambda: a_task(client, "waited"))
    made.start()
    with client.claim("waited", "w-1", wait_seconds=20) as held:
        assert held is not None
        held.report("done")
    made.join()


def test_check_before_create_asks_first(client: Client) -> None:
    """IDM-2, IDM-3."""
    asked: list[str] = []

    def written() -> dict[str, Any]:
        asked.append("written")
        return {"role": "digest", "title": "The digest of week 48"}

    first, existed = client.check_before_create("digest-2026-W48", written)
    assert (existed, first["dedup_key"]) == (False, "digest-2026-W48")
    second, existed = client.check_before_create("digest-2026-W48", written)
    assert (existed, second["id"]) == (True, first["id"])
    assert asked == ["written"], "what exists is not written again"


def test_two_that_find_nothing_make_one(client: Client) -> None:
    """IDM-2: two at once."""
    both, names = threading.Barrier(2), iter(("one", "another"))
    found: list[tuple[str, bool]] = []

    def make() -> None:
        def written() -> dict[str, Any]:
            both.wait(20)
            return {"role": "once", "title": f"Once, by {next(names)}"}

        task, existed = client.check_before_create("once-only", written)
        found.append((task["id"], existed))

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({task_id for task_id, _ in found}) == 1
    assert sorted(existed for _, existed in found) == [False, True]


def lossy(server: Running, call: Callable[[Client], Any]) -> Any:
    """What a call gives whose first answer is lost on the line after the server has done what it asks."""
    address = urlsplit(server.started["address"])
    found: list[Any] = []
    line = FaultProxy("127.0.0.1", address.port or 0)
    with line, Client(f"http://127.0.0.1:{line.port}", server.started["key"]) as client:
        line.turn(Mode.DEAF)
        thread = threading.Thread(target=lambda: found.append(call(client)))
        thread.start()
        until(lambda: sum(line.done.values()), "an answer that is swallowed")
        line.turn(Mode.PASS)
        line.cut_all()
        thread.join(20)
    [answer] = found
    return answer


def test_a_task_whose_answer_was_lost_is_made_once(server: Running, client: Client) -> None:
    """IDM-2: the repeat is the same request."""
    task, existed = lossy(server, lambda lost: lost.create_task("lost-make", "Once"))
    assert not existed
    found = client.request("GET", "/tasks", role="lost-make")["items"]
    assert [each["id"] for each in found] == [task["id"]]


def test_a_claim_whose_answer_was_lost_is_found_again(server: Running, client: Client) -> None:
    """RUN-5a: it is asked for under its name, not left to its lock."""
    task_id = a_task(client, "lost-claim")
    [held] = lossy(server, lambda lost: lost.claim_batch("lost-claim", "l-1", 1))
    held.stop()
    assert held.task["id"] == task_id
    assert held.fence == 1
    assert audited(client, task_id)["CLAIM"] == 1


def test_a_report_whose_answer_was_lost_has_landed(server: Running, client: Client) -> None:
    """RUN-5a, BRD-3: one release, and no lost lease."""
    task_id = a_task(client, "lost-report")
    [claimed] = client.claim_batch("lost-report", "l-1", 1)
    claimed.stop()

    def report(lost: Client) -> bool:
        claimed._http = lost._http
        claimed.report("done", note="all")
        return claimed.is_reported

    assert lossy(server, report)
    assert client.task(task_id)["status"] == "done"
    assert audited(client, task_id)["RELEASE"] == 1


def test_who_may_not_is_told_so(server: Running, client: Client) -> None:
    """SEC-1."""
    made = client.request("POST", "/keys", {"name": "reader", "scopes": ["tasks:read"]})
    address = server.started["address"]
    with Client(address, made["key"]) as reader, pytest.raises(Forbidden, match="tasks:claim"):
        reader.claim_batch("pm", "pm-1", 1)
    with Client(address, "gnk_no_such_key") as nobody, pytest.raises(Unauthenticated):
        nobody.task("tsk_1")
    with pytest.raises(NotFound):
        client.task("tsk_none")


def test_a_server_that_is_not_there_is_told() -> None:
    nowhere = Client("http://127.0.0.1:9", "gnk_x", patience_seconds=0.2)
    with nowhere, pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:9 can't be reached"):
        nowhere.task("tsk_1")
