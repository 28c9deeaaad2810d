"""Claims whose answer was lost: neither yes nor no, so they are asked for by the id that the claimer made (RUN-5a).

What such a claim had taken is given back to the queue before anything else is claimed, instead of lying locked for the
length of a lease in the name of a process that knows nothing of it.
"""

from functools import partial

import structlog

from gnomon.ports import failpoints
from gnomon.ports.wakeup import Wakeup
from gnomon.services.claiming import give_back
from gnomon.stores import runs
from gnomon.stores.database import Database, Tx

_log = structlog.get_logger()


class LostClaims:
    """The claims in doubt of one claimer."""

    def __init__(self, database: Database, owner: str, wakeup: Wakeup) -> None:
        self._database = database
        self._owner = owner
        self._wakeup = wakeup
        self._ids: list[str] = []
        self._held: set[tuple[str, int]] = set()

    def doubt(self, claim_id: str) -> None:
        """The write of this claim failed, and may have been committed all the same."""
        self._ids.append(claim_id)

    def left(self, run_id: str, fence: int) -> None:
        """Nothing was sent under this claim, and giving it back failed: it is done at the next settling."""
        self._held.add((run_id, fence))

    async def settle(self) -> None:
        """Read back what is in doubt and give back what was taken.

        Raises:
            Unavailable: the database still can't be reached; the doubt stays.
        """
        if self._held:
            held = set(self._held)
            await failpoints.through(
                "giveback", self._database.write_guarded, partial(give_back, owner=self._owner, held=held)
            )
            self._held -= held
            self._wakeup.notify()
        while self._ids:
            claim_id = self._ids[0]
            give_back_claim = partial(self._give_back, claim_id=claim_id)
            taken = await failpoints.through("giveback", self._database.write_guarded, give_back_claim)
            self._ids.pop(0)
            if taken:
                _log.warning("lost_claim_given_back", claim_id=claim_id, runs=taken)
                self._wakeup.notify()

    async def _give_back(self, tx: Tx, claim_id: str) -> int:
        return len(await give_back(tx, self._owner, await runs.under_claim(tx, self._owner, claim_id)))
