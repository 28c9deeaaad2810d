"""Agents that are programs: argv without a shell, the query on stdin, stdout as the answer (TGT-1, RUN-10).

The program and all its children live in a process group that is gone before an attempt ends, however it ends. A child
that leaves the group by starting a session of its own can't be followed.
"""

import asyncio
import os
import re
import shutil
import signal
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gnomon.domain.agent import CommandRuntime, RuntimeSpec
from gnomon.domain.instants import rfc3339
from gnomon.domain.invocation import Deferred, Failing, Invocation, Result, TargetFailure, Usage
from gnomon.ports.runtime import Reporter
from gnomon.runtimes.answers import OUTPUT_BYTES, excerpt, read_json, read_mapping
from gnomon.runtimes.processes import GATE, ProcessGroup, Warden, see_through

GRACE_SECONDS = 5.0
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
_DRAIN_SECONDS = 1.0
_LINE_BYTES = 4_000
_PROGRESS_BYTES = 1024 * 1024
_TAIL_BYTES = 2_000
_RESULT_BYTES = OUTPUT_BYTES + 64 * 1024
_CHUNK = 65_536
_PASSED_ON = frozenset(
    {"PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"}
)
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class CommandTargets:
    """``ports.runtime.Runtime`` for ``CommandRuntime``. ``grace_seconds`` lie between SIGTERM and SIGKILL."""

    def __init__(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self._grace = grace_seconds
        self._warden = Warden()

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """Run the program to its end and read its answer. See ``ports.runtime.Runtime``."""
        assert isinstance(spec, CommandRuntime)
        del secret
        scratch = Path(tempfile.mkdtemp(prefix="gnomon-run-"))
        try:
            result_file = scratch / "result.json"
            env = environment(spec, invocation, result_file)
            work = _Work([_program(spec, env), *spec.argv[1:]], env, spec.cwd, self._warden, reporter)
            cap = OUTPUT_BYTES if invocation.limits.output_bytes is None else invocation.limits.output_bytes
            status, output = await work.run(invocation.query, min(cap, OUTPUT_BYTES), self._grace)
            return _outcome(status, output, work.tail(), result_file)
        finally:
            # in a thread: what the program left there can be large
            await see_through(asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True))

    async def close(self) -> None:
        """Let the warden go."""
        self._warden.close()


def check_env(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is wrong with an agent's environment, as pairs of the variable's name and a sentence."""
    faults = [(name, f"{name!r} is no name of a variable") for name in env if not _ENV_NAME.fullmatch(name)]
    return faults + [
        (name, f"the value of {name} holds a NUL") for name, value in env.items() if "\0" in value
    ]


def environment(spec: CommandRuntime, invocation: Invocation, result_file: Path) -> dict[str, str]:
    """All a program gets: the few variables of the machine, the agent's own, then ours (CONTRACT).

    Nothing else of the server's environment is in it, above all none of its settings. What has no value (a dedup
    key, a slot, a tenant) is an empty string; ``TRACEPARENT`` is left out where there is no trace.
    """
    nominal = invocation.nominal_fire_at
    ours = {
        "GNOMON_RUN_ID": invocation.run_id,
        "GNOMON_ATTEMPT": str(invocation.attempt),
        "GNOMON_FENCE": str(invocation.fence),
        "GNOMON_IDEMPOTENCY_KEY": invocation.idempotency_key,
        "GNOMON_DEDUP_KEY": invocation.dedup_key or "",
        "GNOMON_NOMINAL_FIRE_AT": "" if nominal is None else rfc3339(nominal),
        "GNOMON_DEADLINE": rfc3339(invocation.deadline),
        "GNOMON_TENANT": invocation.tenant or "",
        "GNOMON_RESULT_FILE": str(result_file),
    }
    if invocation.traceparent is not None:
        ours["TRACEPARENT"] = invocation.traceparent
    machine = {name: value for name, value in os.environ.items() if name in _PASSED_ON}
    return {"PATH": _DEFAULT_PATH, **machine, **spec.env, **ours}


def _program(spec: CommandRuntime, env: Mapping[str, str]) -> str:
    """The program's path, looked up in the PATH it will have."""
    faults = [message for _, message in check_env(spec.env)]
    if not spec.argv or not spec.argv[0]:
        faults.append("the command is empty")
    if any("\0" in part for part in spec.argv):
        faults.append("the command holds a NUL")
    if faults:
        raise TargetFailure(Failing.TARGET_INVALID, "; ".join(faults))
    if spec.cwd is not None and not Path(spec.cwd).is_dir():
        raise TargetFailure(Failing.NOT_STARTED, f"there is no directory {spec.cwd}")
    name = spec.argv[0]
    if "/" in name and spec.cwd is not None:
        name = str(Path(spec.cwd) / name)
    found = shutil.which(name, path=env["PATH"])
    if found is None:
        raise TargetFailure(Failing.NOT_STARTED, f"there is no program {spec.argv[0]!r} that could be run")
    return str(Path(found).absolute())


