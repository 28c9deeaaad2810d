"""Claims whose answer was lost: neither yes nor no, so they are asked for by the id that the claimer made (RUN-5a).

What such a claim had taken is given back to the queue before anything else is claimed, instead of lying locked for the
length of a lease in the name of a process that knows nothing of it. A server may still be at work on such a claim when it
is asked for, so one that is not there yet is asked for again.
"""

from functools import partial

import structlog

from gnomon.domain.errors import Unavailable
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import News, Wakeup
from gnomon.services.claiming import give_back
from gnomon.stores import runs
from gnomon.stores.database import Database, Tx

_log = structlog.get_logger()
# For so long a claim whose answer was lost may still land: its guard refuses it five seconds after it was decided, and
# the line gives a statement twenty
LINGERS_SECONDS = 30.0


class LostClaims:
    """The claims in doubt of one claimer."""

    def __init__(self, database: Database, clock: Clock, owner: str, wakeup: Wakeup) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._wakeup = wakeup
        self._ids: dict[str, float] = {}  # until when, by the monotonic clock, they may still land
        self._held: set[tuple[str, int]] = set()

    def doubt(self, claim_id: str, error: Unavailable) -> None:
        """The write of this claim failed with ``error``, and may have been committed all the same."""
        lingers = LINGERS_SECONDS if error.code == "commit_unknown" else 0.0
        self._ids[claim_id] = self._clock.monotonic() + lingers

    def left(self, run_id: str, fence: int) -> None:
        """Nothing was sent under this claim, and giving it back failed: it is done at the next settling."""
        self._held.add((run_id, fence))

    @property
    def any(self) -> bool:
        """Whether there is anything to settle."""
        return bool(self._ids or self._held)

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
            self._wakeup.notify(News.RUN)
        for claim_id, lands_until in list(self._ids.items()):
            over = self._clock.monotonic() >= lands_until
            give_back_claim = partial(self._give_back, claim_id=claim_id)
            taken = await failpoints.through("giveback", self._database.write_guarded, give_back_claim)
            if taken or over:
                del self._ids[claim_id]
            if taken:
                _log.warning("lost_claim_given_back", claim_id=claim_id, runs=taken)
                self._wakeup.notify(News.RUN)

    async def _give_back(self, tx: Tx, claim_id: str) -> int:
        return len(await give_back(tx, self._owner, await runs.under_claim(tx, self._owner, claim_id)))
