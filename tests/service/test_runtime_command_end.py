"""How a command ends: its whole group, at every end, whoever ends it, and with the server (RUN-5, RUN-10, K14)."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gnomon.domain.agent import CommandRuntime
from gnomon.domain.invocation import Deferred, Failing, Invocation, Result, TargetFailure
from gnomon.runtimes.command import CommandTargets
from gnomon.runtimes.processes import see_through
from support.targets import Heard, an_invocation, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")


def sh(script: str, *args: str) -> CommandRuntime:
    return CommandRuntime(("sh", "-c", script, "sh", *args))


async def ask(
    spec: CommandRuntime, invocation: Invocation | None = None, heard: Heard | None = None, grace: float = 5.0
) -> Result | Deferred:
    targets = CommandTargets(grace_seconds=grace)
    try:
        return await targets.invoke(spec, "whsec_x", invocation or an_invocation(), heard or Heard())
    finally:
        await targets.close()


def run(
    spec: CommandRuntime, invocation: Invocation | None = None, heard: Heard | None = None
) -> Result | Deferred:
    async def scenario() -> Result | Deferred:
        return await ask(spec, invocation, heard or Heard())

    return asyncio.run(scenario())


def failing(spec: CommandRuntime, invocation: Invocation | None = None) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        run(spec, invocation)
    return caught.value


def is_working(pid: int) -> bool:
    """A zombie that nobody reaps works no more."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_grandchildren_die_at_a_normal_end_run_10() -> None:
    found = run(sh("sleep 300 & echo $!; sleep 300 >/dev/null 2>&1 & echo $!"))
    assert isinstance(found, Result)
    pids = [int(word) for word in found.output.split()]
    assert len(pids) == 2
    assert until(lambda: not any(is_working(pid) for pid in pids))


def test_a_process_that_left_the_group_does_not_hold_up_the_end() -> None:
    script = "import os, sys, subprocess\nprint(subprocess.Popen(['sleep', '300'], start_new_session=True).pid, flush=True)"
    found = run(CommandRuntime((sys.executable, "-c", script)))
    assert isinstance(found, Result)
    stranger = int(found.output)
    try:
        assert is_working(stranger)
    finally:
        os.kill(stranger, signal.SIGKILL)


async def started(script: str, heard: Heard, grace: float) -> "asyncio.Task[Result | Deferred]":
    """An attempt whose program has said on stderr that it is ready."""
    attempt = asyncio.create_task(ask(sh(script), heard=heard, grace=grace))
    await asyncio.wait_for(heard.line_came.wait(), 5)
    return attempt


def test_cancelling_asks_first_run_10(tmp_path: Path) -> None:
    """A program that heeds SIGTERM has time to clean up, and the cancellation waits for it."""

    async def scenario() -> None:
        heard, note = Heard(), tmp_path / "note"
        script = f"trap 'echo cleaned > {note}; exit 0' TERM; echo ready >&2; while :; do sleep 0.01; done"
        attempt = await started(script, heard, grace=30)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert note.read_text() == "cleaned\n"
        assert not is_working(heard.started[0])

    asyncio.run(scenario())


def test_cancelling_kills_after_the_grace_and_children_too_run_10() -> None:
    """A program that ignores SIGTERM, and its child that does, are gone before the cancellation goes through."""

    async def scenario() -> None:
        heard = Heard()
        script = "trap '' TERM; sleep 300 & echo $! >&2; while :; do sleep 300; done"
        attempt = await started(script, heard, grace=0.1)
        child = int(heard.lines[0])
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert not is_working(heard.started[0])
        assert until(lambda: not is_working(child))
        assert heard.ended == heard.started

    asyncio.run(scenario())


def test_a_second_cancellation_does_not_cut_the_ending_short_run_10() -> None:
    async def scenario() -> None:
        heard = Heard()
        attempt = await started("trap '' TERM; echo ready >&2; while :; do sleep 300; done", heard, grace=0.2)
        for _ in range(3):
            attempt.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert not is_working(heard.started[0])

    asyncio.run(scenario())


def test_a_stopped_program_is_killed_run_10() -> None:
    async def scenario() -> None:
        heard = Heard()
        attempt = await started("echo ready >&2; kill -STOP $$", heard, grace=0.1)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert not is_working(heard.started[0])

    asyncio.run(scenario())


def test_a_group_killed_from_elsewhere_ends_the_attempt_run_5() -> None:
    """Who lost its lease kills the group from another thread; the attempt then ends by itself."""

    async def scenario() -> None:
        heard = Heard()
        attempt = await started("echo ready >&2; sleep 300", heard, grace=5)
        await asyncio.to_thread(os.killpg, heard.started[0], signal.SIGKILL)
        with pytest.raises(TargetFailure) as caught:
            await asyncio.wait_for(attempt, 5)
        assert caught.value.code is Failing.EXIT_STATUS
        assert "SIGKILL" in caught.value.message

    asyncio.run(scenario())


def test_see_through_hands_on_what_the_ending_raises() -> None:
    async def broken() -> None:
        raise OSError("no")

    async def scenario() -> None:
        with pytest.raises(OSError, match="no"):
            await see_through(broken())

    asyncio.run(scenario())


SERVER = """
import asyncio, sys
from gnomon.domain.agent import CommandRuntime
from gnomon.runtimes.command import CommandTargets
from support.targets import Heard, an_invocation

async def main():
    script = "trap '' TERM HUP; sleep 300 & echo $$ $! >> " + sys.argv[1] + "; wait"
    await CommandTargets().invoke(CommandRuntime(("sh", "-c", script)), None, an_invocation(), Heard())

asyncio.run(main())
"""


@pytest.mark.process
def test_no_command_outlives_a_server_that_was_killed_k14(tmp_path: Path) -> None:
    """K14: SIGKILL of the server's whole process group; afterwards neither the command nor its child works."""
    pids = tmp_path / "pids"
    paths = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")])
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(pids)],
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )
    try:
        assert until(lambda: pids.exists() and pids.read_text().endswith("\n"), 20)
        working = [int(word) for word in pids.read_text().split()]
        assert all(is_working(pid) for pid in working)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    assert until(lambda: not any(is_working(pid) for pid in working))


@pytest.mark.process
def test_nothing_starts_when_the_server_dies_before_the_gate_opens_k14() -> None:
    """The gate reads a line from the server first; at the end of the pipe it ends without starting anything."""
    from gnomon.runtimes.processes import ProcessGroup

    async def scenario() -> None:
        group = ProcessGroup(["/bin/sh", "-c", "echo started"], {"PATH": "/bin"}, None)
        stdout = await group.reader("stdout")
        assert group._popen.stdin is not None
        group._popen.stdin.close()  # what the kernel does when the server is killed
        await asyncio.wait_for(group.exited.wait(), 5)
        assert await stdout.read() == b""
        assert await group.end(0) == 1
        group.close()

    asyncio.run(scenario())


def test_a_warden_that_died_is_started_again_k14() -> None:
    async def scenario() -> None:
        targets = CommandTargets()
        invocation = an_invocation("x")
        await targets.invoke(CommandRuntime(("cat",)), None, invocation, Heard())
        first = targets._warden._process
        assert first is not None
        first.kill()
        first.wait()
        assert await targets.invoke(CommandRuntime(("cat",)), None, invocation, Heard()) == Result("x")
        second = targets._warden._process
        assert second is not None
        assert second is not first
        await targets.close()
        assert second.returncode == 0

    asyncio.run(scenario())
