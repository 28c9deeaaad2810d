"""As whom a PostgreSQL server of ours runs: as us, or, where we are root, as another user, since it refuses root.

Knows users and folders of the machine, no server and no database.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gnomon.domain.errors import UnusableDatabase

OUR_USER = "gnomon-postgres"
_USERS = (OUR_USER, "postgres")  # by preference
_MAKERS = (
    ("useradd", "--system", "--no-create-home", "--shell", "/bin/false", OUR_USER),
    ("adduser", "-S", "-D", "-H", "-s", "/bin/false", OUR_USER),  # busybox
)


@dataclass(frozen=True, slots=True)
class Account:
    """The user of a server: numbers of the machine."""

    uid: int
    gid: int

    @property
    def is_us(self) -> bool:
        """Whether it is the user of this process."""
        return self.uid == os.geteuid()

    def own(self, path: Path) -> None:
        """Give a file or a folder to it."""
        if not self.is_us:
            os.chown(path, self.uid, self.gid)

    def is_barred(self, paths: Iterable[Path]) -> bool:
        """Whether a folder on the way to any of ``paths`` (absolute) is closed to it."""
        return not self.is_us and any(
            not self._may_enter(folder) for path in paths for folder in path.parents
        )

    def _may_enter(self, folder: Path) -> bool:
        found = folder.stat()
        if found.st_uid == self.uid:
            return bool(found.st_mode & 0o100)
        return bool(found.st_mode & (0o010 if found.st_gid == self.gid else 0o001))


def account_for(data: Path) -> Account:
    """The account for a server over ``data``: the owner, or where that does not exist yet one that this machine has.

    Raises:
        UnusableDatabase: the data is another user's, or we are root and there is no other user to be.
    """
    us = Account(os.geteuid(), os.getegid())
    owner = data.stat() if data.exists() else None
    if us.uid != 0:
        if owner is not None and owner.st_uid != us.uid:
            raise UnusableDatabase(f"{data} belongs to another user. Choose another folder.")
        return us
    if owner is not None and owner.st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    for name in _USERS:
        found = _find(name)
        if found is not None:
            return found
    made = _make() or _find("nobody")
    if made is None:
        raise UnusableDatabase(
            "PostgreSQL can't run as root, and this machine has no other user for it. "
            f"Create one (useradd --system {OUR_USER}), or start Gnomon as another user than root."
        )
    return made


def _find(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_uid, entry.pw_gid) if entry.pw_uid else None


def _make() -> Account | None:
    for program, *arguments in _MAKERS:
        path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if path is not None:
            subprocess.run([path, *arguments], check=False, capture_output=True)  # noqa: S603 - ours, word by word
            found = _find(OUR_USER)
            if found is not None:
                return found
    return None
