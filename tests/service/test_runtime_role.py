"""The runtime ``role``: what it sends, how long it is patient, what an end means for the attempt (TGT-1)."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from gnomon.domain.agent import RoleRuntime
from gnomon.domain.invocation import Failing, Invocation, Limits, Message, Result, TargetFailure, Usage
from gnomon.domain.push import PushEnd, PushKey, PushStatus
from gnomon.runtimes.role import RoleTargets
from gnomon.testing.clock import FrozenClock
from support.databases import START
from support.targets import Heard

pytestmark = pytest.mark.anyio
INVOCATION = Invocation(
    "run_1",
    2,
    7,
    "run_1",
    "go",
    START + timedelta(seconds=300),
    dedup_key="nightly",
    session_id="ses_1",
    messages=(Message("user", "before"),),
    limits=Limits(cost=2.0),
)


class Hands:
    """Whoever pushes: a port, of which this is the other side."""

    def __init__(self, end: PushEnd) -> None:
        self.end = end
        self.asked: list[tuple[PushKey, str, Mapping[str, Any], float]] = []

    async def do(
        self,
        key: PushKey,
        role: str,
        frame: Mapping[str, Any],
        patience_seconds: float,
        on_usage: Callable[[Usage], None],
    ) -> PushEnd:
        self.asked.append((key, role, frame, patience_seconds))
        on_usage(Usage(1))
        return self.end


async def invoke(end: PushEnd, clock: FrozenClock, invocation: Invocation = INVOCATION) -> tuple[Any, Hands]:
    hands = Hands(end)
    found = await RoleTargets(hands, clock).invoke(RoleRuntime("pm"), None, invocation, Heard())
    return found, hands


KEY = PushKey("run_1", "", 7)


async def test_it_sends_what_every_target_gets(clock: FrozenClock) -> None:
    """CONTRACT, "What a target gets"."""
    found, hands = await invoke(PushEnd(KEY, PushStatus.SUCCEEDED, "done", Usage(2)), clock)
    assert found == Result("done", Usage(2))
    ((key, role, frame, patience),) = hands.asked
    assert (key, role, patience) == (KEY, "pm", 299.0)
    assert frame["type"] == "run_trigger"
    assert (frame["run_id"], frame["fence"], frame["attempt"], frame["query"]) == ("run_1", 7, 2, "go")
    assert (frame["idempotency_key"], frame["dedup_key"], frame["session_id"]) == (
        "run_1",
        "nightly",
        "ses_1",
    )
    assert frame["messages"] == [{"role": "user", "content": "before"}]
    assert frame["limits"] == {"cost": 2.0}
    assert frame["deadline"] == "2026-11-29T09:05:00Z"


async def test_a_node_travels_under_a_name_of_its_own(clock: FrozenClock) -> None:
    """TGT-3."""
    node = Invocation("run_1", 1, 7, "run_1/draft", "go", START + timedelta(seconds=2))
    _, hands = await invoke(PushEnd(KEY, PushStatus.SUCCEEDED), clock, node)
    ((key, _, frame, patience),) = hands.asked
    assert (key, frame["run_id"]) == (PushKey("run_1", "draft", 7), "run_1/draft")
    assert patience == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("code", "retryable", "failing"),
    [
        ("no_instance", True, Failing.NO_INSTANCE),
        ("unreachable", True, Failing.UNREACHABLE),
        ("reported", False, Failing.REPORTED),
        (None, False, Failing.UNREACHABLE),
    ],
)
async def test_a_failure_is_the_attempt_s(
    clock: FrozenClock, code: str | None, retryable: bool, failing: Failing
) -> None:
    """RUN-9: with what was spent."""
    end = PushEnd(KEY, PushStatus.FAILED, None, Usage(3), code, "why", retryable)
    with pytest.raises(TargetFailure, match="why") as caught:
        await invoke(end, clock)
    failure = caught.value
    assert (failure.code, failure.retryable, failure.usage) == (failing, retryable, Usage(3))
