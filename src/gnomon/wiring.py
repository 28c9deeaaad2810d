"""The composition root: settings in, one process of the product out.

Builds stores, adapters, services and edges and hands each what it needs; decides nothing else.
"""

import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib.metadata import version

import structlog
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from gnomon.adapters.clock import SystemClock, SystemEntropy
from gnomon.adapters.failpoints import Failpoints
from gnomon.adapters.metrics import ProcessCollector
from gnomon.cadence import zone_data_version
from gnomon.domain.agent import RuntimeSpec
from gnomon.domain.errors import Fault, Unavailable
from gnomon.domain.failpoint import parse as parse_failpoints
from gnomon.edges.http.app import build_app
from gnomon.edges.http.services import Check, Services
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.runtimes.checks import check_runtime
from gnomon.runtimes.table import RuntimeTable, runtime_table
from gnomon.runtimes.warden import kill
from gnomon.services import dedup
from gnomon.services.agents import Agents
from gnomon.services.announcer import Announcer
from gnomon.services.api_keys import ApiKeys
from gnomon.services.apply import Apply
from gnomon.services.apply_parts import all_parts
from gnomon.services.audit_log import AuditLog
from gnomon.services.calendars import Calendars
from gnomon.services.engine import Engine, Pace
from gnomon.services.explain import Explain
from gnomon.services.gates import Gates
from gnomon.services.health import Health
from gnomon.services.holidays import realign_users
from gnomon.services.mint import Mint
from gnomon.services.pausing import Pausing
from gnomon.services.previews import Previews
from gnomon.services.retention import Keep, Retention
from gnomon.services.run_now import RunNow
from gnomon.services.runs import Runs
from gnomon.services.schedules import Schedules
from gnomon.services.sessions import Sessions
from gnomon.services.signal import Signal
from gnomon.services.teams import Teams
from gnomon.services.verify import Verify
from gnomon.settings import Settings, inventory
from gnomon.stores import migrations
from gnomon.stores.database import Database
from gnomon.stores.migrations import Migration
from gnomon.stores.sqlite import opening as sqlite_opening
from gnomon.stores.sqlite.database import SqliteDatabase

VERSION = version("gnomon")
_log = structlog.get_logger()


class Link:
    """A database that was opened, and how this process is woken when another one has changed it."""

    def __init__(self, database: Database, signal: Signal, announcer: Announcer | None = None) -> None:
        self.database = database
        self.signal = signal
        self.announcer = announcer

    @property
    def hears(self) -> Callable[[], bool] | None:
        """Whether others are heard right now; ``None`` where each look at the database is enough for that."""
        announcer = self.announcer
        return None if announcer is None else lambda: announcer.connected

    def listen(self) -> None:
        """Hear other processes from now on."""
        if self.announcer is not None:
            self.announcer.start()

    async def close(self) -> None:
        """Tell the others what is still to be told, and close the database."""
        if self.announcer is not None:
            await self.announcer.stop()
        await self.database.close()


class Center:
    """One process of the product over one database: the app, the services behind it, the engine that ticks."""

    def __init__(
        self,
        *,
        app: FastAPI,
        services: Services,
        engine: Engine,
        runtimes: RuntimeTable,
        link: Link,
        verify: Verify,
    ) -> None:
        self.app = app
        self.services = services
        self.engine = engine
        self.verify = verify
        self._runtimes = runtimes
        self._link = link

    @property
    def process_id(self) -> str:
        """The random id of this start of this process (RUN-5a)."""
        return self.engine.process_id

    async def start(self) -> None:
        """Start the loops: after the sockets listen (DSP-1)."""
        self._link.listen()
        await self.engine.start()

    async def drain(self) -> None:
        """Stop claiming and let runs finish, within the grace of the settings (DSP-10)."""
        await self.engine.drain()

    async def stop(self) -> None:
        """Stop what is left, heartbeat last, and close the database."""
        try:
            await self.engine.stop()
        except (
            Unavailable
        ) as error:  # others take the heartbeat's silence for the word that could not be written
            _log.warning("stopped_without_a_word", error=error.message)
        finally:
            await self._runtimes.close()
            await self._link.close()


