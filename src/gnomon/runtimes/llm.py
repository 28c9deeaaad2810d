"""Agents that are a model with instructions, through pydantic-ai (TGT-1); ``test`` answers offline.

The library takes most of a second to import, so it is imported at the first invocation, in a thread. Prompts and
answers stay out of traces (``include_content`` off).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gnomon.domain.agent import LlmRuntime, RuntimeSpec
from gnomon.domain.invocation import (
    Deferred,
    Failing,
    Invocation,
    Limits,
    Message,
    Result,
    TargetFailure,
    Usage,
)
from gnomon.ports.runtime import Reporter
from gnomon.runtimes.answers import excerpt, storable

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.usage import RunUsage

TEST_MODEL = "test"
_MESSAGE = 400
_TRIED_AGAIN = frozenset({408, 409, 425, 429})

ModelNamed = Callable[[str], "Model"]


class LlmTargets:
    """``ports.runtime.Runtime`` for ``LlmRuntime``. ``model_named`` finds a model, for tests and own providers."""

    def __init__(self, *, model_named: ModelNamed | None = None) -> None:
        self._model_named = model_named
        self._library: _Library | None = None
        self._models: dict[str, Model] = {}

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """Ask the model, with the session's messages before the query. See ``ports.runtime.Runtime``.

        The limits bound model calls before each call and cost after each (TGT-5). Usage is reported and kept however
        the attempt ends; a call that failed counts as made.
        """
        assert isinstance(spec, LlmRuntime)
        del secret
        if self._library is None:
            self._library = await asyncio.to_thread(_Library.load)
        library = self._library
        model, settings = await self._prepare(library, spec)
        usage = library.usage.RunUsage()
        agent = library.ai.Agent(model, instructions=spec.instructions, output_type=str, retries=0)
        agent.instrument = library.instrumentation
        try:
            answer = await agent.run(
                invocation.query,
                message_history=_history(library, invocation.messages),
                model_settings=settings or None,
                usage=usage,
                usage_limits=_limits(library, invocation.limits),
                metadata=_names(invocation),
                infer_name=False,
            )
        except Exception as error:
            raise _failure(library, error, usage, invocation.limits) from error
        finally:
            reporter.usage(_used(usage))
        return Result(storable(answer.output), _used(usage))

    async def close(self) -> None:
        """Forget the models; their connections are the library's own."""
        self._models.clear()

    async def _prepare(self, library: "_Library", spec: LlmRuntime) -> tuple[Any, dict[str, object]]:
        settings = dict(spec.settings)
        if spec.model == TEST_MODEL and self._model_named is None:
            said = settings.pop("output_text", None)
            return library.test.TestModel(custom_output_text=None if said is None else str(said)), settings
        if spec.model not in self._models:
            self._models[spec.model] = await asyncio.to_thread(self._find, library, spec.model)
        return self._models[spec.model], settings

    def _find(self, library: "_Library", name: str) -> "Model":
        try:
            found: Model = (self._model_named or library.models.infer_model)(name)
        except (
            Exception
        ) as error:  # the library raises UserError, ImportError, ValueError and its providers' own
            message = f"the model {name!r} can't be used: {excerpt(str(error), _MESSAGE)}"
            raise TargetFailure(Failing.NOT_STARTED, message) from error
        return found


@dataclass(frozen=True, slots=True)
class _Library:
    """The modules of pydantic-ai that are used here, once they are imported."""

    ai: Any
    errors: Any
    messages: Any
    models: Any
    test: Any
    usage: Any
    instrumentation: Any

    @staticmethod
    def load() -> "_Library":
        import importlib  # noqa: PLC0415 - everything lazy stands in this one function

        def module(name: str) -> ModuleType:
            return importlib.import_module(name)

        instrumented = module("pydantic_ai.models.instrumented")
        return _Library(
            ai=module("pydantic_ai"),
            errors=module("pydantic_ai.exceptions"),
            messages=module("pydantic_ai.messages"),
            models=module("pydantic_ai.models"),
            test=module("pydantic_ai.models.test"),
            usage=module("pydantic_ai.usage"),
            instrumentation=instrumented.InstrumentationSettings(
                include_content=False, include_binary_content=False
            ),
        )


def _history(library: _Library, messages: tuple[Message, ...]) -> list[Any]:
    said = library.messages
    return [
        said.ModelResponse(parts=[said.TextPart(message.content)])
        if message.role == "assistant"
        else said.ModelRequest(parts=[said.UserPromptPart(message.content)])
        for message in messages
    ]


def _names(invocation: Invocation) -> dict[str, object]:
    """What names this attempt and its effect, for whatever the library calls on the way (IDM-3)."""
    return {
        "gnomon.run_id": invocation.run_id,
        "gnomon.attempt": invocation.attempt,
        "gnomon.fence": invocation.fence,
        "gnomon.idempotency_key": invocation.idempotency_key,
        "gnomon.dedup_key": invocation.dedup_key or "",
    }


def _limits(library: _Library, limits: Limits) -> Any:
    cost = None if limits.cost is None else Decimal(str(limits.cost))
    return library.usage.UsageLimits(request_limit=limits.model_calls, cost_limit=cost)


def _used(usage: "RunUsage", refused: int = 0) -> Usage:
    cost = 0.0 if usage.cost is None else float(usage.cost)
    return Usage(usage.requests + refused, usage.input_tokens, usage.output_tokens, cost)


def _failure(library: _Library, error: Exception, usage: "RunUsage", limits: Limits) -> TargetFailure:
    """What an error of the library means for the run."""
    errors = library.errors
    if isinstance(error, errors.UsageLimitExceeded):
        if limits.cost is not None and usage.cost is not None and usage.cost > Decimal(str(limits.cost)):
            message = f"the model cost {usage.cost} dollars; the limit is {limits.cost:g}"
            return TargetFailure(Failing.COST_EXCEEDED, message, usage=_used(usage))
        message = f"the model wanted more than the {limits.model_calls} calls allowed"
        return TargetFailure(Failing.MODEL_CALLS_EXCEEDED, message, usage=_used(usage))
    refused = isinstance(error, errors.ModelAPIError)
    status = getattr(error, "status_code", None)
    why = excerpt(str(error), _MESSAGE)
    return TargetFailure(
        Failing.MODEL_ERROR,
        f"the model failed: {why}" if status is None else f"the provider answered {status}: {why}",
        retryable=_is_passing(errors, error, status),
        retry_after=getattr(error, "retry_after", None),
        usage=_used(usage, 1 if refused else 0),
    )


def _is_passing(errors: Any, error: Exception, status: int | None) -> bool:
    """Whether the same request may succeed later. Used-up credit says 429 too, and will not pass by waiting."""
    if isinstance(error, errors.ModelQuotaExceededError | errors.ModelRequestRejectedError):
        return False
    if status is not None:
        return status in _TRIED_AGAIN or status >= 500
    return isinstance(
        error,
        errors.ModelConnectionError
        | errors.ModelRateLimitError
        | errors.ModelServerError
        | errors.ModelUnavailableError
        | errors.ModelRequestTimeout,
    )
