"""The processes of the product, real ones: start, the first key, orderly stop, and starts that can't be (DSP-1, DSP-10)."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.product import Running, gnomon, running, up

pytestmark = pytest.mark.process

SLOW = "import sys, time, pathlib\npathlib.Path('begun').touch()\ntime.sleep(float(sys.argv[1]))\nprint('finished')\n"


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_up_answers_and_stops_orderly_at_a_signal(tmp_path: Path, sig: signal.Signals) -> None:
    with up(tmp_path) as product:
        assert product.ask("/healthz")[0] == 200
        assert product.ask("/readyz")[0] == 200
        assert product.ask("/v1/agents") == (200, {"items": [], "next_cursor": None})
        assert product.stop(sig) == 0
    assert (tmp_path / "gnomon.db").exists()


def test_the_admin_key_is_shown_at_the_first_start_alone(tmp_path: Path) -> None:
    with up(tmp_path) as product:
        key = product.started["key"]
        assert key.startswith("gnk_")
        product.stop()
        assert key not in "".join(product.err), "no log line has it"
    with up(tmp_path) as product:
        assert product.started["key"] is None
        product.started["key"] = key
        assert product.ask("/v1/agents")[0] == 200
        product.stop()
    assert key.encode() not in (tmp_path / "gnomon.db").read_bytes(), "SEC-3: only its hash is stored"


def test_the_start_tells_people_where_to_go_next(tmp_path: Path) -> None:
    with running("up", "--port", "0", cwd=tmp_path) as product:
        text = product.said_until("Ctrl-C")
        assert product.stop() == 0
    assert "Gnomon is up at http://127.0.0.1:" in text
    assert "gnk_" in text
    assert "/docs" in text
    assert "schedules list" in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "Stopping; " in "".join(product.err)


def test_what_the_start_suggests_asks_the_database_that_was_named(tmp_path: Path) -> None:
    with running("up", "--port", "0", "--database-url", "sqlite:///other.db", cwd=tmp_path) as product:
        text = product.said_until("Ctrl-C")
        assert product.stop() == 0
    assert "    export GNOMON_DATABASE_URL=sqlite:///other.db\n" in text


def test_probes_leave_no_line_in_the_log(tmp_path: Path) -> None:
    """OPS-6: what asks every few seconds does not bury what people did."""
    with up(tmp_path) as product:
        for path in ("/healthz", "/readyz", "/metrics", "/v1/agents"):
            assert product.ask(path)[0] == 200
        assert product.stop() == 0
    requests = [json.loads(line)["path"] for line in product.err if '"request"' in line]
    assert requests == ["/v1/agents"]


def test_the_docs_that_the_start_names_are_there(tmp_path: Path) -> None:
    with up(tmp_path) as product:
        status, page = product.ask("/docs")
        assert status == 200
        assert "<html" in page.lower()
        product.stop()


def test_a_port_in_use_is_one_line_and_touches_no_database(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command in (("up",), ("up", "--demo"), ("serve",)):
            found = gnomon(*command, "--port", str(port), cwd=tmp_path)
            assert found.returncode == 1
            assert found.stdout == ""
            assert found.stderr == (
                f"Error: Port {port} on 127.0.0.1 is in use. Choose another with --port or GNOMON_PORT.\n"
            )
    assert list(tmp_path.iterdir()) == []


def _not_ours(file: Path) -> None:
    file.write_text("a text that somebody wrote, long enough to be a file of its own\n" * 20)


def _of_another_program(file: Path) -> None:
    import apsw

    other = apsw.Connection(str(file))
    other.execute("CREATE TABLE theirs (x)")
    other.close()


def _newer(file: Path) -> None:
    import apsw

    assert gnomon("migrate", cwd=file.parent).returncode == 0
    ours = apsw.Connection(str(file))
    ours.execute("INSERT INTO migrations (number, name, checksum, applied_at) VALUES (9999, 'x', 'x', 0)")
    ours.close()


def _a_folder(file: Path) -> None:
    file.mkdir()


@pytest.mark.parametrize(
    ("command", "spoil"),
    [
        ("up", _not_ours),
        ("up", _of_another_program),
        ("up", _newer),
        ("up", _a_folder),
        ("serve", _of_another_program),
        ("worker", _not_ours),
        ("migrate", _of_another_program),
        ("migrate", _a_folder),
    ],
)
def test_a_database_that_can_not_be_used_is_one_message(tmp_path: Path, command: str, spoil: object) -> None:
    """OPS-1, OPS-3."""
    file = tmp_path / "gnomon.db"
    spoil(file)  # type: ignore[operator]
    before = file.read_bytes() if file.is_file() else None
    port = ("--port", "0") if command in ("up", "serve") else ()
    found = gnomon(command, *port, cwd=tmp_path)
    assert found.returncode == 1
    assert found.stdout == ""
    assert found.stderr.startswith("Error: ")
    assert len(found.stderr.splitlines()) == 1
    assert "another" in found.stderr or "such as gnomon.db/gnomon.db" in found.stderr, "the way out is told"
    assert before is None or file.read_bytes() == before


def test_a_folder_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    found = gnomon("up", "--port", "0", cwd=tmp_path, GNOMON_DATABASE_URL="sqlite:///none/gnomon.db")
    assert found.returncode == 1
    assert "The folder none does not exist" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_database_is_one_message(tmp_path: Path) -> None:
    assert gnomon("migrate", cwd=tmp_path).returncode == 0
    (tmp_path / "gnomon.db").chmod(0o400)
    tmp_path.chmod(0o500)
    found = gnomon("up", "--port", "0", cwd=tmp_path)
    tmp_path.chmod(0o700)
    assert found.returncode == 1
    assert len(found.stderr.splitlines()) == 1


def start_slow(product: Running, seconds: float, folder: Path) -> str:
    """An agent that takes a while, and a run of it that has begun; the run's id."""
    (folder / "slow.py").write_text(SLOW)
    argv = [sys.executable, "slow.py", str(seconds)]
    agent = {"slug": "slow", "name": "slow", "runtime": {"kind": "command", "argv": argv, "cwd": str(folder)}}
    assert product.ask("/v1/agents", method="POST", body=agent)[0] == 201
    schedule = {
        "name": "slow",
        "target": {"kind": "agent", "id": "slow"},
        "cadence": {"unit": "month", "every": 1, "day": 1, "at": ["00:00"]},
        "query": "go",
    }
    status, made = product.ask("/v1/schedules", method="POST", body=schedule)
    assert status == 201, made
    status, run = product.ask(f"/v1/schedules/{made['id']}/run", method="POST", body={})
    assert status == 202, run
    pause = threading.Event()
    for _ in range(600):
        if (folder / "begun").exists():
            return str(run["id"])
        pause.wait(0.05)
    raise AssertionError("the run did not begin")


