"""The scripted runtime does what it is told, in order, and tells what it was asked."""

import asyncio
import threading

import pytest

from gnomon.domain.agent import RoleRuntime
from gnomon.domain.invocation import Deferred, Failing, Result, TargetFailure, Usage
from gnomon.testing.runtime import ScriptedRuntime
from support.targets import Heard, an_invocation


async def ask(runtime: ScriptedRuntime, query: str = "q") -> Result | Deferred:
    return await runtime.invoke(RoleRuntime("r"), "secret", an_invocation(query), Heard())


def test_plans_are_followed_in_order() -> None:
    async def scenario() -> None:
        runtime = ScriptedRuntime(Result("by default"))
        runtime.answers("one", Usage(1))
        runtime.answers(lambda invocation: invocation.query.upper())
        runtime.fails(Failing.UNREACHABLE, "gone", retryable=True, retry_after=3)
        runtime.breaks(ZeroDivisionError())
        runtime.defers()
        assert await ask(runtime) == Result("one", Usage(1))
        assert await ask(runtime, "two") == Result("TWO")
        with pytest.raises(TargetFailure, match="gone") as caught:
            await ask(runtime)
        assert (caught.value.code, caught.value.retryable, caught.value.retry_after) == (
            Failing.UNREACHABLE,
            True,
            3,
        )
        with pytest.raises(ZeroDivisionError):
            await ask(runtime)
        assert await ask(runtime) == Deferred()
        assert await ask(runtime, "six") == Result("by default")
        assert [i.query for i in runtime.invocations] == ["q", "two", "q", "q", "q", "six"]
        assert runtime.calls[0].secret == "secret"

    asyncio.run(scenario())


def test_a_hold_hangs_until_it_is_released_or_cancelled() -> None:
    async def scenario() -> None:
        runtime = ScriptedRuntime()
        first, second, third = runtime.hangs(), runtime.hangs(), runtime.hangs()
        tasks = [asyncio.create_task(ask(runtime, str(i))) for i in range(3)]
        assert (await runtime.started(3)).invocation.query == "2"
        first.release("free")
        second.release(TargetFailure(Failing.TIMEOUT, "late"))
        tasks[2].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert found[0] == Result("free")
        assert isinstance(found[1], TargetFailure)
        assert isinstance(found[2], asyncio.CancelledError)
        assert third.cancelled.is_set()
        assert runtime.cancelled == 1

    asyncio.run(scenario())


def test_a_stubborn_hold_does_not_heed_cancellation() -> None:
    async def scenario() -> None:
        runtime = ScriptedRuntime()
        hold = runtime.hangs(stubborn=True)
        task = asyncio.create_task(ask(runtime))
        await asyncio.wait_for(hold.started.wait(), 5)
        task.cancel()
        await asyncio.wait_for(hold.cancelled.wait(), 5)
        assert not task.done()
        hold.release("at last")
        assert await task == Result("at last")

    asyncio.run(scenario())


def test_a_blocking_call_blocks_the_loop_until_the_cue() -> None:
    async def scenario() -> None:
        runtime, cue = ScriptedRuntime(), threading.Event()
        runtime.blocks(cue)
        threading.Timer(0.02, cue.set).start()
        assert await ask(runtime) == Result("unblocked")
        assert cue.is_set()

    asyncio.run(scenario())


def test_waiting_for_a_call_that_never_comes_is_bounded() -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(ScriptedRuntime().started(within=0.01))
