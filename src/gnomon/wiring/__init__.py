"""The composition root: settings in, one process of the product out.

Builds stores, adapters, services and edges and hands each what it needs; decides nothing else.
"""

import os
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING

from gnomon.adapters.clock import SystemClock, SystemEntropy
from gnomon.adapters.failpoints import Failpoints
from gnomon.domain.failpoint import parse as parse_failpoints
from gnomon.edges.http.services import Services
from gnomon.edges.mcp.services import Services as ToolServices
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.runtimes.table import RuntimeTable, runtime_table
from gnomon.runtimes.warden import kill
from gnomon.services import dedup
from gnomon.services.agenda import Agenda, Chore, next_pause_end, pause_over
from gnomon.services.connections import Connections
from gnomon.services.engine import Engine, Pace
from gnomon.services.job_engine import JobEngine
from gnomon.services.loop import Errand
from gnomon.services.mint import Mint
from gnomon.services.pausing import Pausing
from gnomon.services.questions import Questions
from gnomon.services.retention import Keep, Retention
from gnomon.services.task_sweep import TaskSweep
from gnomon.services.verify import Verify
from gnomon.settings import Settings
from gnomon.wiring.center import Center
from gnomon.wiring.databases import Link, is_made, migrate, open_link, prepare
from gnomon.wiring.mcp import tool_services
from gnomon.wiring.parts import Parts, Pushed
from gnomon.wiring.pushed import build_pushed
from gnomon.wiring.services import build_services

if TYPE_CHECKING:
    from fastapi import FastAPI

    from gnomon.edges.mcp.door import Door

__all__ = ["VERSION", "Center", "is_made", "migrate", "open_center"]
VERSION = version("gnomon")


async def open_center(
    settings: Settings,
    *,
    dispatch: bool | None = None,
    work: bool | None = None,
    operator_token: str | None = None,
    whole: bool = True,
) -> Center:
    """Open (or make) and migrate the database and build everything over it; nothing ticks yet.

    ``dispatch`` and ``work`` win over the settings. ``operator_token`` is accepted by the app as a key that may do
    everything: for the command line, which has the database itself. The app that is not ``whole`` is for it too: each
    part is there when it is asked for, and none for connections from outside.

    Raises:
        UnusableDatabase: with what is wrong with the database and what to do; it was not touched.
        Unavailable: it can't be reached.
    """
    if settings.failpoints:
        failpoints.arm(Failpoints(parse_failpoints(settings.failpoints)))
    clock, entropy = SystemClock(), SystemEntropy()
    await prepare(settings, clock)
    link = open_link(settings, clock)
    database, mint, signal = link.database, Mint(clock, entropy), link.signal
    pace = _pace(settings)
    dispatches = settings.dispatches if dispatch is None else dispatch
    works = settings.works if work is None else work
    runtimes = _runtimes(settings, clock, pace) if works else RuntimeTable({})
    pausing = Pausing(database=database, signal=signal)
    board = _board(settings, link, lambda: engine)
    process_id = mint.process()
    agenda = Agenda(database, clock, process_id, pace.tick_seconds)
    pushed = build_pushed(settings, link, mint, clock, runtimes, process_id, agenda, lambda: engine)
    job_engine = _jobs(settings, link, mint, pushed.connections, process_id, lambda: engine)
    engine = Engine(
        database=database,
        clock=clock,
        mint=mint,
        signal=signal,
        runtimes=runtimes,
        process_id=process_id,
        version=VERSION,
        kill_group=kill,
        pace=pace,
        dispatch=dispatches,
        work=works,
        chores=(
            *_sweeping(agenda, pausing, board, pushed, job_engine),
            *_cleaning(settings, link, lambda: engine),
        ),
        errands=(*pushed.errands, *_errands(job_engine, pausing, pace, dispatches=dispatches)),
        agenda=agenda,
    )
    parts = Parts(
        settings, clock, entropy, mint, link, engine, pausing, pushed, job_engine, dispatches=dispatches
    )
    services = build_services(parts, operator_token)
    tools = tool_services(services, Questions(database, mint, signal))
    return Center(
        build_app=lambda: _app(parts, services, tools, board, whole=whole),
        services=services,
        tools=tools,
        engine=engine,
        runtimes=runtimes,
        link=link,
        verify=Verify(database, gapless=not settings.is_postgres),  # a sequence skips what was rolled back
    )


