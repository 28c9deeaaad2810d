"""A primary and its synchronous standby from the wheel's programs: what is acknowledged is on both."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gnomon.adapters.postgres_folder import ENVIRONMENT, PostgresFolder
from gnomon.adapters.postgres_server import PostgresServer
from support.postgres_life import Life, ask
from support.processes import until

STANDBY = "standby"


class Pair:
    """Two servers, of which one follows the other and can take its place."""

    def __init__(self, primary: PostgresServer, standby: PostgresServer) -> None:
        self.primary = primary
        self.standby = standby
        self.life = Life(primary)

    def database(self, name: str) -> str:
        """An empty database on both; its address, which names both hosts and asks for the primary."""
        url = self.life.database(name)
        login, _, rest = url.rpartition("@")
        host = self.standby.url.rpartition("@")[2].rpartition("/")[0]
        place, _, name = rest.partition("/")
        return f"{login}@{place},{host}/{name}?target_session_attrs=primary"

    def wait_in_step(self) -> None:
        """Let every commit wait for the standby from now on."""
        self.life.do(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
        self.life.do("SELECT pg_reload_conf()")
        synchronous = "SELECT sync_state FROM pg_stat_replication"
        until(lambda: ask(self.primary.url, synchronous) == [("sync",)], "the standby is synchronous")

    def lose_primary(self) -> None:
        """Kill it as a power cut would."""
        self.primary.stop(at_once=True)

    def promote(self) -> None:
        """The standby is the primary from now on."""
        assert ask(self.standby.url, "SELECT pg_promote(true, 30)") == [(True,)]


def _copy(primary: PostgresServer, home: Path, folder: Path) -> None:
    """A base backup of the primary as the data of another server of ours."""
    source = PostgresFolder(home)
    folder.mkdir(mode=0o711)
    data = folder / "data"
    data.mkdir(mode=0o700)
    source.account.own(data)
    shutil.copyfile(home / "password", folder / "password")
    (folder / "password").chmod(0o600)
    port = source.last_port()
    place = f"host=127.0.0.1 port={port} user=gnomon password={source.password()} application_name={STANDBY}"
    words = ["--pgdata", str(data), "--dbname", place, "--checkpoint=fast", "--write-recovery-conf"]
    subprocess.run(
        source.command("become", "pg_basebackup", *words),
        check=True,
        capture_output=True,
        cwd="/",
        env=ENVIRONMENT,
    )


@contextmanager
def a_pair(folder: Path) -> Iterator[Pair]:
    """Both, running; not in step yet."""
    with PostgresServer(folder / "primary") as primary:
        _copy(primary, folder / "primary", folder / "standby")
        with PostgresServer(folder / "standby") as standby:
            yield Pair(primary, standby)
