"""Real processes for tests: a few lines of Python in a process of their own, over the same source tree."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import gnomon

SOURCE = Path(gnomon.__file__).parent.parent
TESTS = Path(__file__).parent.parent
BOUND_SECONDS = 30


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that runs ``program`` with ``arguments`` in ``sys.argv[1:]``; warnings are errors there too."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(TESTS)])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The same, run to its end."""
    process = start(program, *arguments)
    out, err = process.communicate(timeout=BOUND_SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def race(program: str, *starters: Sequence[object]) -> list[str]:
    """What each of several processes printed after "ready"; all are held at that line and let go at once.

    A program prints ``ready``, reads a line from its standard input, and then does what is raced for.
    """
    processes = [start(program, *arguments) for arguments in starters]
    outputs = []
    try:
        for process in processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line == "ready\n", (line, process.communicate(timeout=BOUND_SECONDS))
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            out, err = process.communicate(timeout=BOUND_SECONDS)
            assert process.returncode == 0, err
            outputs.append(out)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return outputs
