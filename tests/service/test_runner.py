"""A claimed run from its claim to the write that closes it (RUN-2 to RUN-6, RUN-9, RUN-10, SCH-8, SCH-11)."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from gnomon.domain.errors import FenceStale, Unavailable
from gnomon.domain.instants import to_micros
from gnomon.domain.invocation import Failing, TargetFailure, Usage
from gnomon.domain.run import RunStatus
from gnomon.stores import processes, runs
from gnomon.stores.database import Tx
from gnomon.stores.run_rows import NewRun
from support.databases import START
from support.house import AGENT, House, a_schedule, a_team, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
SCHEDULE = "sch_" + "0" * 20


async def a_due_schedule(house: House, **changes: Any) -> str:
    await an_agent(house.database)
    return await a_schedule(
        house.database, HOURLY, next_fire_at=house.clock.now(), anchor=START - timedelta(hours=5), **changes
    )


async def test_a_failure_is_recorded_with_its_reason_and_moves_the_streak(house: House) -> None:
    """SCH-8."""
    house.runtime.fails(Failing.EXIT_STATUS, "exit 3", usage=Usage(1, 2, 3, 0.5))
    sid = await a_due_schedule(house)
    await house.dispatch()
    await house.idle()
    run, schedule = await house.run(), await house.schedule(sid)
    assert (run["status"], run["error_code"], run["error"]) == ("failed", "exit_status", "exit 3")
    assert (run["model_calls"], run["cost"]) == (1, 0.5)
    assert (schedule["failure_streak"], schedule["last_error_code"]) == (1, "exit_status")
    assert schedule["unfinished_run_id"] is None


async def test_five_failures_stop_the_schedule_with_a_warning_on_the_way(house: House) -> None:
    """SCH-8. aut-04: status error, the last failure kept, no further slot."""
    sid = await a_due_schedule(house)
    for number in range(5):
        house.runtime.fails(Failing.EXCEPTION, f"failure {number}")
        await house.dispatch()
        await house.idle()
        await house.elapse(3600)
    schedule = await house.schedule(sid)
    assert (schedule["status"], schedule["failure_streak"], schedule["next_fire_at"]) == ("error", 5, None)
    assert schedule["last_error"] == "failure 4"
    assert len(await house.audit("WARN")) == 1
    assert len(await house.audit("FAIL_OUT")) == 1
    await house.dispatch()
    assert len(house.runtime.calls) == 5


async def test_a_success_clears_the_streak_and_a_cancel_leaves_it(house: House) -> None:
    """SCH-8."""
    sid = await a_due_schedule(house)
    house.runtime.fails()
    await house.dispatch()
    await house.idle()
    await house.elapse(3600)
    hold = house.runtime.hangs()
    await house.dispatch()
    await hold.started.wait()
    await house.database.write(
        lambda tx: runs.ask_cancel(tx, house.runtime.invocations[-1].run_id, "a person")
    )
    await house.claim()
    await house.idle()
    assert (await house.schedule(sid))["failure_streak"] == 1
    assert (await house.run(1))["status"] == "cancelled"
    await house.elapse(3600)
    await house.dispatch()
    await house.idle()
    assert (await house.schedule(sid))["failure_streak"] == 0


async def test_a_retryable_failure_goes_back_to_the_queue_with_its_backoff(house: House) -> None:
    """RUN-1."""
    sid = await a_due_schedule(house, max_attempts=3, backoff_seconds=10, backoff_max_seconds=15)
    house.runtime.fails(Failing.UNREACHABLE, "no route", retryable=True)
    house.runtime.fails(Failing.UNREACHABLE, "no route", retryable=True)
    await house.dispatch()
    await house.idle()
    run = await house.run()
    assert (run["status"], run["lease_until"], run["owner"]) == ("queued", None, None)
    assert run["scheduled_for"] == to_micros(START) + 10_000_000
    assert (await house.schedule(sid))["unfinished_run_id"] == run["id"], "it still is the schedule's lock"
    assert await house.claim() == pytest.approx(10)
    await house.elapse(10)
    await house.claim()
    await house.idle()
    assert (await house.run())["scheduled_for"] == to_micros(house.clock.now()) + 15_000_000
    await house.elapse(15)
    await house.claim()
    await house.idle()
    run = await house.run()
    assert (run["status"], run["attempt"], run["fence"]) == ("succeeded", 3, 3)
    attempts = await house.rows("SELECT number, fence, outcome, error_code FROM attempts ORDER BY number")
    assert [(a["number"], a["fence"], a["outcome"], a["error_code"]) for a in attempts] == [
        (1, 1, "failed", "unreachable"),
        (2, 2, "failed", "unreachable"),
    ]
    assert len({i.idempotency_key for i in house.runtime.invocations}) == 1, "RUN-6: stable over attempts"
    assert [i.fence for i in house.runtime.invocations] == [1, 2, 3]
    assert (await house.schedule(sid))["failure_streak"] == 0


async def test_a_failure_that_is_final_is_not_tried_again(house: House) -> None:
    house.runtime.fails(Failing.HTTP_STATUS, "400", retryable=False)
    await a_due_schedule(house, max_attempts=3)
    await house.dispatch()
    await house.idle()
    assert (await house.run())["status"] == "failed"
    assert len(house.runtime.calls) == 1


async def test_a_run_costs_what_all_its_attempts_cost(house: House) -> None:
    """RUN-9: a first try that failed was paid for too; one that tells nothing takes nothing away."""
    for usage in (Usage(1, 10, 20, 0.25), None):
        house.runtime.fails(Failing.UNREACHABLE, "no route", retryable=True, usage=usage)
    house.runtime.answers("done", Usage(2, 1, 2, 0.5))
    await a_due_schedule(house, max_attempts=3, backoff_seconds=10)
    await house.dispatch()
    await house.idle()
    for _ in range(2):
        await house.elapse(30)
        await house.claim()
        await house.idle()
    run = await house.run()
    assert (run["status"], run["attempt"]) == ("succeeded", 3)
    spent = tuple(run[name] for name in ("model_calls", "input_tokens", "output_tokens", "cost"))
    assert spent == (3, 11, 22, 0.75)


async def test_retry_after_is_heeded_up_to_the_cap(house: House) -> None:
    house.runtime.fails(Failing.HTTP_STATUS, "429", retryable=True, retry_after=400)
    await a_due_schedule(house, max_attempts=2, backoff_max_seconds=60)
    await house.dispatch()
    await house.idle()
    assert (await house.run())["scheduled_for"] == to_micros(START) + 60_000_000


async def test_the_hard_timeout_stops_the_target(house: House) -> None:
    """RUN-2."""
    hold = house.runtime.hangs()
    await a_due_schedule(house, timeout_seconds=60)
    await house.dispatch()
    await hold.started.wait()
    await house.elapse(59)
    await house.claim()
    assert not hold.cancelled.is_set()
    await house.elapse(1)
    await house.claim()
    await house.idle()
    assert hold.cancelled.is_set()
    run = await house.run()
    assert (run["status"], run["error_code"]) == ("timed_out", "timeout")
    assert "60 s" in run["error"]


async def test_a_target_that_ignores_its_cancel_is_closed_without_it(house: House) -> None:
    """RUN-10.

    ovl-05: the timeout closes the run, the lock is free, the next slot fires; a late answer changes nothing.
    """
    hold = house.runtime.hangs(stubborn=True)
    sid = await a_due_schedule(house, timeout_seconds=60)
    await house.dispatch()
    await hold.started.wait()
    await house.elapse(60)
    await house.claim()
    await house.elapse(5)
    await house.claim()
    await house.idle()
    assert (await house.run())["status"] == "timed_out"
    assert (await house.schedule(sid))["unfinished_run_id"] is None
    await house.elapse(3_600 - 65)
    await house.dispatch()
    await house.idle()
    assert [row["status"] for row in await house.rows("SELECT status FROM runs ORDER BY id")] == [
        "timed_out",
        "succeeded",
    ]
    hold.release("too late")
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=0.1)
    assert (await house.run())["status"] == "timed_out"
    assert (await house.run())["output"] is None


async def test_a_cancel_reaches_a_running_target(house: House) -> None:
    """RUN-10."""
    hold = house.runtime.hangs()
    await a_due_schedule(house)
    await house.dispatch()
    await hold.started.wait()
    run_id = house.runtime.invocations[0].run_id
    await house.database.write(lambda tx: runs.ask_cancel(tx, run_id, "key_of_ada"))
    await house.claim()
    await house.idle()
    run = await house.run()
    assert hold.cancelled.is_set()
    assert (run["status"], run["error"]) == ("cancelled", "Cancelled by key_of_ada.")


async def test_the_lease_is_renewed_at_a_third_and_never_revived(house: House) -> None:
    """RUN-4."""
    hold = house.runtime.hangs()
    await a_due_schedule(house, timeout_seconds=60)  # a lease of 90 s
    await house.dispatch()
    await hold.started.wait()
    before = (await house.run())["lease_until"]
    assert before == to_micros(START) + 90_000_000
    await house.elapse(25)
    assert (await house.run())["lease_until"] == before
    await house.elapse(5)
    assert (await house.run())["lease_until"] == before + 30_000_000
    hold.release()
    await house.idle()
    await house.elapse(100)
    assert (await house.run())["lease_until"] is None


async def test_a_runner_that_cannot_renew_stops_before_its_lease_ends(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-5.

    A lease is not a lock: without renewals the target is stopped, by the monotonic clock, while the lease holds.
    """
    hold = house.runtime.hangs()
    await a_due_schedule(house, timeout_seconds=60)
    await house.dispatch()
    await hold.started.wait()
    house.engine.renewal.add_group(house.runtime.invocations[0].run_id, 4711)

    class Down:
        def write(self, _work: object) -> object:
            raise Unavailable("the database is gone")

        write_one = write

    monkeypatch.setattr(house, "direct", Down())
    await house.elapse(85)
    await house.until(hold.cancelled.is_set)
    run = await house.run()
    assert house.clock.micros() < run["lease_until"], "stopped before the lease was over"
    assert house.killed == [4711]
    assert run["status"] == "running", "nothing was written: the sweep says what became of it"


