"""``gnomon work`` as a process beside a real server: what its command gets, what its ending means, what outlives what."""

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gnomon.client import Client
from support.processes import until
from support.product import Running, gnomon, running
from support.workers import client_of, is_there, served, working, written

pytestmark = pytest.mark.process


def once(server: Running, folder: Path, role: str, script: str, *options: str, **env: str) -> Any:
    """``gnomon work --once`` with a shell script as its command: how it ended."""
    own = {"GNOMON_URL": server.started["address"], "GNOMON_API_KEY": server.started["key"]}
    words = ("work", "--once", "--role", role, "--instance", f"{role}-1", *options, "--", "sh", "-c", script)
    return gnomon(*words, cwd=folder, **{**own, **env})


def a_task(client: Client, role: str, **more: Any) -> str:
    return str(client.create_task(role, "Look into it", **more)[0]["id"])


def test_a_command_gets_the_task_and_what_it_says_is_the_report(
    server: Running, client: Client, tmp_path: Path
) -> None:
    """BRD-3, IDM-3."""
    task_id = a_task(client, "told", body="all of it", dedup_key="told/1")
    script = (
        'echo "$GNOMON_TASK_ID $GNOMON_ROLE $GNOMON_INSTANCE $GNOMON_FENCE $GNOMON_DEDUP_KEY '
        '$GNOMON_IDEMPOTENCY_KEY [$GNOMON_VERIFY_FIRST] [$GNOMON_RUN_ID]"; cat'
    )
    done = once(server, tmp_path, "told", script)
    assert done.returncode == 0, done.stderr
    task = client.task(task_id)
    assert task["status"] == "done"
    assert task["last_report"]["instance"] == "told-1"
    said = f"{task_id} told told-1 1 told/1 {task_id} [] []\nLook into it\n\nall of it"
    assert task["last_report"]["note"] == said


@pytest.mark.parametrize(
    ("script", "status", "note", "code"),
    [
        ("echo fine", "done", "fine", 0),
        ("true", "done", None, 0),
        ("echo no; echo why >&2; exit 3", "blocked", "the program ended with status 3: why", 1),
        ("echo later >&2; exit 75", "backlog", "the program ended with status 75: later", 1),
        ("kill -9 $$", "blocked", "the program was ended by SIGKILL", 1),
    ],
)
def test_an_exit_status_is_a_report(
    server: Running, client: Client, tmp_path: Path, *, script: str, status: str, note: str | None, code: int
) -> None:
    role = f"ends-{len(script)}"
    task_id = a_task(client, role)
    assert once(server, tmp_path, role, script).returncode == code
    task = client.task(task_id)
    assert (task["status"], task["last_report"]["note"]) == (status, note)


def test_a_result_file_says_more(server: Running, client: Client, tmp_path: Path) -> None:
    task_id = a_task(client, "file")
    said = json.dumps({"status": "in_review", "note": "please look", "result": {"draft": [1, 2]}})
    assert once(server, tmp_path, "file", f"echo noise; echo '{said}' > $GNOMON_RESULT_FILE").returncode == 0
    task = client.task(task_id)
    assert task["status"] == "in_review"
    assert (task["last_report"]["note"], task["last_report"]["result"]) == ("please look", {"draft": [1, 2]})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("no json", "the result file is not JSON"),
        ("[1]", "the result file holds no JSON object"),
        ('{"status": "finished"}', "the status in the result file must be one of done, in_review"),
        ('{"note": 5}', "note in the result file is no text"),
        ('{"role": "dev"}', 'goes with the status "backlog"'),
    ],
)
def test_a_result_file_that_is_wrong_blocks_the_task(
    server: Running, client: Client, tmp_path: Path, text: str, fault: str
) -> None:
    task_id = a_task(client, "wrong-file")
    assert once(server, tmp_path, "wrong-file", f"echo '{text}' > $GNOMON_RESULT_FILE").returncode == 1
    task = client.task(task_id)
    assert task["status"] == "blocked"
    assert fault in task["last_report"]["note"]


def test_a_command_gets_the_workers_environment_but_no_key(
    server: Running, client: Client, tmp_path: Path
) -> None:
    """SEC-3."""
    task_id = a_task(client, "secret")
    once(server, tmp_path, "secret", "env", TOKEN_OF_ANOTHER="theirs", GNOMON_DATABASE_URL="sqlite:///x.db")
    result = client.task(task_id)["last_report"]
    shown = json.dumps(result)
    assert "TOKEN_OF_ANOTHER=theirs" in shown
    for hidden in (server.started["key"], "GNOMON_URL", "GNOMON_API_KEY", "GNOMON_DATABASE_URL"):
        assert hidden not in shown
    task_id = a_task(client, "secret")
    once(server, tmp_path, "secret", "gnomon_here=yes; env | grep -c 'GNOMON.*KEY=gnk_'", "--pass-key")
    assert client.task(task_id)["last_report"]["note"] == "2"


