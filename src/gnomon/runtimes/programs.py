"""One run of a program in a process group of its own: its three streams, the end of its stderr, the file it may leave.

What the program is asked, which environment it gets and what its ending means is the affair of whoever runs it:
``command`` for an agent's attempt, ``cli/work`` for a worker's task.
"""

import asyncio
import os
import shutil
import signal
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from gnomon.domain.invocation import Failing, TargetFailure
from gnomon.ports.runtime import Reporter
from gnomon.runtimes.answers import OUTPUT_BYTES, excerpt, read_json
from gnomon.runtimes.processes import GATE, ProcessGroup, Warden, see_through

TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
CHUNK = 65_536
_DRAIN_SECONDS = 1.0
_LINE_BYTES = 4_000
_PROGRESS_BYTES = 1024 * 1024
_TAIL_BYTES = 2_000
_RESULT_BYTES = OUTPUT_BYTES + 64 * 1024

Reading = Callable[[asyncio.StreamReader], Awaitable[bytes]]


def locate(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> str:
    """The path of a program, looked up in the PATH it will have.

    Raises:
        TargetFailure: there is none that could be run, or argv can't be passed on.
    """
    faults = []
    if not argv or not argv[0]:
        faults.append("the command is empty")
    if any("\0" in part for part in argv):
        faults.append("the command holds a NUL")
    if faults:
        raise TargetFailure(Failing.TARGET_INVALID, "; ".join(faults))
    if cwd is not None and not Path(cwd).is_dir():
        raise TargetFailure(Failing.NOT_STARTED, f"there is no directory {cwd}")
    name = argv[0]
    if "/" in name and cwd is not None:
        name = str(Path(cwd) / name)
    found = shutil.which(name, path=env["PATH"])
    if found is None:
        raise TargetFailure(Failing.NOT_STARTED, f"there is no program {argv[0]!r} that could be run")
    return str(Path(found).absolute())


class Program:
    """One run of a program: its group, its three streams, the end of its stderr."""

    def __init__(
        self, argv: list[str], env: Mapping[str, str], cwd: str | None, warden: Warden, reporter: Reporter
    ) -> None:
        self._argv = argv
        self._env = env
        self._cwd = cwd
        self._warden = warden
        self._reporter = reporter
        self._tail = bytearray()

    def tail(self) -> str:
        """The last part of stderr."""
        return self._tail.decode(errors="replace").strip()

    async def run(self, text: str, read: Reading, grace: Callable[[], float]) -> tuple[int, bytes]:
        """The exit status, and what ``read`` kept of stdout; ``text`` is on stdin.

        The group is gone when this returns or raises (RUN-10). Cancelled, it is asked with SIGTERM and has ``grace()``
        seconds. What ``read`` raises ends the program.
        """
        try:
            group = ProcessGroup(self._argv, self._env, self._cwd)
        except (OSError, ValueError) as error:
            raise TargetFailure(Failing.NOT_STARTED, f"the program can't be started: {error}") from error
        self._warden.note(group.pgid)
        self._reporter.process_started(group.pgid)
        readers: list[asyncio.Task[bytes]] = []
        try:
            await self._begin(group, text, read, readers)
            await self._until_exit(group, readers[0])
        except asyncio.CancelledError:
            await see_through(self._finish(group, readers, grace()))
            raise
        except BaseException:
            await see_through(self._finish(group, readers, 0))
            raise
        status = await see_through(self._finish(group, readers, 0))
        return (-signal.SIGKILL if status is None else status), readers[0].result()

    async def _begin(
        self, group: ProcessGroup, text: str, read: Reading, readers: list[asyncio.Task[bytes]]
    ) -> None:
        readers.append(asyncio.ensure_future(read(await group.reader("stdout"))))
        readers.append(asyncio.create_task(self._read_progress(await group.reader("stderr"))))
        await group.open_gate(text.encode(errors="replace"))

    async def _until_exit(self, group: ProcessGroup, output: asyncio.Task[bytes]) -> None:
        """Wait for the leader, or for an output past its limit, whichever is first."""
        exited = asyncio.create_task(group.exited.wait())
        try:
            await asyncio.wait({exited, output}, return_when=asyncio.FIRST_COMPLETED)
            if output.done():
                output.result()
            await exited
        finally:
            exited.cancel()

    async def _finish(
        self, group: ProcessGroup, readers: list[asyncio.Task[bytes]], grace_seconds: float
    ) -> int | None:
        """End the group, then take what is still in the pipes; a stranger that holds them open is not waited for."""
        status = await group.end(grace_seconds)
        self._warden.forget(group.pgid)
        self._reporter.process_ended(group.pgid)
        if readers:
            _, late = await asyncio.wait(readers, timeout=_DRAIN_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
        group.close()
        return status

    async def _read_progress(self, stderr: asyncio.StreamReader) -> bytes:
        """Each line of stderr is progress, a flood of it is passed over; its last part is kept."""
        line = bytearray()
        told = 0
        while chunk := await stderr.read(CHUNK):
            self._tail += chunk
            del self._tail[:-_TAIL_BYTES]
            if told >= _PROGRESS_BYTES:
                continue
            *lines, rest = (bytes(line) + chunk).split(b"\n")
            for text in lines:
                told = self._tell(text, told)
            line = bytearray(rest)
            if len(line) > _LINE_BYTES:
                told = self._tell(bytes(line), told)
                line.clear()
        self._tell(bytes(line), told)
        return b""

    def _tell(self, text: bytes, told: int) -> int:
        shown = text[:_LINE_BYTES].decode(errors="replace").rstrip()
        now = told + len(text) + 1  # its end of line counts, or a flood of empty lines would have no end
        if told >= _PROGRESS_BYTES:
            return now
        if shown:
            self._reporter.progress(shown)
        if now >= _PROGRESS_BYTES:
            self._reporter.progress("… the program says more than is kept")
        return now


def could_not_start(status: int, tail: str) -> bool:
    """Whether the gate says that there was nothing that could be executed."""
    return status in (126, 127) and tail.startswith(f"{GATE}:")


def ending(status: int, tail: str) -> str:
    """How a program ended that did not succeed, with the last of what it said."""
    said = f": {excerpt(tail[-400:], 400)}" if tail else ""
    if could_not_start(status, tail):
        return f"the program can't be started{said}"
    how = f"ended with status {status}" if status > 0 else f"was ended by {_signal_name(-status)}"
    return f"the program {how}{said}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def read_result(result_file: Path) -> object | None:
    """The JSON that a program wrote for us, or ``None``. No link is followed, and nothing but a plain file is read."""
    try:
        descriptor = os.open(result_file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TargetFailure(Failing.NONSENSE, f"the result file can't be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TargetFailure(Failing.NONSENSE, "the result file is no plain file")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(_RESULT_BYTES + 1)
    if len(data) > _RESULT_BYTES:
        raise TargetFailure(
            Failing.OUTPUT_TOO_LARGE, f"the result file is longer than {_RESULT_BYTES:,} bytes"
        )
    return None if not data.strip() else read_json(data, "the result file")
