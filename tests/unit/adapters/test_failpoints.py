"""What happens at an armed failpoint (PRF-1): each action in a process of its own, and nothing while none is armed."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gnomon.adapters.clock import SystemClock
from gnomon.adapters.failpoints import Failpoints
from gnomon.domain.errors import Unavailable
from gnomon.domain.failpoint import parse
from gnomon.ports import failpoints
from support.processes import until
from support.programs import start

PROGRAM = """
    import sys
    from gnomon.adapters.failpoints import Failpoints
    from gnomon.domain.failpoint import parse
    from gnomon.ports import failpoints

    failpoints.arm(Failpoints(parse(sys.argv[1])))
    failpoints.reach("invoke.sent")
    sys.stdout.write("past\\n")
"""


def _state(process: subprocess.Popen[str]) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]


def test_a_killed_process_is_killed_there() -> None:
    process = start(PROGRAM, "invoke.sent=kill")
    out, _ = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert "failpoint" in out, "it is told before it acts"
    assert "past" not in out


def test_a_stopped_process_stands_still_and_goes_on() -> None:
    process = start(PROGRAM, "invoke.sent=stop")
    until(lambda: _state(process) == "T", "it stands still")
    os.kill(process.pid, signal.SIGCONT)
    assert process.communicate(timeout=30)[0].endswith("past\n")


def test_a_failure_comes_at_its_passing_and_is_told() -> None:
    points = Failpoints(parse("close.sent=fail@2"))
    points.reach("close.sent")
    with capture_logs() as told, pytest.raises(Unavailable):
        points.reach("close.sent")
    points.reach("close.sent")
    assert [(entry["event"], entry["point"], entry["action"], entry["passing"]) for entry in told] == [
        ("failpoint", "close.sent", "fail", 2)
    ]


def test_a_delay_holds_up_the_thread_that_passes() -> None:
    points, clock = Failpoints(parse("invoke.sent=delay:0.05")), SystemClock()
    began = clock.monotonic()
    points.reach("invoke.sent")
    assert clock.monotonic() - began >= 0.05


def test_nothing_is_armed_unless_somebody_did() -> None:
    """PRF-1: off in production; a point costs one look at ``None``."""
    assert failpoints._armed is None
    failpoints.reach("close.sent")
    assert failpoints.directly("renew", lambda work: work, "as it is") == "as it is"  # type: ignore[arg-type]
