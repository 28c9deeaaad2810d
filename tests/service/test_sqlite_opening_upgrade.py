"""How a file is brought up to date: whole steps, by one of any number of processes, whatever dies (OPS-3)."""

import signal
from pathlib import Path

import apsw
import pytest

from gnomon.domain.errors import Unavailable, UnusableDatabase
from gnomon.stores import migrations
from gnomon.stores.migrations import Migration
from gnomon.stores.sqlite import opening
from gnomon.stores.sqlite.opening import APPLICATION_ID, applied, prepare
from gnomon.testing.clock import FrozenClock
from support import programs


def folder(path: Path) -> dict[str, bytes | None]:
    """Every file under a folder, byte for byte."""
    return {str(file): file.read_bytes() if file.is_file() else None for file in sorted(path.rglob("*"))}


def tables(path: Path) -> set[str]:
    raw = apsw.Connection(str(path))
    try:
        return {row[0] for row in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    finally:
        raw.close()


def execute(path: Path, text: str) -> None:
    raw = apsw.Connection(str(path))
    try:
        raw.execute(text).fetchall()
    finally:
        raw.close()


@pytest.mark.parametrize("start", ["nothing", "an empty file", "an empty database"])
def test_a_new_database_is_ours_and_has_every_migration(
    tmp_path: Path, clock: FrozenClock, start: str
) -> None:
    """OPS-1, OPS-3."""
    path = tmp_path / "gnomon.db"
    if start == "an empty file":
        path.touch()
    elif start == "an empty database":
        execute(path, "PRAGMA user_version=1; VACUUM")
        assert path.stat().st_size > 0
    prepare(path, clock)
    raw = apsw.Connection(str(path))
    assert raw.execute("PRAGMA application_id").get == APPLICATION_ID
    assert raw.execute("PRAGMA journal_mode").get == "wal"
    raw.close()
    known = migrations.load("sqlite")
    assert applied(path) == {migration.number: migration.checksum for migration in known}
    assert list(folder(tmp_path)) == [str(path)]


def test_opening_it_again_changes_nothing(tmp_path: Path, clock: FrozenClock) -> None:
    """OPS-3: safe to repeat."""
    path = tmp_path / "gnomon.db"
    prepare(path, clock)
    before = folder(tmp_path)
    prepare(path, clock)
    assert folder(tmp_path) == before


MORE = Migration(2, "more", "CREATE TABLE more (a INTEGER) STRICT", "y")


def test_a_migration_that_fails_leaves_all_before_it_and_nothing_of_itself(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-3: resumable; what was done stays, what was half done is gone, the next start goes on."""
    real = migrations.load("sqlite")[:1]
    text = "CREATE TABLE more (a INTEGER) STRICT; CREATE TABLE more (a INTEGER) STRICT;"
    monkeypatch.setattr(migrations, "load", lambda _: [*real, Migration(2, "more", text, "y")])
    path = tmp_path / "gnomon.db"
    with pytest.raises((Unavailable, apsw.Error)):
        prepare(path, clock)
    assert set(applied(path)) == {1}
    assert "more" not in tables(path)
    monkeypatch.setattr(migrations, "load", lambda _: [*real, MORE])
    prepare(path, clock)
    assert set(applied(path)) == {1, 2}
    assert "more" in tables(path)


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from gnomon.stores.sqlite.opening import prepare
    from gnomon.testing.clock import FrozenClock
    from support.databases import START

    class Deadly(FrozenClock):
        "Is asked for the instant by the very last statement of a migration."
        def micros(self):
            os.kill(os.getpid(), signal.SIGKILL)

    prepare(Path(sys.argv[1]), Deadly(START))
"""


@pytest.mark.process
def test_a_process_killed_in_the_middle_of_a_migration_leaves_nothing_of_it(
    tmp_path: Path, clock: FrozenClock
) -> None:
    """OPS-3, PRF-1: every table was made and nothing was committed when the process died."""
    path = tmp_path / "gnomon.db"
    assert programs.run(KILLED, path).returncode == -signal.SIGKILL
    assert path.exists()
    assert tables(path) == set()
    prepare(path, clock)
    assert {"runs", "schedules", "migrations"} <= tables(path)
    assert set(applied(path)) == {migration.number for migration in migrations.load("sqlite")}


TOGETHER = """
    import sys
    from pathlib import Path
    from gnomon.adapters.clock import SystemClock
    from gnomon.stores.sqlite.opening import applied, prepare

    path = Path(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    prepare(path, SystemClock())
    print(sorted(applied(path)))
"""


@pytest.mark.process
@pytest.mark.parametrize("attempt", range(3))
def test_processes_that_start_at_once_migrate_it_once(tmp_path: Path, attempt: int) -> None:
    """OPS-3: real processes on one new file; each finds it ready, and each step was taken once."""
    path = tmp_path / "gnomon.db"
    numbers = sorted(migration.number for migration in migrations.load("sqlite"))
    assert programs.race(TOGETHER, *[[path]] * 4) == [f"{numbers}\n"] * 4
    assert "runs" in tables(path)


def test_the_program_s_sqlite_is_new_enough() -> None:
    """OPS-1: before 3.51.3 a WAL reset could lose committed transactions."""
    assert apsw.SQLITE_VERSION_NUMBER >= 3_051_003


class Stubborn:
    """A connection whose file can't be switched: what ``rows`` answers is given."""

    def __init__(self, answers: list[str | Exception]) -> None:
        self.answers = answers

    def rows(self, text: str) -> list[tuple[str]]:
        assert text == "PRAGMA journal_mode=WAL"
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [(answer,)]


def switch(connection: Stubborn, clock: FrozenClock) -> None:
    opening._switch_to_wal(connection, clock)  # type: ignore[arg-type]


def test_a_file_system_without_shared_memory_is_refused(clock: FrozenClock) -> None:
    """OPS-1: SQLite stays in another mode without a word."""
    with pytest.raises(UnusableDatabase, match="write-ahead log"):
        switch(Stubborn(["delete"]), clock)


def test_the_switch_waits_for_others_but_not_for_ever(clock: FrozenClock) -> None:
    """OPS-3: two processes starting at once."""
    switch(Stubborn([apsw.BusyError("a"), apsw.BusyError("b"), "wal"]), clock)

    class Passing(FrozenClock):
        def boot(self) -> str | None:
            return None

        def monotonic(self) -> float:
            self.advance(6)
            return super().monotonic()

    with pytest.raises(apsw.BusyError):
        switch(Stubborn([apsw.BusyError("x")] * 9), Passing(clock.now()))