async def test_a_process_without_a_heartbeat_stops_all_its_work(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-5."""
    hold = house.runtime.hangs()
    await a_due_schedule(house, timeout_seconds=86_400)
    await house.dispatch()
    await hold.started.wait()

    class Down:
        def write(self, _work: object) -> object:
            raise Unavailable("the database is gone")

        write_one = write

    monkeypatch.setattr(house, "direct", Down())
    await house.elapse(house.pace.heartbeat_timeout_seconds - 1)
    await house.until(hold.cancelled.is_set)


async def test_a_frozen_process_sends_nothing_when_it_wakes(house: House) -> None:
    """RUN-5.

    Z2: stopped between the claim and the request for longer than the lease; it asks its own clock first.
    """
    await a_due_schedule(house, timeout_seconds=60)
    prepare = house.engine.runner._attempts._invoker.prepare

    async def slow(*given: object) -> object:
        house.clock.advance(1_000)
        return await prepare(*given)  # type: ignore[arg-type]

    house.engine.runner._attempts._invoker.prepare = slow  # type: ignore[assignment, method-assign]
    await house.dispatch()
    await house.idle()
    assert house.runtime.calls == []


async def test_a_close_with_an_old_fence_changes_nothing_and_is_on_record(house: House) -> None:
    """RUN-6.

    lea-25, Z1: the sweep closed the run as lost while its holder stood still; the holder's late close is refused.
    """
    hold = house.runtime.hangs()
    sid = await a_due_schedule(house, timeout_seconds=60)
    await house.dispatch()
    await hold.started.wait()
    other = await house.neighbour()
    house.clock.advance(200)
    await other.engine.watchdog.tick()
    assert (await house.run())["status"] == "lost"
    hold.release("a zombie's answer")
    await house.idle()
    run = await house.run()
    assert (run["status"], run["response_preview"], run["output"]) == ("lost", None, None)
    assert (await house.schedule(sid))["failure_streak"] == 1
    [fenced] = await house.audit("FENCED")
    assert (fenced["subject_id"], fenced["fence"]) == (run["id"], 1)
    assert (await house.run())["output"] is None


async def test_a_close_that_fails_is_reduced_to_taking_the_lock_off(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-3. lea-22: an error in the last write never leaves the schedule locked."""
    sid = await a_due_schedule(house)
    real = runs.close

    async def broken(tx: Any, endings: Any, **how: Any) -> Any:
        if any(ending.output is not None for ending in endings):
            raise RuntimeError("planted")
        return await real(tx, endings, **how)

    monkeypatch.setattr(runs, "close", broken)
    await house.dispatch()
    await house.idle()
    run = await house.run()
    assert (run["status"], run["error_code"]) == ("failed", "close_failed")
    assert (await house.schedule(sid))["unfinished_run_id"] is None


async def test_a_close_waits_for_a_database_that_is_busy(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    sid = await a_due_schedule(house)
    real = house.database.write_guarded
    failures = iter([True, True])
    hold = house.runtime.hangs()
    await house.dispatch()
    await hold.started.wait()

    async def busy(work: object) -> object:
        if next(failures, False):
            raise Unavailable("busy", code="busy")
        return await real(work)  # type: ignore[arg-type]

    monkeypatch.setattr(house.database, "write_guarded", busy)
    hold.release("kept")
    for _ in range(3):
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=0.02)
        house.clock.advance(1)
    await house.idle()
    assert (await house.run())["status"] == "succeeded"
    assert (await house.schedule(sid))["unfinished_run_id"] is None


async def test_a_deferred_run_is_completed_by_its_target(house: House) -> None:
    """TGT-1."""
    house.runtime.defers()
    sid = await a_due_schedule(house)
    await house.dispatch()
    await house.until(lambda: house.runtime.calls)
    assert (await house.run())["status"] == "running"
    run_id = house.runtime.invocations[0].run_id
    with pytest.raises(FenceStale):
        await house.engine.closing.complete(run_id, 7, RunStatus.SUCCEEDED, "x", None)
    await house.engine.closing.complete(run_id, 1, RunStatus.SUCCEEDED, "the answer", Usage(model_calls=2))
    await house.claim()
    await house.idle()
    run = await house.run()
    assert (run["status"], run["response_preview"], run["model_calls"]) == ("succeeded", "the answer", 2)
    assert (await house.schedule(sid))["unfinished_run_id"] is None
    with pytest.raises(FenceStale):
        await house.engine.closing.complete(run_id, 1, RunStatus.FAILED, "again", None)
    assert len(await house.audit("FENCED")) == 2


async def test_a_deferred_run_that_nobody_completes_times_out(house: House) -> None:
    house.runtime.defers()
    await a_due_schedule(house, timeout_seconds=60)
    await house.dispatch()
    await house.until(lambda: any(work.deferred for work in house.engine.runner._works.values()))
    await house.elapse(60)
    await house.claim()
    await house.idle()
    assert (await house.run())["status"] == "timed_out"


async def test_a_fixed_session_carries_its_messages(house: House) -> None:
    """SCH-7."""
    house.runtime.answers("first answer")
    await a_due_schedule(house, session_mode="fixed", session_id="ses_" + "0" * 20)
    await house.dispatch()
    await house.idle()
    await house.elapse(3600)
    await house.dispatch()
    await house.idle()
    first, second = house.runtime.invocations
    assert first.messages == ()
    assert [(m.role, m.content) for m in second.messages] == [
        ("user", "do it"),
        ("assistant", "first answer"),
    ]
    assert first.session_id == second.session_id


async def test_a_fresh_session_is_each_run_s_own(house: House) -> None:
    """SCH-7."""
    await a_due_schedule(house)
    await house.dispatch()
    await house.idle()
    await house.elapse(3600)
    await house.dispatch()
    await house.idle()
    first, second = house.runtime.invocations
    assert first.session_id != second.session_id
    assert second.messages == ()


async def test_a_run_in_the_queue_whose_target_is_gone_fails_in_words(house: House) -> None:
    await an_agent(house.database)
    await house.database.write(lambda tx: runs.insert(tx, [manual_run()]))
    await house.rows("UPDATE agents SET deleted_at = 1")
    await house.claim()
    await house.idle()
    run = await house.run()
    assert (run["status"], run["error_code"]) == ("failed", "target_gone")
    assert house.runtime.calls == []


def manual_run(
    run_id: str = "run_" + "0" * 20, priority: int = 0, at: int = to_micros(START), **changes: object
) -> NewRun:
    given: dict[str, object] = {
        "id": run_id,
        "trigger": "manual",
        "priority": priority,
        "target_kind": "agent",
        "target_id": AGENT,
        "schedule_id": None,
        "revision": None,
        "nominal_fire_at": None,
        "session_id": "ses_" + run_id[4:],
        "query": f"query of {run_id}",
        "scheduled_for": at,
        "claimable_at": at,
        "lease_seconds": 330,
    } | changes
    return NewRun(**given)  # type: ignore[arg-type]


async def test_interactive_runs_go_before_scheduled_ones_and_the_oldest_first(house: House) -> None:
    """RUN-1."""
    await an_agent(house.database)
    at = to_micros(START)
    new = [
        manual_run("run_" + "1" * 20, 10, at - 9_000_000),
        manual_run("run_" + "2" * 20, 10, at - 10_000_000),
        manual_run("run_" + "3" * 20, 0, at - 1_000_000),
        manual_run("run_" + "4" * 20, 0, at - 2_000_000),
        manual_run("run_" + "5" * 20, 0, at + 1_000_000),
    ]
    await house.database.write(lambda tx: runs.insert(tx, new))
    claimed = []
    for _ in range(5):
        found = await house.database.write(lambda tx: runs.claim(tx, "prc_x", "clm_x", 1))
        claimed += [row["id"][4] for row in found]
    assert claimed == ["4", "3", "2", "1"]


async def test_a_claim_whose_targets_can_not_be_read_is_given_back_and_made_anew(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-5a: it was committed, and nothing was started under it; it must not lie there for a lease."""
    await an_agent(house.database)
    waiting = [manual_run(f"run_{number}" + "0" * 19, 0, to_micros(START)) for number in range(2)]
    await house.database.write(lambda tx: runs.insert(tx, waiting))
    judge, failures = house.engine.runner._gates.judge, iter([True])

    async def gone(tx: Tx, targets: Any) -> Any:
        if next(failures, False):
            raise Unavailable("the database is gone")
        return await judge(tx, targets)

    monkeypatch.setattr(house.engine.runner._gates, "judge", gone)
    with pytest.raises(Unavailable):
        await house.claim()
    assert {row["status"] for row in await house.rows("SELECT status FROM runs")} == {"running"}
    assert house.runtime.calls == []
    await house.claim()
    await house.idle()
    found = await house.rows("SELECT status, attempt FROM runs")
    assert [(row["status"], row["attempt"]) for row in found] == [("succeeded", 1)] * 2
    assert len(house.runtime.calls) == 2


async def test_nodes_of_a_team_run_as_soon_as_they_can_and_are_kept(house: House) -> None:
    """TGT-3."""
    await an_agent(house.database)
    team = await a_team(
        house.database,
        "tea_" + "0" * 20,
        [
            {"id": "read", "agent": AGENT, "query": "read {{query}}"},
            {"id": "count", "agent": AGENT, "query": "count {{query}}"},
            {
                "id": "sum",
                "agent": AGENT,
                "query": "{{nodes.read.output}}+{{nodes.count.output}}",
                "after": ["read", "count"],
            },
        ],
        "sum",
    )
    house.runtime.answers(lambda invocation: f"<{invocation.query}>")
    house.runtime.answers(lambda invocation: f"<{invocation.query}>")
    house.runtime.answers(lambda invocation: invocation.query)
    await a_schedule(
        house.database,
        HOURLY,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        target_kind="team",
        target_id=team,
    )
    await house.dispatch()
    await house.idle()
    run = await house.run()
    assert (run["status"], run["response_preview"]) == ("succeeded", "<read do it>+<count do it>")
    kept = await house.rows("SELECT node, output FROM checkpoints ORDER BY node")
    assert [row["node"] for row in kept] == ["count", "read", "sum"]
    assert {i.idempotency_key for i in house.runtime.invocations} == {
        f"{run['id']}/{node}" for node in ("read", "count", "sum")
    }


@pytest.mark.parametrize("limits", ['{"model_calls": 2}', '{"cost": 0.5}'])
async def test_a_team_past_its_limit_tells_what_it_spent_once(house: House, limits: str) -> None:
    """TGT-5, RUN-9: each node's usage counts once, that of the one that went past the limit too."""
    await an_agent(house.database)
    nodes = [
        {"id": "a", "agent": AGENT, "query": "first", "after": []},
        {"id": "b", "agent": AGENT, "query": "{{nodes.a.output}}", "after": ["a"]},
    ]
    team = await a_team(house.database, "tea_" + "0" * 20, nodes, "b", limits=limits)
    for _ in nodes:
        house.runtime.answers("done", Usage(2, 10, 20, 0.5))
    await a_schedule(
        house.database, HOURLY, next_fire_at=START, anchor=START, target_kind="team", target_id=team
    )
    await house.dispatch()
    await house.idle()
    run = await house.run()
    assert (run["status"], run["error_code"]) == ("failed", "node_failed")
    assert "its limit is" in run["error"]
    spent = tuple(run[name] for name in ("model_calls", "input_tokens", "output_tokens", "cost"))
    assert spent == (4, 20, 40, 1.0)


async def test_a_team_that_cannot_run_is_a_skip_that_lists_every_fault(house: House) -> None:
    """TGT-3."""
    team = await a_team(
        house.database,
        "tea_" + "0" * 20,
        [
            {"id": "a", "agent": "ghost", "query": "", "after": ["b"]},
            {"id": "b", "agent": "ghost", "query": "", "after": ["a"]},
        ],
        "c",
    )
    await a_schedule(
        house.database, HOURLY, next_fire_at=START, anchor=START, target_kind="team", target_id=team
    )
    await house.dispatch()
    [occurrence], [skip] = await house.occurrences(), await house.audit("SKIP")
    assert (occurrence["disposition"], occurrence["reason"]) == ("skipped", "target_invalid")
    for word in ("cycle", "ghost", "output"):
        assert word in skip["detail"]


async def test_progress_reaches_the_event_stream_under_its_fence(house: House) -> None:
    """TGT-2."""
    hold = house.runtime.hangs()
    await a_due_schedule(house)
    await house.dispatch()
    await hold.started.wait()
    [call] = house.runtime.calls
    call.reporter.progress("halfway there")
    call.reporter.usage(Usage(model_calls=4))
    await house.engine.reports.flush()
    [event] = await house.rows("SELECT kind, data FROM run_events")
    assert (event["kind"], event["data"]) == ("progress", '{"text": "halfway there"}')
    hold.release(RuntimeError("it broke"))
    await house.idle()
    run = await house.run()
    assert (run["status"], run["model_calls"]) == ("failed", 4), "usage is kept although the attempt broke"
    call.reporter.progress("from the grave")
    await house.engine.reports.flush()
    assert len(await house.rows("SELECT * FROM run_events")) == 1


async def test_a_drain_lets_runs_finish_and_gives_unstarted_claims_back(house: House) -> None:
    """DSP-10."""
    holds = [house.runtime.hangs() for _ in range(3)]
    await an_agent(house.database)
    for index in range(3):
        await a_schedule(
            house.database,
            HOURLY,
            next_fire_at=START,
            anchor=START - timedelta(hours=5),
            schedule_id=f"sch_{index:020d}",
        )
    await house.dispatch()
    await house.until(lambda: all(hold.started.is_set() for hold in holds))
    draining = asyncio.create_task(house.engine.runner.drain(5.0))
    await house.until(lambda: house.engine.runner.places == 0)
    await house.database.write(lambda tx: runs.insert(tx, [manual_run()]))
    await house.claim()
    assert len(house.runtime.calls) == 3, "nothing is claimed any more"
    for hold in holds:
        hold.release()
    await draining
    statuses = await house.rows("SELECT status, count(*) AS n FROM runs GROUP BY status ORDER BY status")
    assert [(row["status"], row["n"]) for row in statuses] == [("queued", 1), ("succeeded", 3)]
    other = await house.neighbour()
    await other.claim()
    await other.idle()
    assert len(other.runtime.calls) == 1, "the next process claims it at once"


async def test_what_a_drain_cannot_finish_is_left_to_the_lease(house: House) -> None:
    """DSP-10."""
    hold = house.runtime.hangs()
    await a_due_schedule(house)
    await house.dispatch()
    await hold.started.wait()
    await house.engine.runner.drain(0.01)
    assert hold.cancelled.is_set()
    assert (await house.run())["status"] == "running"
    assert house.engine.runner.in_work == 0


async def test_a_claim_that_was_not_started_goes_back_whole(house: House) -> None:
    """DSP-10, casebook shu-04.

    What a stopping process has claimed and sent nothing for is claimed by the next one at once, as if for the first.
    """
    await a_due_schedule(house)
    preparing = asyncio.Event()

    async def never(*_: object) -> object:
        preparing.set()
        return await asyncio.get_running_loop().create_future()

    house.engine.runner._attempts._invoker.prepare = never  # type: ignore[assignment, method-assign]
    await house.dispatch()
    await preparing.wait()
    async with asyncio.timeout(10):  # at once, and not when the grace is over
        await house.engine.runner.drain(60.0)
    run = await house.run()
    assert (run["status"], run["attempt"], run["owner"], run["started_at"]) == ("queued", 0, None, None)
    assert house.runtime.calls == []
    other = await house.neighbour()
    await other.claim()
    await other.idle()
    assert (await house.run())["status"] == "succeeded"
    assert other.runtime.invocations[0].fence == 2


async def test_a_deferred_run_outlives_the_process_that_sent_it(house: House) -> None:
    """TGT-1, RUN-7: its target works on; neither a stop nor the process's silence takes the run away before its lease."""
    house.runtime.defers()
    await a_due_schedule(house, timeout_seconds=3600)
    await house.dispatch()
    await house.until(lambda: any(work.deferred for work in house.engine.runner._works.values()))
    await house.engine.runner.drain(1.0)
    other = await house.neighbour()
    house.clock.advance(1_000)
    await other.beat()
    await other.engine.watchdog.sweep()
    assert (await house.run())["status"] == "running"
    await other.engine.closing.complete(
        (await house.run())["id"], 1, RunStatus.SUCCEEDED, "done at last", None
    )
    assert (await house.run())["status"] == "succeeded"


async def sent_and_left(house: House, **changes: Any) -> str:
    """A run that its target took with a 202, and a process that has ended in order since."""
    house.runtime.defers()
    schedule_id = await a_due_schedule(house, timeout_seconds=600, **changes)
    await house.dispatch()
    await house.until(lambda: any(work.deferred for work in house.engine.runner._works.values()))
    await house.engine.runner.drain(1.0)
    await house.database.write(lambda tx: processes.stop(tx, house.engine.process_id))
    return schedule_id


async def test_a_deferred_run_times_out_at_its_deadline_whoever_watches(house: House) -> None:
    """RUN-2, RUN-7: after a restart it ends as it would have without one, and not lost at the end of its lease."""
    schedule_id = await sent_and_left(house)
    other = await house.neighbour()
    house.clock.advance(590)
    await other.beat()
    await other.engine.watchdog.sweep()
    assert (await house.run())["status"] == "running"
    house.clock.advance(10)
    await other.beat()
    await other.engine.watchdog.sweep()
    run, schedule = await house.run(), await house.schedule(schedule_id)
    assert (run["status"], run["error_code"], run["half_done"]) == ("timed_out", "timeout", 0)
    assert (schedule["unfinished_run_id"], schedule["failure_streak"]) == (None, 1)
    (entry,) = await house.audit("EXPIRE")
    assert '"outcome":"timed_out"' in entry["detail"]
    with pytest.raises(FenceStale):
        await other.engine.closing.complete(run["id"], 1, RunStatus.SUCCEEDED, "too late", None)


async def test_a_deferred_run_that_times_out_unwatched_is_tried_again(house: House) -> None:
    """RUN-2: the policy holds whoever notices; the next attempt waits for its backoff."""
    await sent_and_left(house, max_attempts=2, backoff_seconds=20)
    other = await house.neighbour()
    house.clock.advance(600)
    await other.beat()
    await other.engine.watchdog.sweep()
    run = await house.run()
    assert (run["status"], run["claimable_at"]) == ("queued", house.clock.micros() + 20_000_000)
    house.clock.advance(20)
    await other.claim()
    await other.idle()
    assert (await house.run())["status"] == "succeeded"
    (attempt,) = await house.rows("SELECT * FROM attempts")
    assert (attempt["number"], attempt["outcome"], attempt["error_code"]) == (1, "timed_out", "timeout")


async def test_a_deferred_run_that_nobody_watches_can_be_cancelled(house: House) -> None:
    """RUN-10: its target can't be stopped any more, its run is over all the same."""
    schedule_id = await sent_and_left(house)
    run = await house.run()
    await house.database.write(lambda tx: runs.ask_cancel(tx, run["id"], "ana"))
    other = await house.neighbour()
    await other.engine.watchdog.sweep()
    run = await house.run()
    assert (run["status"], run["error"]) == ("cancelled", "Cancelled by ana.")
    assert (await house.schedule(schedule_id))["failure_streak"] == 0


async def test_a_run_without_a_schedule_has_its_agent_s_timeout(house: House) -> None:
    """RUN-2: a schedule's own timeout wins; where there is none the agent's holds."""
    hold = house.runtime.hangs()
    await an_agent(house.database, timeout_seconds=20)
    await house.database.write(lambda tx: runs.insert(tx, [manual_run()]))
    await house.claim()
    await hold.started.wait()
    await house.elapse(20)
    await house.claim()
    await house.idle()
    run = await house.run()
    assert (run["status"], run["error"]) == ("timed_out", "The run was stopped after its timeout of 20 s.")


async def test_a_renewal_that_meets_a_close_reports_no_loss(house: House) -> None:
    """A heartbeat in flight while the run is being closed does not find it, and says nothing of a lost lease."""
    await a_due_schedule(house, timeout_seconds=60)
    await house.dispatch()
    await house.idle()
    run = await house.run()
    lost: list[str] = []
    held: Any = SimpleNamespace(
        run_id=run["id"], fence=run["fence"], lease_seconds=90, taken_at=house.clock.monotonic()
    )
    house.engine.renewal.hold_all([held], lost.append)
    house.engine.renewal.closing(run["id"])
    await house.elapse(30)
    assert lost == []
    house.engine.renewal.hold_all([held], lost.append)
    await house.elapse(30)
    assert lost == [run["id"]]


async def test_a_slot_that_came_due_before_the_stop_is_in_the_ledger(house: House) -> None:
    """DSP-9: the fifth failure stops the schedule while its next slot waits for the tick; the slot is accounted for."""
    sid = await a_due_schedule(house, failure_limit=1)
    hold = house.runtime.hangs()
    await house.dispatch()
    await hold.started.wait()
    house.clock.advance(3_600)
    hold.release(TargetFailure(Failing.EXCEPTION, "it broke"))
    await house.idle()
    assert (await house.schedule(sid))["status"] == "error"
    first, second = await house.occurrences()
    assert (second["disposition"], second["reason"]) == ("skipped", "paused")
    assert second["nominal_fire_at"] == first["nominal_fire_at"] + 3_600_000_000


async def test_a_run_that_was_taken_away_is_stopped_at_the_next_heartbeat(house: House) -> None:
    """RUN-5: not only when its own renewal is due, a third of a long lease later."""
    hold = house.runtime.hangs()
    await a_due_schedule(house, timeout_seconds=86_400)
    await house.dispatch()
    await hold.started.wait()
    await house.rows(
        "UPDATE runs SET status = 'lost', lease_until = NULL, finished_at = :now", now=house.clock.micros()
    )
    await house.elapse(house.pace.heartbeat_seconds + 1)
    await house.until(hold.cancelled.is_set)