async def open_center(
    settings: Settings,
    *,
    dispatch: bool | None = None,
    work: bool | None = None,
    operator_token: str | None = None,
) -> Center:
    """Open (or make) and migrate the database and build everything over it; nothing ticks yet.

    ``dispatch`` and ``work`` win over the settings. ``operator_token`` is accepted by the app as a key that may do
    everything: for the command line, which has the database itself.

    Raises:
        UnusableDatabase: with what is wrong with the database and what to do; it was not touched.
        Unavailable: it can't be reached.
    """
    if settings.failpoints:
        failpoints.arm(Failpoints(parse_failpoints(settings.failpoints)))
    clock, entropy = SystemClock(), SystemEntropy()
    await _prepare(settings, clock)
    link = _link(settings, clock)
    database, mint, signal = link.database, Mint(clock, entropy), link.signal
    pace = _pace(settings)
    dispatches = settings.dispatches if dispatch is None else dispatch
    works = settings.works if work is None else work
    runtimes = runtime_table(
        clock,
        allow_private=settings.allow_private_targets,
        grace_seconds=pace.kill_grace_seconds / 2,
        search=os.getcwd(),  # noqa: PTH109 - a search path is a list of texts
    )
    keep = Keep(settings.history_days, settings.ledger_days, settings.audit_days)
    retention = Retention(database, keep, lambda: engine.guard.calm_us())  # noqa: PLW0108 - made after this
    pausing = Pausing(database=database, signal=signal)
    engine = Engine(
        database=database,
        clock=clock,
        mint=mint,
        signal=signal,
        runtimes=runtimes,
        process_id=mint.process(),
        version=VERSION,
        kill_group=kill,
        pace=pace,
        dispatch=dispatches,
        work=works,
        chores=(pausing.resume_due, dedup.Cleaning(database).tick, retention.tick),
    )
    health = Health(
        database=database,
        clock=clock,
        tick_seconds=settings.tick_seconds,
        dispatches=dispatches,
        last_tick=engine.last_tick,
        zone_data=zone_data_version(),
        migration=migrations.load("sqlite")[-1].number,
        hears=link.hears,
    )

    async def readiness() -> list[Check]:
        return [Check(vital.name, vital.ok, vital.detail) for vital in await health.vitals()]

    def check(spec: RuntimeSpec) -> list[Fault]:
        return check_runtime(spec, allow_private=settings.allow_private_targets)

    schedules = Schedules(database=database, mint=mint, signal=signal)
    agents = Agents(database, clock, mint, entropy, signal, check_runtime=check)
    teams = Teams(database, clock, mint, signal)
    calendars = Calendars(database, clock, mint, signal, on_changed=realign_users)
    services = Services(
        agents=agents,
        teams=teams,
        calendars=calendars,
        api_keys=ApiKeys(database, clock, mint, entropy, operator_token=operator_token),
        sessions=Sessions(database),
        audit_log=AuditLog(database),
        previews=Previews(database),
        schedules=schedules,
        pausing=pausing,
        run_now=RunNow(database=database, mint=mint, signal=signal, gates=Gates()),
        runs=Runs(database=database, signal=signal, closing=engine.closing),
        explain=Explain(database=database),
        apply=Apply(
            database=database,
            signal=signal,
            parts=all_parts(
                calendar_service=calendars,
                agent_service=agents,
                team_service=teams,
                schedule_service=schedules,
            ),
        ),
        settings=lambda: [asdict(entry) for entry in inventory(settings)],
        readiness=readiness,
    )
    registry = CollectorRegistry()
    registry.register(ProcessCollector(engine.counts))
    app = build_app(services, clock=clock, entropy=entropy, version=VERSION, registry=registry)
    verify = Verify(database, gapless=not settings.is_postgres)  # a sequence skips what was rolled back
    return Center(app=app, services=services, engine=engine, runtimes=runtimes, link=link, verify=verify)


async def migrate(settings: Settings) -> list[str]:
    """Make the database or bring it up to date; the names of the migrations that were applied.

    Raises:
        UnusableDatabase, Unavailable: as ``open_center``.
    """
    done = await _prepare(settings, SystemClock())
    return [f"{migration.number:04d}_{migration.name}" for migration in done]


async def is_made(settings: Settings) -> bool:
    """Whether there is a database of ours, looked at without changing anything.

    Raises:
        Unavailable: its server can't be reached.
    """
    if not settings.is_postgres:
        return settings.database_path.exists()
    from gnomon.stores.postgres import opening  # noqa: PLC0415 - as in _link

    return bool(await opening.applied(settings.database_url))


async def _prepare(settings: Settings, clock: Clock) -> list[Migration]:
    if not settings.is_postgres:
        return sqlite_opening.prepare(settings.database_path, clock)
    from gnomon.stores.postgres import opening  # noqa: PLC0415 - as in _link

    return await opening.prepare(settings.database_url)


def _link(settings: Settings, clock: Clock) -> Link:
    """The engine that the address names. SQLite's processes see each other's commits by themselves (ADR 0018)."""
    if not settings.is_postgres:
        return Link(SqliteDatabase(settings.database_path, clock), Signal())
    # Commands on a file shall not pay for a driver that they don't use.
    from gnomon.stores.postgres.address import parse  # noqa: PLC0415
    from gnomon.stores.postgres.database import PostgresDatabase  # noqa: PLC0415
    from gnomon.stores.postgres.line import open_line  # noqa: PLC0415

    address = parse(settings.database_url)
    announcer = Announcer(
        partial(open_line, address.dsn, address.schema),
        clock,
        on_heard=lambda: signal.wake(),  # noqa: PLW0108 - made after this
    )
    signal = Signal(announcer.announce)
    return Link(PostgresDatabase(settings.database_url, clock), signal, announcer)


def _pace(settings: Settings) -> Pace:
    return Pace(
        tick_seconds=settings.tick_seconds,
        sweep_seconds=settings.sweep_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        heartbeat_timeout_seconds=settings.heartbeat_timeout_seconds,
        concurrency=settings.concurrency,
        shutdown_grace_seconds=settings.shutdown_grace_seconds,
    )
