"""One transaction on one connection: how it begins, how it ends, and what is known when its end was not heard."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from gnomon.domain.errors import Unavailable
from gnomon.stores.database import Tx
from gnomon.stores.postgres.connection import AS_THE_SERVER_LIKES, Connection, Manner, NotBegun, Raw
from gnomon.stores.postgres.failures import FAILURES, is_definite, unknown
from gnomon.stores.postgres.statements import Catalogue

T = TypeVar("T")
LOCK_SECONDS = 10.0
_ROLLBACK_SECONDS = 2.0
# a process that is stopped in the middle of a transaction holds its row locks no longer than this
IDLE_SECONDS = 15.0
READ = "REPEATABLE READ READ ONLY"
WRITE = "SERIALIZABLE"
GUARDED = "READ COMMITTED"
# what a transaction may fail with that is not the work's own affair
BROKEN: tuple[type[BaseException], ...] = (NotBegun, *FAILURES)


def beginning(isolation: str) -> str:
    """What begins a transaction, in one trip of the simple protocol.

    One that reads over a snapshot may read much, so that it is planned as the server likes it best.
    """
    likes = AS_THE_SERVER_LIKES if isolation == READ else {}
    plans = "".join(f"SET LOCAL {name} TO {value}; " for name, value in likes.items())
    return (
        f"BEGIN ISOLATION LEVEL {isolation}; {plans}"
        f"SET LOCAL lock_timeout TO {round(LOCK_SECONDS * 1_000)}; "
        f"SET LOCAL idle_in_transaction_session_timeout TO {round(IDLE_SECONDS * 1_000)}"
    )


async def transaction(
    raw: Raw, catalogue: Catalogue, manner: Manner, work: Callable[[Tx], Awaitable[T]], *, clean: bool = False
) -> T:
    """Run ``work``, then COMMIT, or roll back. A connection whose state is in doubt is cut off.

    ``clean`` replaces zero bytes in texts, which PostgreSQL has no place for.

    Raises:
        NotBegun: the line was dead.
        CommitUnknown: the answer to COMMIT was lost, or to a statement that stood alone.
        Exception: the driver's own errors, not translated, and whatever ``work`` raises.
    """
    connection = Connection(raw, catalogue, manner, clean=clean)
    try:
        answer = await work(connection)
        await connection.finish()
    except NotBegun:
        raise
    except BaseException as error:
        if connection.begun:
            await _roll_back(raw, error)
        elif _broken(error):
            raw.terminate()
        raise
    if connection.begun:
        await _commit(raw)
    return answer


def _broken(error: BaseException) -> bool:
    """Whether a statement may still be under way: waiting for it could take for ever."""
    return isinstance(error, TimeoutError) or not isinstance(error, Exception)


async def _roll_back(raw: Raw, error: BaseException) -> None:
    if _broken(error) or raw.is_closed():
        raw.terminate()
        return
    try:
        await raw.execute("ROLLBACK", timeout=_ROLLBACK_SECONDS)
    except BaseException as second:
        raw.terminate()
        if not isinstance(second, FAILURES):
            raise


async def _commit(raw: Raw) -> None:
    try:
        tag = await raw.execute("COMMIT")
    except FAILURES as error:
        if is_definite(error):
            await _roll_back(raw, error)
            raise
        raw.terminate()
        raise unknown() from error
    except BaseException:
        raw.terminate()
        raise
    if tag != "COMMIT":  # a failed statement's error was swallowed by whoever ran it
        raise Unavailable("The database rolled the transaction back.", code="database_failed")