def test_much_output_is_no_failure(server: Running, client: Client, tmp_path: Path) -> None:
    task_id = a_task(client, "much")
    done = once(
        server,
        tmp_path,
        "much",
        f"{sys.executable} -c \"print('first'); print('x' * 3_000_000); print('last')\"",
    )
    assert done.returncode == 0
    said = client.task(task_id)["last_report"]
    assert said["note"].endswith("xlast") or said["note"].endswith("last")
    assert len(said["note"]) <= 2_000
    assert len(said["result"]["output"]) <= 60_000


def test_a_command_that_takes_too_long_is_ended(server: Running, client: Client, tmp_path: Path) -> None:
    task_id = a_task(client, "long")
    assert once(server, tmp_path, "long", "sleep 600", "--timeout", "0.3").returncode == 1
    said = client.task(task_id)["last_report"]
    assert (said["status"], said["note"]) == (
        "blocked",
        "the command was ended: it took longer than 0.3 seconds",
    )


def test_nothing_to_do_is_no_failure(server: Running, tmp_path: Path) -> None:
    done = once(server, tmp_path, "idle", "true")
    assert done.returncode == 0
    assert done.stderr == "There is no task for idle.\n"


def test_bad_usage_and_nobody_there(server: Running, tmp_path: Path) -> None:
    """The exit codes of the command line: 2 bad usage, 3 not reachable, 1 refused."""
    assert gnomon("work", "--role", "pm", cwd=tmp_path).returncode == 2
    assert gnomon("work", "--role", "pm", "--", "no-such-program", cwd=tmp_path).returncode == 2
    assert gnomon("work", "--role", "pm", "--url", "nowhere", "--", "true", cwd=tmp_path).returncode == 2
    assert gnomon("work", "--role", "pm", "--once", "--no-tasks", "--", "true", cwd=tmp_path).returncode == 2
    away = gnomon("work", "--role", "pm", "--once", "--url", "http://127.0.0.1:9", "--", "true", cwd=tmp_path)
    assert away.returncode == 3
    assert away.stderr.startswith("Error: http://127.0.0.1:9 can't be reached")
    refused = once(server, tmp_path, "pm", "true", GNOMON_API_KEY="gnk_wrong")
    assert refused.returncode == 1
    assert "Name a key with GNOMON_API_KEY or --key." in refused.stderr


def test_two_workers_share_the_board_and_no_task_is_done_twice(
    server: Running, client: Client, tmp_path: Path
) -> None:
    """BRD-1."""
    tasks = {a_task(client, "pm") for _ in range(12)}
    script = 'echo "$GNOMON_TASK_ID" >> done.txt'
    options = ("--no-push", "--max", "2")
    with (
        working(server, tmp_path, "sh", "-c", script, options=options) as one,
        working(server, tmp_path, "sh", "-c", script, options=options) as two,
    ):
        until(lambda: all(client.task(each)["status"] == "done" for each in tasks), "twelve tasks done")
        for worker in (one, two):
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0
    done = Counter((tmp_path / "done.txt").read_text().split())
    assert done == Counter(tasks)


def test_a_stopped_worker_lets_its_command_finish(server: Running, client: Client, tmp_path: Path) -> None:
    """DSP-10, for workers: no new task, the present one ends and is reported."""
    task_id, script = a_task(client, "pm"), "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo fine"
    with working(server, tmp_path, "sh", "-c", script, options=("--no-push",)) as worker:
        until((tmp_path / "begun").exists, "the command")
        worker.signal(signal.SIGTERM)
        worker.until("draining", at_work=1)
        later = a_task(client, "pm")
        (tmp_path / "go").touch()
        worker.until("reported", task=task_id, status="done")
        assert worker.wait() == 0
    assert client.task(later)["status"] == "backlog"
    client.request("PATCH", f"/tasks/{later}", {"status": "cancelled"})


def test_what_outlasts_the_grace_is_ended_and_given_back(
    server: Running, client: Client, tmp_path: Path
) -> None:
    """RUN-10."""
    task_id = a_task(client, "pm")
    script = "trap 'echo asked > asked' TERM; echo $$ > pid; while :; do sleep 0.02; done"
    options = ("--no-push", "--grace", "0.2", "--kill-after", "0.3")
    with working(server, tmp_path, "sh", "-c", script, options=options) as worker:
        pid = int(until(written(tmp_path / "pid"), "the command"))
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert not is_there(pid)
    assert (tmp_path / "asked").exists(), "it was asked before it was killed"
    task = client.task(task_id)
    assert task["status"] == "backlog"
    assert "The worker was stopped" in task["last_report"]["note"]
    client.request("PATCH", f"/tasks/{task_id}", {"status": "cancelled"})


