"""A PostgreSQL server of our own, for ``gnomon up --postgres`` and for tests: in one folder, on loopback, ours alone.

It is a child in the foreground that ends when this process ends, in whatever way (``postgres_gate``). It knows no
schema: who opens the database is ``stores.postgres``'s affair.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from gnomon.adapters.clock import SystemClock
from gnomon.adapters.postgres_folder import ENVIRONMENT, PostgresFolder
from gnomon.domain.errors import UnusableDatabase

_LOOK_SECONDS = 0.01
_OTHER_ENDS_SECONDS = 10.0  # a server whose Gnomon was just killed is still shutting down
_READY_SECONDS = 120.0  # after a crash it replays its log first
_STOP_SECONDS = 45.0  # the gate itself goes on to kill within 40


class PostgresServer:
    """One server in ``folder``, which is made at the first start.

    ``port``: ``None`` takes the last one of this folder where that is free, else any. ``options`` are settings of
    PostgreSQL (``{"max_connections": "20"}``), for as long as this server runs.
    """

    def __init__(
        self, folder: Path, *, port: int | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        self._path = folder
        self._wanted = port
        self._options = dict(options or {})
        self._folder: PostgresFolder | None = None
        self._gate: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address with the password in it: for this process, never for an eye or a log."""
        return self._opened.url(self._port, secret=True)

    @property
    def shown_url(self) -> str:
        """The address that names the file with the password: for people, and for other processes of the same user."""
        return self._opened.url(self._port, secret=False)

    @property
    def pid(self) -> int | None:
        """The server's process, while it takes connections."""
        return self._opened.ready_pid()

    @property
    def _opened(self) -> PostgresFolder:
        if self._folder is None:
            raise RuntimeError("the server was never started")
        return self._folder

    def start(self) -> str:
        """Start the server and return its address once it takes connections; again: the same.

        Raises:
            UnusableDatabase: with what is wrong and what to do: no wheel, a folder of another version or another
                server's, a port in use, no user to run as.
        """
        if self._gate is not None:
            return self.url
        folder = self._folder = PostgresFolder(self._path)
        lock = folder.lock(_OTHER_ENDS_SECONDS)
        try:
            folder.make()
            self._port = self._choose_port(folder)
            self._gate = self._launch(folder, lock)
        finally:
            os.close(lock)
        try:
            self._await_ready(folder, self._gate)
        except BaseException:
            self.stop()
            raise
        folder.note_port(self._port)
        return self.url

    def stop(self, *, at_once: bool = False) -> None:
        """Shut the server down (fast: transactions under way are broken off), and wait for its end.

        ``at_once`` kills it, as a crash of the machine would: the next start replays its log.
        """
        gate, self._gate = self._gate, None
        if gate is None:
            return
        assert gate.stdin is not None
        if at_once:
            _kill(gate, self.pid)
        gate.stdin.close()
        try:
            gate.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            gate.kill()
            gate.wait()

    def _choose_port(self, folder: PostgresFolder) -> int:
        if self._wanted is not None:
            if not _is_free(self._wanted):
                raise UnusableDatabase(
                    f"Port {self._wanted} of 127.0.0.1 is in use: PostgreSQL needs another one."
                )
            return self._wanted
        last = folder.last_port()
        if last is not None and _is_free(last):
            return last
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])

    def _launch(self, folder: PostgresFolder, lock: int) -> subprocess.Popen[bytes]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": "",
            "timezone": "UTC",
            "log_timezone": "UTC",
            **self._options,
        }
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        if folder.log.exists():
            folder.log.replace(folder.log.with_suffix(".log.old"))
        with folder.log.open("wb") as log:
            folder.log.chmod(0o600)
            return subprocess.Popen(  # noqa: S603 - a program of the wheel
                folder.command("guard", "postgres", "-D", str(folder.data), *arguments),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[lock],
                cwd="/",
                env=ENVIRONMENT,
                start_new_session=True,  # a Ctrl-C is for us: the server is stopped when all else is
            )

    def _await_ready(self, folder: PostgresFolder, gate: subprocess.Popen[bytes]) -> None:
        clock = SystemClock()
        end = clock.monotonic() + _READY_SECONDS
        while folder.ready_pid() is None:
            with suppress(subprocess.TimeoutExpired):
                code = gate.wait(_LOOK_SECONDS)
                raise UnusableDatabase(
                    f"PostgreSQL did not start in {folder.path} (exit code {code}): "
                    f"{folder.last_words()} Its log is {folder.log}."
                )
            if clock.monotonic() > end:
                raise UnusableDatabase(
                    f"PostgreSQL was not ready within {_READY_SECONDS:.0f} seconds. Its log is {folder.log}."
                )


def _kill(gate: "subprocess.Popen[bytes]", pid: int | None) -> None:
    gate.kill()  # first, or it would start another
    gate.wait()
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
