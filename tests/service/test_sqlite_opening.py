"""Which files may be our database, and how a file is brought up to date (OPS-1, OPS-3). What is refused is untouched."""

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from gnomon.domain.errors import UnusableDatabase
from gnomon.stores.sqlite.opening import file_system, prepare
from gnomon.testing.clock import FrozenClock
from support.databases import a_file

LOCAL = "/dev/vda / ext4 rw 0 0\n"


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


def bytes_of_another_kind(path: Path) -> None:
    path.write_bytes(b"not a database, however long it may be. " * 200)


def short_text(path: Path) -> None:
    path.write_bytes(b"hello")


def of_another_program(path: Path) -> None:
    execute(path, "CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")


def of_another_program_in_wal_mode(path: Path) -> None:
    execute(path, "PRAGMA journal_mode=WAL; CREATE TABLE theirs (a)")


def of_another_program_with_its_own_mark(path: Path) -> None:
    execute(path, "PRAGMA application_id=77; CREATE TABLE theirs (a)")


def of_another_program_unfinished(path: Path) -> None:
    """Its writer was killed: what it had committed stands in the -wal alone."""
    other = path.with_name("running.db")
    raw = apsw.Connection(str(other))
    raw.execute("PRAGMA journal_mode=WAL; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)").fetchall()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").write_bytes(Path(f"{other}{suffix}").read_bytes())
    raw.close()
    other.unlink()


def of_a_newer_version(path: Path) -> None:
    a_file(path.parent, path.name)
    execute(path, "INSERT INTO migrations VALUES (9999, 'future', 'x', 0)")


def of_another_text(path: Path) -> None:
    a_file(path.parent, path.name)
    execute(path, "UPDATE migrations SET checksum = 'other' WHERE number = 1")


def half_a_database(path: Path) -> None:
    whole = a_file(path.parent, "whole.db")
    path.write_bytes(whole.read_bytes()[:5_000])
    whole.unlink()


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (bytes_of_another_kind, "not_our_database"),
        (short_text, "not_our_database"),
        (of_another_program, "not_our_database"),
        (of_another_program_in_wal_mode, "not_our_database"),
        (of_another_program_with_its_own_mark, "not_our_database"),
        (of_another_program_unfinished, "not_our_database"),
        (of_a_newer_version, "database_newer"),
        (of_another_text, "database_differs"),
        (half_a_database, "unusable_database"),
    ],
)
def test_a_file_that_is_refused_is_left_as_it_was(
    tmp_path: Path, clock: FrozenClock, make: Callable[[Path], None], code: str
) -> None:
    """OPS-1, OPS-3: byte for byte, and with nothing new beside it; twice, so that the first try changed nothing."""
    path = tmp_path / "some.db"
    make(path)
    before = folder(tmp_path)
    for _ in range(2):
        with pytest.raises(UnusableDatabase) as caught:
            prepare(path, clock)
        assert caught.value.code == code
        after = folder(tmp_path)
        after.pop(f"{path}-shm", None)  # an index over the -wal, never a part of the data
        before.pop(f"{path}-shm", None)
        assert after == before


