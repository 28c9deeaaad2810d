"""A granted claim: one run that this process may work on, with everything it needs to do so (RUN-4, RUN-6)."""

from dataclasses import dataclass, field

from gnomon.domain.agent import Agent
from gnomon.domain.retry import RetryPolicy
from gnomon.domain.run import Trigger
from gnomon.domain.schedule import OnLost
from gnomon.domain.target import Target
from gnomon.domain.team import Team


@dataclass(frozen=True, slots=True)
class Resolved:
    """A target as it stood when the run was claimed: an agent, or a team with its agents by id and slug."""

    target: Target
    agent: Agent | None = None
    team: Team | None = None
    agents: dict[str, Agent] = field(default_factory=dict)


@dataclass(slots=True)  # not frozen: one is made for each run, and freezing triples the cost
class Grant:
    """One claim. ``fence`` is its proof; ``taken_at`` the monotonic instant before the claim was asked for.

    ``nominal_fire_at`` is in microseconds; the lease lasts ``lease_seconds`` from the claim and is renewed.
    """

    run_id: str
    trigger: Trigger
    resolved: Resolved
    schedule_id: str | None
    nominal_fire_at: int | None
    session_id: str
    continues_session: bool
    query: str
    fence: int
    attempt: int
    lease_seconds: int
    timeout_seconds: int
    retry: RetryPolicy
    on_lost: OnLost
    dedup_key: str | None
    trace_id: str
    half_done: bool
    parallel: bool  # others of its schedule may be unfinished beside it
    tells: bool  # its schedule learns of its end even where it ends well: a run may wait for it, a streak be over
    taken_at: float