def test_a_stop_lets_the_run_in_flight_finish(tmp_path: Path) -> None:
    """DSP-10."""
    with up(tmp_path) as product:
        run_id = start_slow(product, 1.5, tmp_path)
        assert product.stop() == 0
    found = json.loads(gnomon("runs", "get", run_id, "--json", cwd=tmp_path).stdout)
    assert found["status"] == "succeeded"
    assert "finished" in found["response_preview"]


def test_a_run_that_outlasts_the_grace_is_left_to_its_lease(tmp_path: Path) -> None:
    """DSP-10."""
    with up(tmp_path, GNOMON_SHUTDOWN_GRACE_SECONDS="0.5") as product:
        run_id = start_slow(product, 60, tmp_path)
        assert product.stop() == 0
    found = json.loads(gnomon("runs", "get", run_id, "--json", cwd=tmp_path).stdout)
    assert found["status"] == "running"


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    """Casebook lea-19: what does not stop in order is stopped all the same."""
    with up(tmp_path) as product:
        start_slow(product, 60, tmp_path)
        product.process.send_signal(signal.SIGTERM)
        pause = threading.Event()
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", _port(product)), timeout=1).close()
            except OSError:
                break
            pause.wait(0.05)
        assert product.process.poll() is None, "it waits for the run"
        assert product.stop() == -signal.SIGTERM


def _port(product: Running) -> int:
    return int(product.started["address"].rsplit(":", 1)[1])


