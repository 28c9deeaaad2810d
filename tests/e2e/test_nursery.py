"""What tests take for a process of the product is one: it ends as one does, and none is left behind."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from support import nursery
from support.product import environment, up

pytestmark = pytest.mark.process

SLEEPER = "import signal, sys\nprint('up', flush=True)\nsignal.pause()\n"
HOLDER = """
import os, signal, sys
from support.nursery import nursery

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, where the tests run in the background
child = nursery().bear([sys.argv[1]], "/", dict(os.environ))
child.stdout.readline()
os.kill(child.pid, signal.SIGSTOP)
print(child.pid, flush=True)
signal.pause()
"""


def test_a_start_with_an_interpreter_of_its_own(tmp_path: Path) -> None:
    """DSP-1, DSP-10: all imports are done and all is torn down, which others leave out; a warning ends it."""
    with up(tmp_path, PYTHONWARNINGS="error", PYTHONDEVMODE="1") as product:
        assert isinstance(product.process, subprocess.Popen)
        assert product.ask("/readyz")[0] == 200
        assert product.stop() == 0
    assert "Traceback" not in "".join(product.err)


@pytest.mark.parametrize(
    ("more", "born"),
    [
        ({}, True),
        ({"PYTHONPATH": "/elsewhere"}, True),
        ({"PYTHONHASHSEED": "1"}, False),
        ({"LD_PRELOAD": "/lib/liar.so"}, False),
    ],
)
def test_what_an_interpreter_reads_at_its_start_is_not_kept_from_it(more: dict[str, str], born: bool) -> None:
    assert nursery.can_bear(environment(**more)) is born


def test_all_who_wait_for_an_end_are_told(tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    child = nursery.nursery().bear(["sleeper.py"], str(tmp_path), environment())
    with child.stdout, child.stderr, ThreadPoolExecutor(4) as waiters:
        child.stdout.readline()
        told = [waiters.submit(child.wait, 30) for _ in range(4)]
        child.kill()
        assert [each.result() for each in told] == [-signal.SIGKILL] * 4
    assert child.poll() == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nobody_outlives_the_tests(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and the like reach all of them at once, a SIGKILL the tests alone."""
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text(SLEEPER)
    tests = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(sleeper)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        start_new_session=True,
    )
    with tests:
        assert tests.stdout is not None
        child = psutil.Process(int(tests.stdout.readline()))
        parent = psutil.Process(tests.pid).children()
        if number == signal.SIGKILL:
            tests.kill()
        else:
            os.killpg(tests.pid, number)
        tests.wait(30)
        assert not psutil.wait_procs([child, *parent], timeout=30)[1]
