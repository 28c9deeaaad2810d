"""The SQLite base: the lock before the read, all or nothing, what may be opened."""

from support.mutations import Mutant

_DATABASE = "tests/service/test_sqlite_database.py::"
_WAITS = "tests/service/test_sqlite_database_waits.py::"
_OPENING = "tests/service/test_sqlite_opening.py::"
_UPGRADE = "tests/service/test_sqlite_opening_upgrade.py::"
_CONNECTION = "stores/sqlite/connection.py"
_MANY = "tests/contract/test_slots.py::test_of_many_at_once_only_those_that_moved_on_are_entered"
_FILE = "stores/sqlite/opening.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a write takes the lock before it reads",
        "stores/sqlite/database.py",
        'self._writer.do(lambda connection: connection.transaction("BEGIN IMMEDIATE", work))',
        'self._writer.do(lambda connection: connection.transaction("BEGIN", work))',
        _DATABASE + "test_a_write_takes_the_lock_before_it_reads",
    ),
    Mutant(
        "a power cut loses no acknowledged claim",
        _CONNECTION,
        '"PRAGMA synchronous=FULL"',
        '"PRAGMA synchronous=NORMAL"',
        _DATABASE + "test_the_writer_s_pragmas",
    ),
    Mutant(
        "REPLACE does not pass the append-only triggers",
        _CONNECTION,
        '    "PRAGMA recursive_triggers=ON",\n',
        "",
        "tests/contract/test_audit_schema.py::test_replacing_is_no_way_past_the_triggers",
    ),
    Mutant(
        "all rows of a guard count as landed only if all were changed",
        _CONNECTION,
        "if self._say(statement, given, returning=False)[1] == len(given):",
        "if self._say(statement, given, returning=False)[1]:",
        _MANY,
    ),
    Mutant(
        "a guard that let some rows through is taken back before it is said again",
        _CONNECTION,
        '            self._raw.execute("ROLLBACK TO guard")\n',
        "",
        _MANY,
    ),
    Mutant(
        "the reader can't write",
        _CONNECTION,
        'raw.execute("PRAGMA query_only=ON")',
        "pass",
        _DATABASE + "test_the_reader_can_not_write",
    ),
    Mutant(
        "an exception rolls back",
        _CONNECTION,
        'self._raw.execute("ROLLBACK")',
        'self._raw.execute("COMMIT")',
        _DATABASE + "test_an_exception_rolls_everything_back_and_comes_out",
    ),
    Mutant(
        "a transaction that waits is ended before its rollback",
        _CONNECTION,
        "    iterator.close()\n",
        "",
        _DATABASE + "test_awaiting_anything_else_is_refused_and_rolled_back",
    ),
    Mutant(
        "the wait for the lock is bounded",
        _CONNECTION,
        "> (BUSY_SECONDS if patience is None else patience):",
        "> 100 * (BUSY_SECONDS if patience is None else patience):",
        _WAITS + "test_the_wait_is_bounded_and_nothing_was_written",
    ),
    Mutant(
        "a file that is gone hangs nobody",
        "stores/sqlite/database.py",
        "        connection: Connection | None = None\n        while",
        "        connection: Connection | None = self._connect()\n        while",
        _WAITS + "test_a_file_that_is_gone_is_an_error_and_not_a_wait",
    ),
    Mutant(
        "a network file system is refused",
        _FILE,
        "    if kind in _NETWORK:\n",
        "    if kind in ():\n",
        _OPENING + "test_a_network_file_system_is_refused",
    ),
    Mutant(
        "links are followed",
        _FILE,
        "file_system(path.resolve(), mounts)",
        "file_system(path.absolute(), mounts)",
        _OPENING + "test_a_link_onto_a_network_file_system_is_seen_through",
    ),
    Mutant(
        "the later of two mounts on one point is seen",
        _FILE,
        "len(point.parts) >= best",
        "len(point.parts) > best",
        _OPENING + "test_the_mount_table_is_read_as_the_kernel_writes_it",
    ),
    Mutant(
        "another program's database is refused",
        _FILE,
        "    if not ours and tables:\n",
        "    if False:\n",
        _OPENING + "test_a_file_that_is_refused_is_left_as_it_was",
    ),
    Mutant(
        "the switch to write-ahead logging is tried again",
        _FILE,
        "            if clock.monotonic() - began > BUSY_SECONDS:\n                raise\n",
        "            raise\n",
        _UPGRADE + "test_the_switch_waits_for_others_but_not_for_ever",
    ),
    Mutant(
        "a step that another process took is not taken again",
        _FILE,
        "        if migration not in migrations.pending(dict(connection.rows(_VERSIONS)), known):\n"
        "            return False\n",
        "",
        _UPGRADE + "test_opening_it_again_changes_nothing",
    ),
)
