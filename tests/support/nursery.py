"""Processes of the product without a second of imports each: forked from one that has done them.

Each is a process of its own, with its own number, memory, folder and environment, and can be killed, stopped and waited for
like any other. Only its interpreter has started before. What an interpreter reads at its own start, a library that lies
about the clock for instance, can't be said to one that is born here (``can_bear``).

As a program (``python -m support.nursery FD``) this is the parent: it forks for whoever asks on that socket, tells how its
children ended, and ends them when the other side is gone.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TextIO

_MOST_BYTES = 65_536
# what a process of the product would import before it answers
_COMMON = ("gnomon.wiring", "gnomon.cli.serving", "gnomon.stores.postgres.database", "uvicorn", "uvloop")
# what is read once, when an interpreter starts; of the folders of modules alone a child is told anew
_READ_AT_THE_START = ("LD_", "PYTHON")
_TOLD_ANEW = "PYTHONPATH"
# Ctrl-C and the like are for the whole group: the parent ends when the tests have, and takes what is left with it
_NOT_FOR_THE_PARENT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def can_bear(env: Mapping[str, str]) -> bool:
    """Whether a process with this environment can be forked from an interpreter that was started with that of the tests."""
    return all(
        os.environ.get(name) == value
        for name, value in env.items()
        if name.startswith(_READ_AT_THE_START) and name != _TOLD_ANEW
    )


class Born:
    """One child of the nursery; what ``subprocess.Popen`` offers, as far as tests use it."""

    def __init__(self, nursery: "Nursery", pid: int, stdout: TextIO, stderr: TextIO) -> None:
        self._nursery = nursery
        self._handle = os.pidfd_open(pid)
        self._lock = threading.Lock()  # an end is told once: of two who wait for it, one asks
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; ``None`` while it lives."""
        with self._lock:
            if self.returncode is None:
                self._take(self._nursery.ask({"look": self.pid}))
            return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for its end; its exit code.

        Raises:
            subprocess.TimeoutExpired: as there.
        """
        with self._lock:
            if self.returncode is not None:
                return self.returncode
            handle = os.dup(self._handle)
        try:
            if not select.select([handle], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
        finally:
            os.close(handle)
        code = self.poll()
        assert code is not None, "it has ended"
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless its end is known; its number belongs to nobody else before that."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def _take(self, answer: int | None) -> None:
        if answer is not None:
            self.returncode = os.waitstatus_to_exitcode(answer)
            os.close(self._handle)


class Nursery:
    """The parent, seen from the tests; it ends with them."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "support.nursery", str(theirs.fileno())],
                env={**env, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        assert self.ask({}) == 0, "it is ready"
        atexit.register(self.close)

    def bear(self, program: Sequence[str], cwd: str, env: Mapping[str, str]) -> Born:
        """A new process that runs ``program``, words as of a Python interpreter."""
        (out, their_out), (err, their_err) = os.pipe(), os.pipe()
        try:
            pid = self.ask({"bear": list(program), "cwd": cwd, "env": dict(env)}, their_out, their_err)
        finally:
            os.close(their_out)
            os.close(their_err)
        assert pid is not None
        return Born(self, pid, os.fdopen(out, encoding="utf-8"), os.fdopen(err, encoding="utf-8"))

    def ask(self, question: Mapping[str, Any], *handles: int) -> int | None:
        """One question and its answer."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(question).encode()], handles)
            answer = self._socket.recv(_MOST_BYTES)
        assert answer, "the nursery has ended"
        found: int | None = json.loads(answer)
        return found

    def close(self) -> None:
        """End it, and with it what is left of its children."""
        self._socket.close()
        self._parent.wait()


@cache
def nursery() -> Nursery:
    """The one of this process of the run, made when it is needed."""
    clean = {name: value for name, value in os.environ.items() if not name.upper().startswith("GNOMON_")}
    return Nursery({**clean, "COLUMNS": "80", "NO_COLOR": "1"})


def _serve(line: socket.socket) -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_THE_PARENT)
    children: set[int] = set()
    while True:
        try:
            data, handles, _, _ = socket.recv_fds(line, _MOST_BYTES, 2)
        except ConnectionError:
            data, handles = b"", []
        if not data:
            break
        question = json.loads(data)
        answer: int | None = 0
        if "bear" in question:
            answer = os.fork()
            if answer == 0:
                line.close()
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                _live(question, handles)
            children.add(answer)
        elif question:
            (pid,) = question.values()
            found, status = os.waitpid(pid, os.WNOHANG)
            answer = status if found else None
            children -= {found}
        for handle in handles:
            os.close(handle)
        with contextlib.suppress(ConnectionError):  # whoever asked is gone: seen above
            line.send(json.dumps(answer).encode())
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _live(question: Mapping[str, Any], handles: Sequence[int]) -> None:
    """Become the program; does not return."""
    for number, handle in enumerate(handles, 1):
        os.dup2(handle, number)
        os.close(handle)
    os.environ.clear()
    os.environ.update(question["env"])
    code: object = 1
    try:
        os.chdir(question["cwd"])
        _run(question["bear"])
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        _leave(code)


def _run(program: Sequence[str]) -> None:
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if program[0] == "-m":
        sys.path[:0] = [str(Path.cwd()), *paths]
        sys.argv[:] = list(program[1:])
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[:0] = [str(Path(program[0]).parent), *paths]
        sys.argv[:] = list(program)
        runpy.run_path(program[0], run_name="__main__")


def _leave(code: object) -> None:
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    # threads are waited for and what is registered is run, as where an interpreter ends by itself
    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    for name in _COMMON:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
