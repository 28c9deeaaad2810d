"""The table of runtimes: each kind finds its adapter, and the limits hold for all of them (TGT-1, TGT-5)."""

import asyncio
from datetime import UTC, datetime

import pytest

from gnomon.domain.agent import CommandRuntime, LlmRuntime, PythonRuntime, RoleRuntime
from gnomon.domain.invocation import Deferred, Failing, Limits, Result, TargetFailure, Usage
from gnomon.runtimes.answers import OUTPUT_BYTES
from gnomon.runtimes.table import RuntimeTable, runtime_table
from gnomon.testing.clock import FrozenClock
from gnomon.testing.runtime import ScriptedRuntime
from support.targets import Heard, an_invocation

CLOCK = FrozenClock(datetime(2026, 11, 29, tzinfo=UTC))


def test_each_kind_finds_its_adapter_tgt_1() -> None:
    async def scenario() -> None:
        table = runtime_table(CLOCK, allow_private=True, grace_seconds=1)
        invocation = an_invocation("q")
        assert await table.invoke(CommandRuntime(("cat",)), None, invocation, Heard()) == Result("q")
        spec = PythonRuntime("support.callables:nothing")
        assert await table.invoke(spec, None, invocation, Heard()) == Result("")
        llm = await table.invoke(LlmRuntime("test"), None, invocation, Heard())
        assert isinstance(llm, Result)
        await table.close()

    asyncio.run(scenario())


def test_a_kind_without_an_adapter_is_an_invalid_target_until_one_is_put_in() -> None:
    async def scenario() -> None:
        table = runtime_table(CLOCK, allow_private=False, grace_seconds=1)
        with pytest.raises(TargetFailure) as caught:
            await table.invoke(RoleRuntime("worker"), None, an_invocation(), Heard())
        assert caught.value.code is Failing.TARGET_INVALID
        assert "no runtime for RoleRuntime in this process" in caught.value.message
        role = ScriptedRuntime()
        table.put(RoleRuntime, role)
        assert await table.invoke(RoleRuntime("worker"), None, an_invocation(), Heard()) == Result("ok")
        await table.close()
        assert role.closed

    asyncio.run(scenario())


@pytest.mark.parametrize("limit", [None, 100_000_000])
def test_no_output_is_past_the_cap_whatever_gave_it_tgt_5(limit: int | None) -> None:
    """A callable's text comes whole: what nobody bounded on the way must not reach the database."""

    async def scenario() -> None:
        runtime = ScriptedRuntime()
        table = RuntimeTable({RoleRuntime: runtime})
        invocation = an_invocation(limits=Limits(output_bytes=limit))
        runtime.answers("x" * OUTPUT_BYTES)
        assert isinstance(await table.invoke(RoleRuntime("r"), None, invocation, Heard()), Result)
        runtime.answers("x" * (OUTPUT_BYTES + 1))
        with pytest.raises(TargetFailure) as caught:
            await table.invoke(RoleRuntime("r"), None, invocation, Heard())
        assert caught.value.code is Failing.OUTPUT_TOO_LARGE
        assert "16,777,216" in caught.value.message

    asyncio.run(scenario())


def test_a_result_past_a_limit_fails_whatever_gave_it_tgt_5() -> None:
    async def scenario() -> None:
        runtime = ScriptedRuntime()
        table = RuntimeTable({RoleRuntime: runtime})
        invocation = an_invocation(limits=Limits(output_bytes=3, model_calls=1, cost=0.1))
        for output, usage, code in (
            ("four", None, Failing.OUTPUT_TOO_LARGE),
            ("", Usage(2), Failing.MODEL_CALLS_EXCEEDED),
            ("", Usage(cost=0.2), Failing.COST_EXCEEDED),
        ):
            runtime.answers(output, usage)
            with pytest.raises(TargetFailure) as caught:
                await table.invoke(RoleRuntime("r"), None, invocation, Heard())
            assert caught.value.code is code
            assert caught.value.usage == usage
        runtime.answers("ok", Usage(1, cost=0.1))
        assert await table.invoke(RoleRuntime("r"), None, invocation, Heard()) == Result(
            "ok", Usage(1, cost=0.1)
        )
        runtime.defers()
        assert await table.invoke(RoleRuntime("r"), None, invocation, Heard()) == Deferred()

    asyncio.run(scenario())
