"""What real processes owe each other: a commit is seen soon, a heartbeat is never starved, no orphan is left."""

import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.processes import look, until
from support.product import Running, gnomon, up

pytestmark = pytest.mark.process
QUICK = {
    "GNOMON_HEARTBEAT_SECONDS": "0.2",
    "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": "1.5",
    "GNOMON_SWEEP_SECONDS": "0.2",
}


def a_run(product: Running, runtime: dict[str, Any]) -> str:
    """An agent, a schedule far away, and a run of it by hand; the run's id."""
    agent = {"slug": "it", "name": "it", "runtime": runtime}
    assert product.ask("/v1/agents", method="POST", body=agent)[0] == 201
    schedule = {
        "name": "far",
        "target": {"kind": "agent", "id": "it"},
        "cadence": {"unit": "month", "every": 1, "day": 1, "at": ["00:00"]},
        "query": "go",
    }
    status, made = product.ask("/v1/schedules", method="POST", body=schedule)
    assert status == 201, made
    status, run = product.ask(f"/v1/schedules/{made['id']}/run", method="POST", body={})
    assert status == 202, run
    return str(run["id"])


def test_a_process_sees_another_s_commit_within_a_second(tmp_path: Path) -> None:
    """DSP-1, OPS-1: its own loops look every 30 s; the file's data version, read by the heartbeat's thread, wakes them."""
    (tmp_path / "quick.py").write_text("def go(invocation):\n    return 'went'\n")
    with up(tmp_path, GNOMON_WORK="false", GNOMON_DISPATCH="false") as front, up(tmp_path) as worker:
        assert worker.started["address"] != front.started["address"]
        run_id = a_run(front, {"kind": "python", "path": "quick:go"})
        [(asked, began)] = until(
            lambda: look(
                tmp_path / "gnomon.db",
                "SELECT scheduled_for, started_at FROM runs WHERE id = ? AND status = 'succeeded'",
                run_id,
            ),
            "the other process did the run",
        )
    assert 0 <= began - asked < 1_500_000


def test_a_target_that_blocks_the_loop_does_not_starve_the_heartbeat(tmp_path: Path) -> None:
    """RUN-4: three heartbeat timeouts in one blocking call, while a neighbour sweeps five times a second."""
    (tmp_path / "blocks.py").write_text(
        "import time\n\n\nasync def go(invocation):\n    time.sleep(5.0)\n    return 'done'\n"
    )
    with up(tmp_path, **QUICK) as product, up(tmp_path, GNOMON_WORK="false", **QUICK):
        a_run(product, {"kind": "python", "path": "blocks:go"})
        path = tmp_path / "gnomon.db"
        until(lambda: look(path, "SELECT 1 FROM runs WHERE finished_at IS NOT NULL"), "the run ended")
        assert look(path, "SELECT status, fence FROM runs") == [("succeeded", 1)]
        assert look(path, "SELECT count(*) FROM audit_entries WHERE action IN ('EXPIRE', 'FENCED')") == [(0,)]


def test_no_child_of_a_killed_process_works_on(tmp_path: Path) -> None:
    """K14, RUN-5: SIGKILL gives no chance to clean up; the command and its own children end all the same."""
    inner = "import time; time.sleep(600.25)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with up(tmp_path) as product:
        a_run(product, {"kind": "command", "argv": [sys.executable, "-c", outer], "cwd": str(tmp_path)})

        def family() -> list[psutil.Process]:
            found = psutil.Process(product.process.pid).children(recursive=True)
            return found if any("600.25" in " ".join(child.cmdline()) for child in found[1:]) else []

        children = until(family, "the command and its child run")
        assert len(children) >= 2
        product.process.kill()
        product.wait()
        gone, alive = psutil.wait_procs(children, timeout=15)
        for child in alive:
            child.kill()
        assert not alive, f"still there: {[child.cmdline() for child in alive]}, gone: {len(gone)}"
    run = json.loads(gnomon("runs", "list", "--json", cwd=tmp_path).stdout)
    assert run["items"][0]["status"] == "running", "its record waits for the sweep of the next process"
