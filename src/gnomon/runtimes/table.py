"""The table of runtimes: which adapter drives which kind of agent, and the limits that hold for all of them (TGT-5)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from gnomon.domain.agent import CommandRuntime, HttpRuntime, LlmRuntime, PythonRuntime, RuntimeSpec
from gnomon.domain.invocation import Deferred, Failing, Invocation, Limits, Result, TargetFailure
from gnomon.domain.limits import breach
from gnomon.ports.clock import Clock
from gnomon.ports.runtime import Reporter, Runtime
from gnomon.runtimes.answers import OUTPUT_BYTES
from gnomon.runtimes.command import CommandTargets
from gnomon.runtimes.llm import LlmTargets
from gnomon.runtimes.python import PythonTargets


class RuntimeTable:
    """``ports.runtime.Runtime`` for every kind that has an adapter."""

    def __init__(self, adapters: Mapping[type[RuntimeSpec], Runtime]) -> None:
        self._adapters = dict(adapters)

    def put(self, kind: type[RuntimeSpec], adapter: Runtime) -> None:
        """Drive a kind of agent through ``adapter`` from now on."""
        self._adapters[kind] = adapter

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """One attempt through the adapter of its kind. See ``ports.runtime.Runtime``.

        Raises:
            TargetFailure: as the adapter's; ``target_invalid`` where the kind has none in this process; the limit
                that a result is past.
        """
        adapter = self._adapters.get(type(spec))
        if adapter is None:
            message = f"no runtime for {type(spec).__name__} in this process"
            raise TargetFailure(Failing.TARGET_INVALID, message)
        result = await adapter.invoke(spec, secret, invocation, reporter)
        if isinstance(result, Result):
            failure = breach(result, _capped(invocation.limits))
            if failure is not None:
                raise failure
        return result

    async def close(self) -> None:
        """Close every adapter, each once."""
        for adapter in dict.fromkeys(self._adapters.values()):
            await adapter.close()


@lru_cache(maxsize=1_000)
def _capped(limits: Limits) -> Limits:
    """The limits with the cap on output that holds where an agent sets none, and above its own."""
    own = limits.output_bytes
    return replace(limits, output_bytes=OUTPUT_BYTES if own is None else min(own, OUTPUT_BYTES))


def runtime_table(
    clock: Clock, *, allow_private: bool, grace_seconds: float, search: str | None = None
) -> RuntimeTable:
    """The table of the kinds that need nothing but this machine; ``role`` is put in by whoever holds connections.

    ``allow_private`` lets http targets have private addresses; ``grace_seconds`` is a command's time between SIGTERM
    and SIGKILL; ``search`` is a directory that python targets are imported from.
    """
    from gnomon.runtimes.http import HttpTargets  # noqa: PLC0415 - a client's library, for those who work on runs

    return RuntimeTable(
        {
            HttpRuntime: HttpTargets(clock, allow_private=allow_private),
            CommandRuntime: CommandTargets(grace_seconds=grace_seconds),
            PythonRuntime: PythonTargets(search=search),
            LlmRuntime: LlmTargets(),
        }
    )
