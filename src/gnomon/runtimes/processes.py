"""One command as a process group of its own: started behind a gate, watched, ended to the last member.

Knows processes and pipes; what a command means, its environment and its output, is ``command``'s affair. The gate:
``/bin/sh`` waits for one line on stdin and then becomes the command, so that nothing of the command runs before the
warden knows its group, and nothing runs at all if the server dies in between.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from gnomon.runtimes import warden

GATE = "gnomon-gate"
# The shell adds variables of its own to the environment; the command gets exactly what it was given.
_GATE_SCRIPT = 'read -r _ || exit 1; unset PWD OLDPWD SHLVL; exec "$@"'
_KILL_SECONDS = 10.0
_WARDEN_SECONDS = 2.0

T = TypeVar("T")


async def see_through(ending: Coroutine[Any, Any, T]) -> T:
    """Await an ending that no cancellation may cut short; a cancellation that came meanwhile is raised after it."""
    task = asyncio.ensure_future(ending)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
        except Exception:  # it is raised below, by result()
            break
    if cancelled:
        task.exception()
        raise asyncio.CancelledError
    return task.result()


class Warden:
    """The server's side of ``warden.py``: started with the first command, started again should it have died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._noted: set[int] = set()

    def note(self, pgid: int) -> None:
        """From now on the group dies with this process."""
        self._noted.add(pgid)
        self._tell(f"+{pgid}\n")

    def forget(self, pgid: int) -> None:
        """The group is gone."""
        self._noted.discard(pgid)
        if self._process is not None:
            self._tell(f"-{pgid}\n")

    def close(self) -> None:
        """Let the warden go; it kills what is still noted."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
            try:
                process.wait(_WARDEN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.poll() is not None:
            self._start()
            line = "".join(f"+{pgid}\n" for pgid in self._noted)
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):
            os.write(self._process.stdin.fileno(), line.encode())

    def _start(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._process = subprocess.Popen(  # noqa: S603 - our own script under our own interpreter
            [sys.executable, "-I", "-S", str(Path(warden.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
            bufsize=0,
        )


class _Stdin(asyncio.BaseProtocol):
    """Knows when the pipe is closed: a transport that is must not be aborted again."""

    lost = False

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # a program that does not read its stdin is no failure
        self.lost = True


class ProcessGroup:
    """A command's group. ``pgid`` is its leader's pid; ``exited`` is set when the leader has ended."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        """Start the gate in a session of its own. Raises OSError or ValueError where that is not possible."""
        self._popen = subprocess.Popen(  # noqa: S603 - running the operator's command is what it is for
            ["/bin/sh", "-c", _GATE_SCRIPT, GATE, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
            bufsize=0,
        )
        self.pgid = self._popen.pid
        self.exited = asyncio.Event()
        self._reaped = False
        self._stdin = _Stdin()
        self._transports: dict[str, asyncio.BaseTransport] = {}
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._watch, args=(loop,), name=f"wait-{self.pgid}", daemon=True).start()

    async def open_gate(self, text: bytes) -> None:
        """Let the command begin, with ``text`` on its stdin. One that never reads it is not waited for."""
        loop = asyncio.get_running_loop()
        assert self._popen.stdin is not None
        transport, _ = await loop.connect_write_pipe(lambda: self._stdin, self._popen.stdin)
        self._transports["stdin"] = transport
        transport.write(b"\n" + text)
        transport.close()

    async def reader(self, name: str) -> asyncio.StreamReader:
        """The command's ``stdout`` or ``stderr``."""
        pipe: IO[bytes] = getattr(self._popen, name)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._transports[name] = transport
        return reader

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every member."""
        if not self._reaped:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pgid, number)

    async def end(self, grace_seconds: float) -> int | None:
        """End the whole group and the leader's exit status, negative for a signal (RUN-10).

        A leader that still works is asked with SIGTERM and has ``grace_seconds``; then, or as soon as the leader has
        gone, SIGKILL goes to whoever is left. The leader is reaped only after that: until then its pid can't be
        given to anybody else, so the signal can't hit a stranger.
        """
        if not self.exited.is_set() and grace_seconds > 0:
            self.signal(signal.SIGTERM)
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.exited.wait(), grace_seconds)
            finally:
                self.signal(signal.SIGKILL)
        self.signal(signal.SIGKILL)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.exited.wait(), _KILL_SECONDS)
        if not self.exited.is_set():
            return None
        self._reaped = True
        return self._popen.wait()

    def close(self) -> None:
        """Let go of the pipes."""
        for name in ("stdin", "stdout", "stderr"):
            transport = self._transports.get(name)
            if transport is None:
                getattr(self._popen, name).close()
            elif not isinstance(transport, asyncio.WriteTransport):
                transport.close()
            elif not self._stdin.lost:
                transport.abort()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pgid, os.WEXITED | os.WNOWAIT)
        else:
            self._popen.wait()
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self.exited.set)