def test_serve_takes_requests_and_a_worker_elsewhere_does_the_work(tmp_path: Path) -> None:
    key = json.loads(gnomon("keys", "create", "--scope", "*", "--json", cwd=tmp_path).stdout)["key"]
    with running("serve", "--port", "0", "--json", cwd=tmp_path) as server:
        server.wait_for_start()
        assert server.started["key"] is None
        server.started["key"] = key
        agent = {
            "slug": "g",
            "name": "g",
            "runtime": {"kind": "python", "path": "gnomon.testing.samples:greet"},
        }
        assert server.ask("/v1/agents", method="POST", body=agent)[0] == 201
        made = gnomon(
            "schedules",
            "create",
            "--name",
            "g",
            "--agent",
            "g",
            "--cadence",
            "0 0 1 1 *",
            "--query",
            "q",
            "--json",
            cwd=tmp_path,
        )
        schedule = json.loads(made.stdout)
        with running("worker", "--json", cwd=tmp_path) as worker:
            assert worker.wait_for_start()["process_id"].startswith("prc_")
            done = gnomon(
                "schedules",
                "run",
                schedule["id"],
                "--wait",
                cwd=tmp_path,
                GNOMON_URL=server.started["address"],
                GNOMON_KEY=key,
            )
            assert done.returncode == 0, done.stderr
            assert "Hello from run_" in done.stdout
            assert worker.stop() == 0
        assert server.stop() == 0


def test_a_worker_that_may_not_work_says_so(tmp_path: Path) -> None:
    found = gnomon("worker", cwd=tmp_path, GNOMON_WORK="false")
    assert found.returncode == 1
    assert "GNOMON_WORK is off" in found.stderr


def test_migrate_makes_the_database_and_says_what_it_did(tmp_path: Path) -> None:
    """OPS-3."""
    first = json.loads(gnomon("migrate", "--json", cwd=tmp_path).stdout)
    assert first["applied"][0].startswith("0001_")
    again = gnomon("migrate", cwd=tmp_path)
    assert again.stdout == "gnomon.db is up to date.\n"


def test_an_export_of_nothing_can_be_applied_too(tmp_path: Path) -> None:
    """SCH-13: what a new database gives is a document, and no bad usage."""
    gnomon("migrate", cwd=tmp_path)
    found = gnomon("export", cwd=tmp_path)
    assert (found.returncode, found.stdout) == (0, "{}\n")
    assert gnomon("apply", "-f", "-", "--yes", cwd=tmp_path, stdin=found.stdout).returncode == 0


def test_the_demo_can_be_repeated_and_doubles_nothing(tmp_path: Path) -> None:
    counts, key = [], None
    for _ in range(2):
        with up(tmp_path, "--demo") as product:
            key = product.started["key"] or key
            product.started["key"] = key
            counts.append(
                [
                    len(product.ask(f"/v1/{noun}")[1]["items"])
                    for noun in ("agents", "teams", "schedules", "runs")
                ]
            )
            product.stop()
    assert counts[0] == counts[1] == [3, 1, 3, 3]


def test_two_processes_that_start_at_once_share_one_new_file(tmp_path: Path) -> None:
    """OPS-1, OPS-3."""
    words = [sys.executable, "-m", "gnomon", "migrate", "--json"]
    both = [subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    texts = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0, 0]
    assert all(json.loads(text)["database"] == "gnomon.db" for text in texts)


def test_a_start_after_a_kill_tells_what_the_dead_one_left(tmp_path: Path) -> None:
    """RUN-7: and by when it is over, so that nobody wonders about a run that seems to run."""
    with up(tmp_path) as first:
        gnomon("agents", "create", "--slug", "long", "--command", "sleep 600", cwd=tmp_path)
        words = ("--name", "Long", "--agent", "long", "--query", "x", "--cadence", "0 9 * * *")
        assert gnomon("schedules", "create", *words, cwd=tmp_path).returncode == 0
        assert gnomon("schedules", "run", "Long", cwd=tmp_path).returncode == 0
        assert any(first.ask("/v1/runs?status=running")[1]["items"] for _ in range(10_000))
        first.process.kill()
        first.wait()
    with running("up", "--port", "0", cwd=tmp_path) as second:
        said = " ".join(second.said_until("--status running`").split())
        assert "1 run of another process is unfinished. If that process was killed, the run is closed" in said
        assert second.stop() == 0
