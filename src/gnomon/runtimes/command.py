"""Agents that are programs: argv without a shell, the query on stdin, stdout as the answer (TGT-1, RUN-10).

The program and all its children live in a process group that is gone before an attempt ends, however it ends. A child
that leaves the group by starting a session of its own can't be followed.
"""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from gnomon.domain.agent import CommandRuntime, RuntimeSpec
from gnomon.domain.instants import rfc3339
from gnomon.domain.invocation import Deferred, Failing, Invocation, Result, TargetFailure, Usage
from gnomon.ports.runtime import Reporter
from gnomon.runtimes.answers import OUTPUT_BYTES, read_mapping
from gnomon.runtimes.processes import Warden, see_through
from gnomon.runtimes.programs import (
    CHUNK,
    TRY_AGAIN,
    Program,
    could_not_start,
    ending,
    locate,
    read_result,
)

GRACE_SECONDS = 5.0
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
            program = Program([_program(spec, env), *spec.argv[1:]], env, spec.cwd, self._warden, reporter)
            cap = OUTPUT_BYTES if invocation.limits.output_bytes is None else invocation.limits.output_bytes
            read = partial(_read_output, cap=min(cap, OUTPUT_BYTES))
            status, output = await program.run(invocation.query, read, lambda: self._grace)
            return _outcome(status, output, program.tail(), result_file)
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
    if faults:
        raise TargetFailure(Failing.TARGET_INVALID, "; ".join(faults))
    return locate(spec.argv, env, spec.cwd)


async def _read_output(stdout: asyncio.StreamReader, cap: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        while chunk := await stdout.read(CHUNK):
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
        reported = read_result(result_file)
        return Result(text) if reported is None else read_mapping(reported, "the result file", default=text)
    if could_not_start(status, tail):
        raise TargetFailure(Failing.NOT_STARTED, ending(status, tail))
    raise TargetFailure(
        Failing.EXIT_STATUS,
        ending(status, tail),
        retryable=status == TRY_AGAIN,
        usage=_usage_spent(result_file),
    )


def _usage_spent(result_file: Path) -> Usage | None:
    """Usage that a failed program still reported."""
    with suppress(TargetFailure):
        reported = read_result(result_file)
        if reported is not None:
            return read_mapping(reported, "the result file", default="").usage
    return None