def test_a_task_that_is_taken_away_ends_its_command(server: Running, client: Client, tmp_path: Path) -> None:
    """BRD-2: at the next renewal."""
    task_id = a_task(client, "pm")
    with working(
        server, tmp_path, "sh", "-c", "echo $$ > pid; exec sleep 600", options=("--no-push",)
    ) as worker:
        pid = int(until(written(tmp_path / "pid"), "the command"))
        client.request("POST", f"/tasks/{task_id}/release", {"status": "cancelled"})
        worker.until("lost", task=task_id)
        assert not is_there(pid)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert client.task(task_id)["status"] == "cancelled"


def test_a_frozen_worker_loses_its_task_and_its_command(tmp_path: Path) -> None:
    """BRD-4, BRD-6, RUN-5: when it goes on, its command is ended and what it says is refused."""
    script = "echo $$ > pid; exec sleep 600"
    with served(tmp_path) as server, client_of(server) as client:
        task_id = a_task(client, "pm")
        with working(server, tmp_path, "sh", "-c", script, options=("--no-push",)) as worker:
            pid = int(until(written(tmp_path / "pid"), "the command"))
            worker.signal(signal.SIGSTOP)
            task = until(lambda: _if(client.task(task_id), status="backlog"), "the sweep")
            assert task["possibly_half_done"]
            with client.claim("pm", "other") as held:
                assert held is not None
                assert held.verify_first
                worker.signal(signal.SIGCONT)
                worker.until("lost", task=task_id)
                assert not is_there(pid)
                assert client.task(task_id)["held_by"]["instance"] == "other"
                held.report("done")
        entries = client.request("GET", "/audit", subject=task_id, limit=100)["items"]
        ends = Counter(entry["action"] for entry in entries)
        assert (ends["CLAIM"], ends["EXPIRE"], ends["RELEASE"]) == (2, 1, 1)


def test_a_killed_worker_leaves_no_process_and_its_task_comes_back(tmp_path: Path) -> None:
    """BRD-5, BRD-6: whoever gets it next is told to look first."""
    with served(tmp_path) as server, client_of(server) as client:
        task_id = a_task(client, "pm")
        script = "echo half of it >&2; echo $$ > pid; sleep 600 & echo $! > child; wait"
        with working(server, tmp_path, "sh", "-c", script, options=("--no-push",)) as worker:
            pids = [int(until(written(tmp_path / name), "the command")) for name in ("pid", "child")]
            until(lambda: client.task(task_id)["last_report"], "a renewal that says how far it is")
            worker.signal(signal.SIGKILL)
            worker.wait()
        until(lambda: not any(map(is_there, pids)), "the end of its processes")
        until(lambda: client.task(task_id)["status"] == "backlog", "the sweep")
        script = 'echo "verify [$GNOMON_VERIFY_FIRST]: $GNOMON_LAST_REPORT"'
        assert once(server, tmp_path, "pm", script).returncode == 0
        note = client.task(task_id)["last_report"]["note"]
        assert note.startswith("verify [1]: ")
        last = json.loads(note.removeprefix("verify [1]: "))
        assert (last["status"], last["note"]) == ("in_progress", "half of it")


def test_a_worker_outlives_its_server(tmp_path: Path) -> None:
    """It waits for the next one, and its task is reported there."""
    script = "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo fine"
    env = {"GNOMON_TASK_LOCK_SECONDS": "60"}
    with served(tmp_path, **env) as server:
        key, address = server.started["key"], server.started["address"]
        with client_of(server) as client:
            task_id = a_task(client, "pm")
        with working(server, tmp_path, "sh", "-c", script, options=("--no-push",)) as worker:
            until((tmp_path / "begun").exists, "the command")
            server.process.kill()
            server.wait()
            (tmp_path / "go").touch()
            port = address.rpartition(":")[2]
            with running("up", "--port", port, "--json", cwd=tmp_path, **env) as again:
                again.wait_for_start()
                worker.until("reported", task=task_id, status="done")
                worker.signal(signal.SIGTERM)
                assert worker.wait() == 0
                with Client(address, key) as client:
                    assert client.task(task_id)["status"] == "done"


def _if(task: Any, **fields: Any) -> Any:
    return task if fields.items() <= task.items() else None
