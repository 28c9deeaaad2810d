"""Sessions: read by people, and erased for good (RUN-9, RUN-12)."""

from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Missing, RunInFlight
from gnomon.domain.session import Session, Turn
from gnomon.stores import audit, sessions
from gnomon.stores.database import Database, Tx


class Sessions:
    """The sessions of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, session_id: str) -> Session:
        """A session.

        Raises:
            Missing: there is none under this id, or it was erased.
        """
        return await self._database.read(lambda tx: _there(tx, session_id))

    async def turns(self, session_id: str, after: str, limit: int) -> list[Turn]:
        """Up to ``limit`` turns after the one of a run, the oldest first.

        Raises:
            Missing: there is no such session.
        """

        async def work(tx: Tx) -> list[Turn]:
            found = await sessions.turns(tx, session_id, after, limit)
            if not found:
                await _there(tx, session_id)
            return found

        return await self._database.read(work)

    async def erase(self, caller: Caller, session_id: str) -> None:
        """Erase what was said, and stamp the slots that led to it, in one transaction (RUN-12).

        A schedule that has this session for all its runs begins it anew with its next one.

        Raises:
            Missing: there is no such session.
            RunInFlight: a run in it is not over; ``data['run_id']`` names it.
        """

        async def work(tx: Tx) -> None:
            await _there(tx, session_id)
            run_id = await sessions.unfinished(tx, session_id)
            if run_id is not None:
                raise RunInFlight(
                    f"The run {run_id} in this session is not over yet. Cancel it or wait, then erase.",
                    data={"run_id": run_id},
                )
            await sessions.erase(tx, session_id)
            await audit.append(
                tx, actor=caller.actor, action=Action.ERASE, subject_kind="session", subject_id=session_id
            )

        await self._database.write(work)


async def _there(tx: Tx, session_id: str) -> Session:
    found = await sessions.find(tx, session_id)
    if found is None:
        raise Missing(f'There is no session "{session_id[:64]}".')
    return found