def _board(settings: Settings, link: Link, engine: Callable[[], Engine]) -> TaskSweep:
    """The sweep over the board; ``engine`` is made after it."""
    return TaskSweep(
        link.database,
        link.signal,
        heartbeat_timeout_seconds=settings.heartbeat_timeout_seconds,
        calm_us=lambda: engine().guard.calm_us(),  # noqa: PLW0108 - it is not there yet
        jumped=lambda tx: engine().watchdog.ask_guard(tx),  # noqa: PLW0108 - likewise
    )


def _jobs(  # noqa: PLR0917 - the parts of a process, each of its own kind
    settings: Settings,
    link: Link,
    mint: Mint,
    connections: Connections,
    process_id: str,
    engine: Callable[[], Engine],
) -> JobEngine:
    """Pushed jobs; ``engine`` is made after it."""
    return JobEngine(
        database=link.database,
        connections=connections,
        mint=mint,
        signal=link.signal,
        process_id=process_id,
        heartbeat_timeout_seconds=settings.heartbeat_timeout_seconds,
        may_claim=lambda: engine().renewal.alive(),  # noqa: PLW0108 - it is not there yet
        calm_us=lambda: engine().guard.calm_us(),  # noqa: PLW0108 - likewise
    )


def _errands(job_engine: JobEngine, pausing: Pausing, pace: Pace, *, dispatches: bool) -> tuple[Errand, ...]:
    """What fires beside the engine. A pause ends on time there: a slot right after it can't wait for a sweep."""
    jobs = job_engine.errands(pace.tick_seconds, dispatches=dispatches)
    if not dispatches:
        return jobs
    return *jobs, Errand("pauses", pausing.tick, pace.tick_seconds, begins=True, due_at=next_pause_end)


def _sweeping(
    agenda: Agenda, pausing: Pausing, board: TaskSweep, pushed: Pushed, job_engine: JobEngine
) -> tuple[Chore, ...]:
    """What takes from those who are gone, and ends pauses: each where there is something for it."""
    return (
        agenda.when(pause_over, pausing.resume_due),
        agenda.when(board.needed, board.tick),
        *pushed.chores,
        agenda.when(job_engine.sweep.needed, job_engine.sweep.tick),
    )


def _cleaning(settings: Settings, link: Link, engine: Callable[[], Engine]) -> tuple[Chore, ...]:
    """What deletes for its age."""
    keep = Keep(settings.history_days, settings.ledger_days, settings.audit_days)
    retention = Retention(link.database, keep, lambda: engine().guard.calm_us())  # noqa: PLW0108 - likewise
    return dedup.Cleaning(link.database).tick, retention.tick


def _app(
    parts: Parts, services: Services, tools: ToolServices, board: TaskSweep, *, whole: bool
) -> "tuple[FastAPI, Door | None]":
    from gnomon.wiring.http import build_http  # noqa: PLC0415 - half of a start, for those who answer HTTP

    return build_http(parts, services, tools, board, version=VERSION, whole=whole)


def _runtimes(settings: Settings, clock: Clock, pace: Pace) -> RuntimeTable:
    return runtime_table(
        clock,
        allow_private=settings.allow_private_targets,
        grace_seconds=pace.kill_grace_seconds / 2,
        search=os.getcwd(),  # noqa: PTH109 - a search path is a list of texts
    )


def _pace(settings: Settings) -> Pace:
    return Pace(
        tick_seconds=settings.tick_seconds,
        sweep_seconds=settings.sweep_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        heartbeat_timeout_seconds=settings.heartbeat_timeout_seconds,
        concurrency=settings.concurrency,
        shutdown_grace_seconds=settings.shutdown_grace_seconds,
    )
