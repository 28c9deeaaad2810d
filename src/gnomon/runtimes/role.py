"""Agents that are an instance of a role: a run is pushed to one that is connected, and answered over its socket (TGT-1).

What a push is and how it gets there is the affair of whoever fills ``ports.push.Hands``; this says what is sent, and what
its end means for the attempt.
"""

from typing import Any

from gnomon.domain.agent import RoleRuntime, RuntimeSpec
from gnomon.domain.invocation import Deferred, Failing, Invocation, Result, TargetFailure
from gnomon.domain.push import PushStatus, key_of
from gnomon.ports.clock import Clock
from gnomon.ports.push import Hands
from gnomon.ports.runtime import Reporter
from gnomon.runtimes.sending import fields_of

# An attempt that nobody took fails by itself, with the reason, this long before its deadline would end it without one.
SPARE_SECONDS = 1.0
_SPARE_SHARE = 0.1


class RoleTargets:
    """``ports.runtime.Runtime`` for ``RoleRuntime``."""

    def __init__(self, hands: Hands, clock: Clock) -> None:
        self._hands = hands
        self._clock = clock

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """Wait for an instance with room, until the deadline; then for its answer. See ``ports.runtime.Runtime``.

        Not acknowledged when its connection ends, the run goes to another instance under the same fence and key. Once
        it was acknowledged it goes to nobody else: the instance that is gone with it makes the attempt fail.
        """
        assert isinstance(spec, RoleRuntime)
        del secret
        key = key_of(invocation.idempotency_key, invocation.fence)
        left = (invocation.deadline - self._clock.now()).total_seconds()
        patience = left - min(SPARE_SECONDS, left * _SPARE_SHARE)
        end = await self._hands.do(key, spec.role, frame_of(invocation, spec.role), patience, reporter.usage)
        if end.status is PushStatus.SUCCEEDED:
            return Result(end.output or "", end.usage)
        code = Failing(end.error_code) if end.error_code else Failing.UNREACHABLE
        raise TargetFailure(
            code,
            end.error or "The run was withdrawn from the instance that worked on it.",
            retryable=end.retryable,
            usage=end.usage,
        )

    async def close(self) -> None:
        """Nothing is held here."""


def frame_of(invocation: Invocation, role: str) -> dict[str, Any]:
    """The ``run_trigger`` of an attempt. Its ``run_id`` names one push: that of a team's node ends in the node's id."""
    limits = invocation.limits
    bounds = {
        name: value
        for name, value in (
            ("output_bytes", limits.output_bytes),
            ("model_calls", limits.model_calls),
            ("cost", limits.cost),
        )
        if value is not None
    }
    return {
        "type": "run_trigger",
        **fields_of(invocation),
        "run_id": invocation.idempotency_key,
        "role": role,
        "limits": bounds,
        "traceparent": invocation.traceparent,
    }