class _Work:
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

    async def run(self, query: str, cap: int, grace_seconds: float) -> tuple[int, bytes]:
        """The exit status and all of stdout. The group is gone when this returns or raises (RUN-10)."""
        try:
            group = ProcessGroup(self._argv, self._env, self._cwd)
        except (OSError, ValueError) as error:
            raise TargetFailure(Failing.NOT_STARTED, f"the program can't be started: {error}") from error
        self._warden.note(group.pgid)
        self._reporter.process_started(group.pgid)
        readers: list[asyncio.Task[bytes]] = []
        try:
            await self._begin(group, query, cap, readers)
            await self._until_exit(group, readers[0])
        except asyncio.CancelledError:
            await see_through(self._finish(group, readers, grace_seconds))
            raise
        except BaseException:
            await see_through(self._finish(group, readers, 0))
            raise
        status = await see_through(self._finish(group, readers, 0))
        return (-signal.SIGKILL if status is None else status), readers[0].result()

    async def _begin(
        self, group: ProcessGroup, query: str, cap: int, readers: list[asyncio.Task[bytes]]
    ) -> None:
        readers.append(asyncio.create_task(_read_output(await group.reader("stdout"), cap)))
        readers.append(asyncio.create_task(self._read_progress(await group.reader("stderr"))))
        await group.open_gate(query.encode(errors="replace"))

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
        while chunk := await stderr.read(_CHUNK):
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


async def _read_output(stdout: asyncio.StreamReader, cap: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        while chunk := await stdout.read(_CHUNK):
            parts.append(chunk)
            size += len(chunk)
            if size > cap:
                message = f"the output is longer than {cap:,} bytes; the program was ended"
                raise TargetFailure(Failing.OUTPUT_TOO_LARGE, message)
    except asyncio.CancelledError:
        # a process outside the group holds the pipe open; what the program itself wrote is here
        return b"".join(parts)
    return b"".join(parts)


def _outcome(status: int, output: bytes, tail: str, result_file: Path) -> Result:
    text = output.decode(errors="replace").replace("\x00", "\ufffd")
    if status == 0:
        reported = _read_result(result_file)
        return Result(text) if reported is None else read_mapping(reported, "the result file", default=text)
    said = f": {excerpt(tail[-400:], 400)}" if tail else ""
    if status in (126, 127) and tail.startswith(f"{GATE}:"):
        raise TargetFailure(Failing.NOT_STARTED, f"the program can't be started{said}")
    how = f"ended with status {status}" if status > 0 else f"was ended by {_signal_name(-status)}"
    raise TargetFailure(
        Failing.EXIT_STATUS,
        f"the program {how}{said}",
        retryable=status == TRY_AGAIN,
        usage=_usage_spent(result_file),
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _usage_spent(result_file: Path) -> Usage | None:
    """Usage that a failed program still reported."""
    with suppress(TargetFailure):
        reported = _read_result(result_file)
        if reported is not None:
            return read_mapping(reported, "the result file", default="").usage
    return None


def _read_result(result_file: Path) -> object | None:
    """What the program wrote for us, or ``None``. No link is followed, and nothing but a plain file is read."""
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
