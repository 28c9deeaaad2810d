"""Whatever an instance hears, in whatever order: no push is begun twice, and none before it was acknowledged (JOB-4)."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gnomon.client.frames import Outcome
from gnomon.client.session import End, Send, Session, Start, Work

TRIGGERS, RUNS, FENCES = ("trg_1", "trg_2"), ("run_1", "run_2"), (1, 2, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("trigger"), st.sampled_from(TRIGGERS), st.just(0)),
        st.tuples(st.just("run"), st.sampled_from(RUNS), st.sampled_from(FENCES)),
        st.tuples(st.just("cancel"), st.sampled_from(RUNS), st.sampled_from(FENCES)),
        st.tuples(st.just("end"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("lost_ack"), st.just(""), st.just(0)),
        st.tuples(st.just("reconnect"), st.just(""), st.just(0)),
    ),
    max_size=40,
)


def frame(kind: str, name: str, fence: int) -> dict[str, Any]:
    at = "2026-11-30T09:00:00Z"
    if kind == "trigger":
        return {"type": "job_trigger", "trigger_id": name, "job": "j", "nominal_at": at, "dedup_key": name}
    if kind == "cancel":
        return {"type": "cancel", "run_id": name, "fence": fence}
    asked = {"idempotency_key": name, "query": "", "deadline": at}
    return {"type": "run_trigger", "run_id": name, "fence": fence, **asked}


class Lived:
    """A session, and what came of it."""

    def __init__(self) -> None:
        self.session = Session("pm", "pm-1", 2, "test")
        self.session.welcomed(0)
        self.begun: Counter[tuple[str, int | None]] = Counter()
        self.at_work: list[Work] = []
        self.results: Counter[tuple[str, int | None]] = Counter()

    def do(self, now: float, kind: str, name: Any, fence: int) -> None:
        if kind == "end":
            if self.at_work:
                work = self.at_work.pop(name % len(self.at_work))
                self._take(self.session.ended(work, Outcome("succeeded"), now))
        elif kind == "reconnect":
            self.session.disconnected()
            self._take(self.session.welcomed(now))
        elif kind == "lost_ack":
            pushed = self.session.heard(frame("trigger", "trg_lost", 0), now)
            for deed in pushed:
                if isinstance(deed, Start):
                    self.session.unsent(deed.work)
        else:
            self._take(self.session.heard(frame(kind, name, fence), now))

    def _take(self, deeds: list[Any]) -> None:
        acknowledged = False
        for deed in deeds:
            match deed:
                case Send(said):
                    acknowledged |= said["type"] in {"ack", "run_ack"}
                    if said["type"] in {"result", "run_result"}:
                        self.results[said.get("run_id") or said["trigger_id"], said.get("fence")] += 1
                case Start(work):
                    assert acknowledged, "begun before it was acknowledged"
                    self.begun[work.key, work.fence] += 1
                    self.at_work.append(work)
                case End(work, _):
                    assert work in self.at_work


@given(STEPS)
def test_no_push_is_begun_twice(steps: list[tuple[str, Any, int]]) -> None:
    """JOB-4, RUN-6."""
    lived = Lived()
    for now, step in enumerate(steps):
        lived.do(now, *step)
    assert all(count == 1 for count in lived.begun.values())
    assert set(lived.results) <= set(lived.begun), "a result of what was never begun"


@given(STEPS)
def test_what_is_at_work_is_told_and_nothing_else(steps: list[tuple[str, Any, int]]) -> None:
    """JOB-5: a hello says what goes on."""
    lived = Lived()
    for now, step in enumerate(steps):
        lived.do(now, *step)
    told = {
        (each.get("run_id") or each["trigger_id"], each.get("fence"))
        for each in lived.session.hello()["in_flight"]
    }
    newest = {work.key: work for work in lived.at_work}
    assert told == {(work.key, work.fence) for work in newest.values()}


@given(STEPS)
def test_of_two_attempts_of_a_run_the_higher_fence_is_at_work(steps: list[tuple[str, Any, int]]) -> None:
    """RUN-6."""
    lived = Lived()
    for now, step in enumerate(steps):
        lived.do(now, *step)
        for run in RUNS:
            begun = [fence for key, fence in lived.begun if key == run]
            working = [work.fence for work in lived.session.in_flight if work.key == run]
            assert working in ([], [max((fence or 0 for fence in begun), default=0)])
