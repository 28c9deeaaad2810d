"""What PostgreSQL and the way to it can answer with, as our errors; and which of them are worth another try.

Told apart by SQLSTATE, never by the words of the server, which may come in any language.
"""

import ssl
from collections.abc import Mapping

import asyncpg
from asyncpg.exceptions import InternalClientError

from gnomon.domain.errors import Unavailable, UnusableDatabase
from gnomon.stores.database import CheckViolation, UniqueViolation

# What the driver raises besides PostgresError when the line is cut, mute or spoken to by somebody else
LINE_FAILURES: tuple[type[BaseException], ...] = (
    OSError,
    EOFError,
    TimeoutError,
    ssl.SSLError,
    asyncpg.InterfaceError,
    InternalClientError,
)
FAILURES: tuple[type[BaseException], ...] = (asyncpg.PostgresError, *LINE_FAILURES)
# serialisation failure and deadlock: the whole transaction may be tried again as if it had not been
_AGAIN = frozenset({"40001", "40P01"})
# a pooler gave us a server connection that does not know our prepared statements, or knows somebody else's; or the
# schema was changed under them
_FORGOTTEN = frozenset({"26000", "42P05", "0A000"})
# a trigger of ours, and a number that only the database gives
_REFUSED = frozenset({"P0001", "428C9"})
_GONE = "The database can't be reached. Nothing was lost; try again once it answers."
# by SQLSTATE, else by its class: code and sentence
_UNAVAILABLE: Mapping[str, tuple[str, str]] = {
    "55P03": ("busy", "The database is busy: another transaction holds a lock. Try again."),
    "57014": ("busy", "The database is busy: a statement took too long. Try again."),
    "40": ("busy", "The database is busy: others change the same rows. Try again."),
    "53100": ("disk_full", "The disk of the database is full. Free some space; nothing was lost."),
    "53300": (
        "too_many_connections",
        "The database takes no more connections. Raise its limit or close others.",
    ),
    "53": ("database_failed", "The database is out of resources."),
    "25006": ("read_only", "The database is read-only: it is a standby, or was set so."),
    "25P03": (
        "gone",
        "The database ended a transaction that had stood still for too long; nothing was written.",
    ),
    "28": ("credentials", "The database refuses the user or the password."),
    "3D000": ("gone", "The database of this name does not exist."),
    "3F": ("schema_gone", "The schema is gone from the database."),
    "42P01": ("schema_gone", "A table of ours is gone from the database."),
    "42501": ("forbidden", "The database does not let this user do that."),
    "57": ("gone", "The database is starting or stopping. Nothing was lost; try again once it answers."),
    "08": ("gone", _GONE),
    "58": ("database_failed", "The database can't read or write its files."),
    "XX": ("database_failed", "The database is damaged or failed inside."),
}


class CommitUnknown(Unavailable):
    """The answer to a COMMIT was lost: neither yes nor no; it is read back before anything is decided (RUN-5a)."""

    code = "commit_unknown"


def unknown() -> CommitUnknown:
    """What is told then."""
    return CommitUnknown(
        "The line to the database broke while a transaction was being committed: whether it was is not known yet."
    )


def is_worth_another_try(error: BaseException) -> bool:
    """Whether the same transaction may be run again at once: it lost against others, and nothing of it happened."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in _AGAIN


def is_forgotten_statement(error: BaseException) -> bool:
    """Whether a prepared statement is not, or no longer, what this connection believes."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in _FORGOTTEN


def is_standby(error: BaseException) -> bool:
    """Whether the server takes no writes: after a failover another one does."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate == "25006"


def is_zero_byte(error: BaseException) -> bool:
    """Whether a text holds the one character that PostgreSQL has no place for."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate == "22021"


def is_definite(error: BaseException) -> bool:
    """Whether an error in answer to COMMIT says that nothing was committed: an ERROR does, the end of a session doesn't."""
    return isinstance(error, asyncpg.PostgresError) and getattr(error, "severity_en", None) == "ERROR"


def translated(error: BaseException) -> BaseException:
    """The driver's error as one of ours; what is none of its errors comes back as it is."""
    if isinstance(
        error.__cause__, UnicodeEncodeError
    ):  # half a surrogate pair in a text, found before it was sent
        return error.__cause__
    if isinstance(error, asyncpg.PostgresError) and error.sqlstate:
        return _of_state(error, error.sqlstate)
    if isinstance(error, asyncpg.PostgresError | InternalClientError):
        return Unavailable(f"{_GONE} ({_words(error)})", code="gone")
    if isinstance(error, asyncpg.InterfaceError) and isinstance(error, ValueError | TypeError):
        return error  # a parameter of the wrong kind: a mistake of ours, not the line's
    if isinstance(error, LINE_FAILURES):
        code = "timed_out" if isinstance(error, TimeoutError) else "gone"
        return Unavailable(f"{_GONE} ({_words(error)})", code=code)
    return error


def _of_state(error: asyncpg.PostgresError, state: str) -> BaseException:
    if state == "23505":
        return UniqueViolation(_where(error))
    if state[:2] == "23" or state in _REFUSED:
        return CheckViolation(_words(error))
    code, sentence = _UNAVAILABLE.get(state) or _UNAVAILABLE.get(state[:2]) or (None, None)
    if code is None or sentence is None:
        return error
    return Unavailable(f"{sentence} ({_words(error)})", code=code)


def unusable(error: BaseException) -> BaseException:
    """As ``translated``, where the database is being opened: what waiting won't mend is told as such."""
    found = translated(error)
    if isinstance(error, asyncpg.PostgresError) and error.sqlstate in {"3D000", "42501"}:
        assert isinstance(found, Unavailable)
        return UnusableDatabase(found.message, code=found.code)
    return found


def _where(error: asyncpg.PostgresError) -> str:
    fields = [getattr(error, field, None) for field in ("table_name", "constraint_name")]
    return ".".join(field for field in fields if field)


def _words(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
