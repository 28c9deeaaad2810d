"""Whether a file may be used as our database, and bringing it up to date: before any thread opens it.

What is refused is refused with the file untouched: a file that is not ours, one that is newer than the program, a
read-only one, one on a network file system (OPS-1).
"""

import os
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from threading import Event

import apsw

from gnomon.domain.errors import UnusableDatabase
from gnomon.ports.clock import Clock
from gnomon.stores import migrations
from gnomon.stores.database import Tx
from gnomon.stores.sqlite.connection import BUSY_SECONDS, Connection, open_connection, translated

APPLICATION_ID = 0x474E4F4D  # "GNOM"
_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ncpfs",
        "ceph",
        "glusterfs",
        "lustre",
        "fuse.sshfs",
    }
    | {"fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.davfs", "davfs", "beegfs", "gpfs"}
)
_VERSIONS = "SELECT number, checksum FROM migrations"
_TABLE = """CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"""


def prepare(path: Path, clock: Clock, *, mounts: str | None = None) -> list[migrations.Migration]:
    """Check ``path``, create the database if there is none, apply what is missing. Safe with two processes at once.

    Returns what this call applied itself. ``mounts`` is the text of the mount table, for tests.

    Raises:
        UnusableDatabase: with what is wrong and what to do; the file is as it was.
    """
    _refuse_network(path, mounts)
    if path.is_dir():
        raise UnusableDatabase(f"{path} is a directory. Name a file in it, such as {path}/gnomon.db.")
    if not path.parent.is_dir():
        raise UnusableDatabase(f"The folder {path.parent} does not exist. Create it, or choose another file.")
    folder = path.resolve().parent
    if not os.access(folder, os.W_OK):
        raise UnusableDatabase(
            f"The folder {folder} can't be written to: the journal lies beside the database. Change its owner or mode, or "
            "choose another.",
            code="read_only",
        )
    if path.exists() and path.stat().st_size:
        _inspect(path)
    return _migrate(path, clock)


def applied(path: Path) -> dict[int, str]:
    """Number and checksum of the migrations that a file has had, read without changing it."""
    raw = _peek(path)
    try:
        return {int(number): str(checksum) for number, checksum in raw.execute(_VERSIONS)}
    finally:
        raw.close()


def _peek(path: Path) -> apsw.Connection:
    """A connection that leaves the file and its folder as they are.

    A read-only one would leave an empty -wal behind where there was none, one that may write would finish what another
    program left unfinished: each is used where it does nothing.
    """
    unfinished = any(Path(f"{path.resolve()}{suffix}").exists() for suffix in ("-wal", "-journal"))
    raw = apsw.Connection(
        str(path), flags=apsw.SQLITE_OPEN_READONLY if unfinished else apsw.SQLITE_OPEN_READWRITE
    )
    raw.set_busy_timeout(round(BUSY_SECONDS * 1_000))
    return raw


def _inspect(path: Path) -> None:
    if not os.access(path, os.R_OK | os.W_OK):
        raise UnusableDatabase(
            f"{path} is read-only for this user. Change its owner or mode, or choose another file.",
            code="read_only",
        )
    try:
        raw = _peek(path)
        try:
            ours = raw.execute("PRAGMA application_id").get == APPLICATION_ID
            tables = raw.execute("SELECT count(*) FROM sqlite_schema").get
        finally:
            raw.close()
        if ours:
            migrations.pending(applied(path), migrations.load("sqlite"))
    except apsw.NotADBError as error:
        raise UnusableDatabase(
            f"{path} is not an SQLite database. Choose another file; this one was not touched.",
            code="not_our_database",
        ) from error
    except apsw.Error as error:
        raise UnusableDatabase(f"{path} can't be opened: {error}. It was not touched.") from error
    if not ours and tables:
        raise UnusableDatabase(
            f"{path} is an SQLite database of another program. Choose another file; this one was not touched.",
            code="not_our_database",
        )


def _refuse_network(path: Path, mounts: str | None) -> None:
    kind = file_system(path.resolve(), mounts)
    if kind in _NETWORK:
        raise UnusableDatabase(
            f"{path} lies on a network file system ({kind}), where SQLite's locks can't be trusted and work could run "
            "twice. Choose a local disk, or use PostgreSQL.",
            code="network_file_system",
        )


def file_system(path: Path, mounts: str | None = None) -> str | None:
    """The type of the file system that holds ``path``, by the mount table; ``None`` where there is no such table."""
    if mounts is None:
        table = Path("/proc/self/mounts")
        if not table.exists():
            return None
        mounts = table.read_text("utf-8", errors="replace")
    best, kind = -1, None
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) >= 3:
            point = Path(fields[1].replace("\\040", " "))
            # of two mounts on one point (an automounter's and the real one) the later one is seen
            if (path == point or point in path.parents) and len(point.parts) >= best:
                best, kind = len(point.parts), fields[2]
    return kind


def _migrate(path: Path, clock: Clock) -> list[migrations.Migration]:
    known = migrations.load("sqlite")
    try:
        raw = apsw.Connection(
            str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOMUTEX
        )
        raw.close()
        connection = open_connection(path, clock, {})
        try:
            _switch_to_wal(connection, clock)
            return [
                migration
                for migration in known
                if connection.transaction("BEGIN IMMEDIATE", _step(connection, known, migration))
            ]
        finally:
            connection.close()
    except apsw.Error as error:
        raise translated(error) from error


def _switch_to_wal(connection: Connection, clock: Clock) -> None:
    """Turn write-ahead logging on. SQLite answers busy at once here, without asking the busy handler."""
    began, never = clock.monotonic(), Event()
    while True:
        try:
            mode = connection.rows("PRAGMA journal_mode=WAL")[0][0]
        except apsw.BusyError:
            if clock.monotonic() - began > BUSY_SECONDS:
                raise
            never.wait(random.uniform(0.001, 0.01))  # noqa: S311 - spreads waiters, guards nothing
            continue
        if mode != "wal":
            raise UnusableDatabase(
                f"The file system can't hold a write-ahead log (SQLite stayed in mode {mode})."
            )
        return


def _step(
    connection: Connection, known: Sequence[migrations.Migration], migration: migrations.Migration
) -> Callable[[Tx], Awaitable[bool]]:
    """One migration inside its own transaction; false where another process was first."""

    async def work(_tx: Tx) -> bool:
        connection.script(_TABLE)
        if migration not in migrations.pending(dict(connection.rows(_VERSIONS)), known):
            return False
        connection.script(migration.text)
        connection.script(
            "INSERT INTO migrations (number, name, checksum, applied_at) VALUES "  # noqa: S608 - our own file names
            f"({migration.number}, '{migration.name}', '{migration.checksum}', now_us())"
        )
        connection.script(f"PRAGMA application_id={APPLICATION_ID}")
        return True

    return work
