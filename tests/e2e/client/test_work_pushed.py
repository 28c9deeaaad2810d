"""``gnomon work`` as an instance: triggers of jobs and runs, one process each, ended when they are cancelled (JOB, TGT-1)."""

import signal
from pathlib import Path

import pytest

from gnomon.client import Client
from support.processes import until
from support.product import Running
from support.workers import (
    a_job,
    a_role,
    a_run,
    ended,
    is_there,
    the_trigger,
    working,
    written,
)

pytestmark = pytest.mark.process


def test_a_trigger_is_a_process(server: Running, client: Client, tmp_path: Path) -> None:
    """JOB-2, IDM-3: its payload on stdin, its key in the environment."""
    script = (
        'echo "$GNOMON_TRIGGER_ID $GNOMON_JOB $GNOMON_DEDUP_KEY [$GNOMON_REDELIVERED] [$GNOMON_TASK_ID]"; cat'
    )
    with working(server, tmp_path, "sh", "-c", script, role="jobs") as worker:
        job = a_job(client, "jobs", {"depth": 2})
        found = the_trigger(client, job, "succeeded")
        worker.until("reported", trigger=found["id"], status="succeeded")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert found["note"].splitlines() == [f"{found['id']} jobs {found['dedup_key']} [] []", '{"depth": 2}']


def test_a_trigger_that_fails_says_why(server: Running, client: Client, tmp_path: Path) -> None:
    with working(server, tmp_path, "sh", "-c", "echo broken >&2; exit 4", role="jobs-fail"):
        found = the_trigger(client, a_job(client, "jobs-fail"), "failed")
    assert found["reason"] == "reported"
    assert found["note"] == "the program ended with status 4: broken"


def test_a_run_is_a_process(server: Running, client: Client, tmp_path: Path) -> None:
    """TGT-1, TGT-2, RUN-6: the query on stdin, stdout is the output, stderr is progress."""
    schedule = a_role(client, "runs")
    script = (
        'echo half >&2; cat; echo " by $GNOMON_RUN_ID $GNOMON_FENCE $GNOMON_ATTEMPT"; '
        'echo \'{"usage": {"model_calls": 3}}\' > $GNOMON_RESULT_FILE'
    )
    with working(server, tmp_path, "sh", "-c", script, role="runs"):
        run = ended(client, a_run(client, schedule))
    assert run["status"] == "succeeded"
    assert run["output"] == f"how? by {run['id']} {run['fence']} 1\n"
    assert run["usage"]["model_calls"] == 3


def test_a_run_that_says_not_now_is_tried_again(server: Running, client: Client, tmp_path: Path) -> None:
    """TGT-1: 75 is tried again, within the schedule's own policy."""
    schedule = a_role(client, "retries", retry={"max_attempts": 2, "backoff_seconds": 1})
    script = "[ $GNOMON_ATTEMPT = 2 ] || exit 75; echo second"
    with working(server, tmp_path, "sh", "-c", script, role="retries"):
        run = ended(client, a_run(client, schedule))
    assert (run["status"], run["output"], len(run["attempts"])) == ("succeeded", "second\n", 2)


def test_a_cancelled_run_ends_its_process(server: Running, client: Client, tmp_path: Path) -> None:
    """RUN-10."""
    schedule = a_role(client, "cancels-process")
    script = "echo $$ > pid; exec sleep 600"
    with working(server, tmp_path, "sh", "-c", script, role="cancels-process") as worker:
        run = a_run(client, schedule)
        pid = int(until(written(tmp_path / "pid"), "the command"))
        client.request("POST", f"/runs/{run}/cancel")
        worker.until("stopped", run=run)
        assert not is_there(pid)
        assert ended(client, run)["status"] == "cancelled"


def test_a_killed_worker_takes_its_run_and_its_process_with_it(
    server: Running, client: Client, tmp_path: Path
) -> None:
    """RUN-5: no orphan; and the run does not wait for its deadline."""
    schedule = a_role(client, "killed", timeout_seconds=20)
    script = "echo $$ > pid; exec sleep 600"
    with working(server, tmp_path, "sh", "-c", script, role="killed") as worker:
        run = a_run(client, schedule)
        pid = int(until(written(tmp_path / "pid"), "the command"))
        worker.signal(signal.SIGKILL)
        worker.wait()
        until(lambda: not is_there(pid), "the end of its process")
        assert ended(client, run)["status"] in {"failed", "timed_out"}


def test_a_stopped_worker_lets_a_push_finish(server: Running, client: Client, tmp_path: Path) -> None:
    """JOB-5: it drains."""
    script = "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo fine"
    with working(server, tmp_path, "sh", "-c", script, role="finishes") as worker:
        job = a_job(client, "finishes")
        until((tmp_path / "begun").exists, "the command")
        worker.signal(signal.SIGTERM)
        worker.until("draining", at_work=1)
        (tmp_path / "go").touch()
        assert worker.wait() == 0
    assert the_trigger(client, job, "succeeded")["note"] == "fine"


def test_no_task_is_claimed_while_pushes_fill_the_worker(
    server: Running, client: Client, tmp_path: Path
) -> None:
    """JOB-5: not by a claim that waited when the push came either; whoever else asks may have it."""
    script = 'touch $GNOMON_JOB.begun; [ -z "$GNOMON_JOB" ] || while [ ! -e go ]; do sleep 0.02; done'
    with working(server, tmp_path, "sh", "-c", script, role="full") as worker:
        job = a_job(client, "full")
        until((tmp_path / "full.begun").exists, "the command")
        first = client.create_task("full", "For another")[0]["id"]
        with client.claim("full", "another", wait_seconds=30) as held:
            assert held is not None
            assert held.task["id"] == first
            held.report("done")
        second = client.create_task("full", "Later")[0]["id"]
        trigger = the_trigger(client, job, "acknowledged")
        (tmp_path / "go").touch()
        worker.until("reported", trigger=trigger["id"])
        assert not [event for event in worker.events if "task" in event]
        worker.until("reported", task=second, status="done")
