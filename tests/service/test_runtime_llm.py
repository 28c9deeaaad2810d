"""The llm runtime with offline models: history, limits, usage, and what a provider's errors mean (TGT-1, TGT-5)."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import exceptions as errors
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from gnomon.domain.agent import LlmRuntime
from gnomon.domain.invocation import Deferred, Failing, Limits, Message, Result, TargetFailure, Usage
from gnomon.runtimes.llm import LlmTargets
from support.targets import Heard, an_invocation

Says = Callable[[list[ModelMessage], AgentInfo], Any]


def model(says: Says) -> FunctionModel:
    async def function(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = says(messages, info)
        if isinstance(said, BaseException):
            raise said
        assert isinstance(said, ModelResponse)
        return said

    return FunctionModel(function)


def run(
    says: Says | None = None,
    spec: LlmRuntime | None = None,
    heard: Heard | None = None,
    **fields: Any,
) -> Result | Deferred:
    async def scenario() -> Result | Deferred:
        targets = LlmTargets(model_named=None if says is None else lambda _: model(says))
        invocation = an_invocation("what is it?", **fields)
        try:
            return await targets.invoke(spec or LlmRuntime("any:model"), None, invocation, heard or Heard())
        finally:
            await targets.close()

    return asyncio.run(scenario())


def failing(says: Says | None = None, spec: LlmRuntime | None = None, **fields: Any) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        run(says, spec, **fields)
    return caught.value


def reply(text: str, usage: RequestUsage | None = None) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)], usage=usage or RequestUsage(input_tokens=7, output_tokens=3))


def test_the_test_model_answers_offline_tgt_1() -> None:
    heard = Heard()
    found = run(spec=LlmRuntime("test"), heard=heard)
    assert isinstance(found, Result)
    assert found.output
    assert found.usage is not None
    assert found.usage.model_calls == 1
    assert heard.usages == [found.usage]
    assert run(spec=LlmRuntime("test", None, {"output_text": "said"})) == Result(
        "said", Usage(1, found.usage.input_tokens, 1)
    )


def test_what_names_the_effect_is_in_the_run_s_metadata_idm_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the library calls on the way can name the effect."""

    seen: list[Any] = []
    asked = pydantic_ai.Agent.run

    async def watched(*given: Any, **named: Any) -> Any:
        seen.append(named["metadata"])
        return await asked(*given, **named)

    monkeypatch.setattr(pydantic_ai.Agent, "run", watched)
    run(lambda messages, info: reply("yes"), dedup_key="brief-2026-11-29", attempt=2)
    [metadata] = seen
    assert metadata["gnomon.dedup_key"] == "brief-2026-11-29"
    assert metadata["gnomon.attempt"] == 2
    assert set(metadata) >= {"gnomon.run_id", "gnomon.fence", "gnomon.idempotency_key"}


def test_the_sessions_messages_come_before_the_query_tgt_1() -> None:
    seen: list[ModelMessage] = []

    def says(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.extend(messages)
        assert info.instructions == "be short"
        assert info.model_settings == {"temperature": 0.5}
        return reply("yes")

    spec = LlmRuntime("any:model", "be short", {"temperature": 0.5})
    history = (Message("user", "hello"), Message("assistant", "hi"))
    assert run(says, spec, messages=history) == Result("yes", Usage(1, 7, 3))
    texts = [(type(m), str(getattr(m.parts[0], "content", ""))) for m in seen]
    assert texts == [(ModelRequest, "hello"), (ModelResponse, "hi"), (ModelRequest, "what is it?")]
    assert isinstance(seen[-1].parts[0], UserPromptPart)


def test_model_calls_are_bounded_before_they_are_made_tgt_5() -> None:
    called: list[int] = []

    def says(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        called.append(1)
        return reply("never")

    failure = failing(says, limits=Limits(model_calls=0))
    assert failure.code is Failing.MODEL_CALLS_EXCEEDED
    assert "0 calls allowed" in failure.message
    assert not failure.retryable
    assert failure.usage == Usage()
    assert called == []


def test_cost_is_bounded_and_kept_tgt_5() -> None:
    from decimal import Decimal

    def says(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return reply("dear", RequestUsage(input_tokens=1, output_tokens=1, cost=Decimal("0.75")))

    heard = Heard()
    failure = failing(says, limits=Limits(cost=0.5), heard=heard)
    assert failure.code is Failing.COST_EXCEEDED
    assert "0.75" in failure.message
    assert failure.usage == Usage(1, 1, 1, 0.75)
    assert heard.usages == [failure.usage]
    assert run(says, limits=Limits(cost=0.75)) == Result("dear", Usage(1, 1, 1, 0.75))


def http(status: int) -> BaseException:
    return errors.ModelHTTPError(status, "m", {"error": "said the provider"})


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (http(429), True),
        (http(408), True),
        (http(500), True),
        (http(503), True),
        (http(529), True),
        (http(400), False),
        (http(401), False),
        (http(404), False),
        (errors.ModelConnectionError("m", "no route"), True),
        (errors.ModelTimeoutError("m", "slow"), True),
        (errors.ModelOverloadedError("m", "busy"), True),
        (errors.ModelQuotaExceededError("m", "no credit"), False),
        (errors.ModelAuthenticationError("m", "bad key"), False),
        (errors.ModelAPIError("m", "other"), False),
        (errors.UnexpectedModelBehavior("odd"), False),
        (errors.UserError("wrongly used"), False),
        (ValueError("broken provider"), False),
    ],
)
def test_a_providers_error_is_named_and_tried_again_by_its_kind(
    error: BaseException, retryable: bool
) -> None:
    failure = failing(lambda *_: error)
    assert failure.code is Failing.MODEL_ERROR
    assert failure.retryable is retryable
    status = getattr(error, "status_code", None)
    assert failure.message.startswith(
        "the model failed" if status is None else f"the provider answered {status}"
    )
    counted = isinstance(error, errors.ModelAPIError)
    assert failure.usage == Usage(model_calls=1 if counted else 0)


def test_the_providers_wait_is_kept() -> None:
    failure = failing(lambda *_: errors.ModelRateLimitError("m", "slow down", retry_after=12.5))
    assert failure.retryable
    assert failure.retry_after == 12.5


def test_an_unknown_model_says_so() -> None:
    for name in ("no-such-model", "fish:model", ""):
        failure = failing(spec=LlmRuntime(name))
        assert failure.code is Failing.NOT_STARTED
        assert not failure.retryable
        assert repr(name) in failure.message


def test_a_cancelled_attempt_still_reports_its_usage_run_10() -> None:
    async def scenario() -> None:
        asked, heard = asyncio.Event(), Heard()

        async def hangs(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        targets = LlmTargets(model_named=lambda _: FunctionModel(hangs))
        attempt = asyncio.create_task(targets.invoke(LlmRuntime("a:b"), None, an_invocation(), heard))
        await asyncio.wait_for(asked.wait(), 10)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert heard.usages == [Usage()]

    asyncio.run(scenario())


def test_prompts_and_answers_stay_out_of_traces() -> None:
    from gnomon.runtimes.llm import _Library

    settings = _Library.load().instrumentation
    assert settings.include_content is False
    assert settings.include_binary_content is False


def test_the_library_is_imported_at_the_first_invocation_alone() -> None:
    code = "import sys, gnomon.runtimes.table; sys.exit('pydantic_ai' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
