"""Which engine the address of a database names: it is made, migrated and opened here, and its wakeups are joined to it."""

from collections.abc import Callable
from functools import partial

from gnomon.adapters.clock import SystemClock
from gnomon.ports.clock import Clock
from gnomon.services.announcer import Announcer
from gnomon.services.signal import Signal
from gnomon.settings import Settings
from gnomon.stores.database import Database
from gnomon.stores.migrations import Migration
from gnomon.stores.sqlite import opening as sqlite_opening
from gnomon.stores.sqlite.database import SqliteDatabase


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


async def migrate(settings: Settings) -> list[str]:
    """Make the database or bring it up to date; the names of the migrations that were applied.

    Raises:
        UnusableDatabase, Unavailable: as ``open_center``.
    """
    done = await prepare(settings, SystemClock())
    return [f"{migration.number:04d}_{migration.name}" for migration in done]


async def is_made(settings: Settings) -> bool:
    """Whether there is a database of ours, looked at without changing anything.

    Raises:
        Unavailable: its server can't be reached.
    """
    if not settings.is_postgres:
        return settings.database_path.exists()
    from gnomon.stores.postgres import opening  # noqa: PLC0415 - as in open_link

    return bool(await opening.applied(settings.database_url))


async def prepare(settings: Settings, clock: Clock) -> list[Migration]:
    """Make the database, or bring it up to date; the migrations that were applied."""
    if not settings.is_postgres:
        return sqlite_opening.prepare(settings.database_path, clock)
    from gnomon.stores.postgres import opening  # noqa: PLC0415 - as in open_link

    return await opening.prepare(settings.database_url)


def open_link(settings: Settings, clock: Clock) -> Link:
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
        on_heard=lambda news: signal.wake(news),  # noqa: PLW0108 - made after this
    )
    signal = Signal(announcer.announce)
    return Link(PostgresDatabase(settings.database_url, clock), signal, announcer)