@pytest.mark.parametrize("mode", [0o444, 0o222, 0o000])
def test_a_file_that_this_user_may_not_write_is_refused(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """OPS-1: access is asked of the mode bits, as the tests may run as root."""
    path = a_file(tmp_path)
    path.chmod(mode)
    monkeypatch.setattr(os, "access", _by_mode_bits)
    before = path.stat()
    with pytest.raises(UnusableDatabase) as caught:
        prepare(path, clock)
    assert caught.value.code == "read_only"
    assert path.stat() == before


def test_a_folder_that_this_user_may_not_write_takes_no_new_file(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-1."""
    tmp_path.chmod(0o555)
    monkeypatch.setattr(os, "access", _by_mode_bits)
    with pytest.raises(UnusableDatabase) as caught:
        prepare(tmp_path / "new.db", clock)
    tmp_path.chmod(0o755)
    assert caught.value.code == "read_only"
    assert folder(tmp_path) == {}


def test_a_folder_that_this_user_may_not_write_takes_no_journal(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-1: a writable file is not enough, and where it really lies counts, not where a link to it does."""
    below = tmp_path / "below"
    below.mkdir()
    path = a_file(below)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    below.chmod(0o555)
    monkeypatch.setattr(os, "access", _by_mode_bits)
    before = folder(below)
    for name in (path, link):
        with pytest.raises(UnusableDatabase, match=r"The folder .*below can't be written to") as caught:
            prepare(name, clock)
        assert caught.value.code == "read_only"
    below.chmod(0o755)
    assert folder(below) == before


def _by_mode_bits(path: Path, mode: int) -> bool:
    return (Path(path).stat().st_mode >> 6) & mode == mode


def test_a_directory_is_refused_with_a_better_name(tmp_path: Path, clock: FrozenClock) -> None:
    with pytest.raises(UnusableDatabase, match="is a directory"):
        prepare(tmp_path, clock)
    assert folder(tmp_path) == {}


def test_a_missing_folder_is_not_made(tmp_path: Path, clock: FrozenClock) -> None:
    with pytest.raises(UnusableDatabase, match="does not exist"):
        prepare(tmp_path / "missing" / "gnomon.db", clock)
    assert folder(tmp_path) == {}


# --- network file systems -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "fuse.sshfs", "fuse.s3fs"]
)
@pytest.mark.parametrize("exists", [False, True])
def test_a_network_file_system_is_refused(
    tmp_path: Path, clock: FrozenClock, kind: str, exists: bool
) -> None:
    """OPS-1: SQLite's locks can't be trusted there, and work could run twice."""
    path = a_file(tmp_path) if exists else tmp_path / "gnomon.db"
    before = folder(tmp_path)
    with pytest.raises(UnusableDatabase) as caught:
        prepare(path, clock, mounts=f"{LOCAL}server:/x {tmp_path} {kind} rw 0 0\n")
    assert caught.value.code == "network_file_system"
    assert kind in caught.value.message
    assert folder(tmp_path) == before


def test_a_link_onto_a_network_file_system_is_seen_through(tmp_path: Path, clock: FrozenClock) -> None:
    """OPS-1: SQLite follows the link, and so does the check; of the file as of its folder."""
    far, near = tmp_path / "far", tmp_path / "near"
    far.mkdir()
    near.mkdir()
    (near / "gnomon.db").symlink_to(far / "gnomon.db")
    (tmp_path / "linked").symlink_to(far)
    mounts = f"{LOCAL}server:/x {far} nfs4 rw 0 0\n"
    for path in (near / "gnomon.db", tmp_path / "linked" / "gnomon.db"):
        with pytest.raises(UnusableDatabase):
            prepare(path, clock, mounts=mounts)
    assert list(far.iterdir()) == []


def test_a_local_disk_inside_a_network_mount_is_fine(tmp_path: Path, clock: FrozenClock) -> None:
    """OPS-1: the nearest mount counts."""
    inner = tmp_path / "inner"
    inner.mkdir()
    prepare(
        inner / "gnomon.db", clock, mounts=f"server:/x {tmp_path} nfs rw 0 0\n/dev/vdb {inner} xfs rw 0 0\n"
    )
    assert "runs" in tables(inner / "gnomon.db")


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("/dev/vda / ext4 rw 0 0\n", "ext4"),
        ("/dev/vda / ext4 rw 0 0\nx /srv nfs rw 0 0\n", "nfs"),
        ("x /srv nfs rw 0 0\n/dev/vda / ext4 rw 0 0\n", "nfs"),
        ("/dev/vda / ext4 rw 0 0\nx /srv/data nfs rw 0 0\n", "ext4"),
        ("/dev/vda / ext4 rw 0 0\nx /sr nfs rw 0 0\n", "ext4"),
        ("auto /srv autofs rw 0 0\nx /srv nfs4 rw 0 0\n", "nfs4"),  # mounted over its automounter
        ("x /srv nfs4 rw 0 0\n/dev/vdb /srv ext4 rw 0 0\n", "ext4"),
        ("x /srv/my\\040data nfs rw 0 0\n", None),
        ("garbage\n\n", None),
        ("", None),
    ],
)
def test_the_mount_table_is_read_as_the_kernel_writes_it(table: str, expected: str | None) -> None:
    """OPS-1."""
    assert file_system(Path("/srv/gnomon.db"), table) == expected
    assert file_system(Path("/srv/my data/gnomon.db"), "x /srv/my\\040data nfs rw 0 0\n") == "nfs"


def test_the_machine_s_own_table_is_used_where_none_is_given(tmp_path: Path) -> None:
    assert file_system(tmp_path) is not None or not Path("/proc/self/mounts").exists()
