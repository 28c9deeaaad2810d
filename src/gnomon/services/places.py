"""How many runs a process works on at a time, shared fairly by all whose work it does (RUN-1).

A process serves one queue, or one for each tenant. Whoever has work may take every place that nobody else wants; as
soon as another one waits for a place, nobody takes more than an even part. So a long queue delays another's run by what
is in work already, never by what is queued. Knows no database and no run.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress


class Places:
    """The places of a process."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._shares: list[Share] = []

    def share(self, freed: Callable[[], None]) -> "Share":
        """A new share; ``freed`` is called when a place that it waits for has got free."""
        share = Share(self, freed)
        self._shares.append(share)
        return share

    def left_for(self, share: "Share") -> int:
        """How many more places this share may take now."""
        free = self.limit - sum(each.taken for each in self._shares)
        if not any(each.waits for each in self._shares if each is not share):
            return free
        sharing = sum(1 for each in self._shares if each is share or each.waits or each.taken)
        return max(0, min(free, max(1, self.limit // sharing) - share.taken))

    def freed(self) -> None:
        """Wake those who wait."""
        for share in self._shares:
            if share.waits:
                share.call()


class Share:
    """What one queue has of the places."""

    def __init__(self, places: Places, freed: Callable[[], None]) -> None:
        self._places = places
        self.call = freed
        self.taken = 0
        self.endings = 0
        self.waits = False
        self._freed = asyncio.Event()

    @property
    def left(self) -> int:
        """How many more places it may take now."""
        return self._places.left_for(self)

    @property
    def _kept(self) -> int:
        """How many of the endings keep their places."""
        return max(0, self.endings - self._places.limit)

    def take(self, most: int) -> int:
        """Take up to ``most`` places; how many it got. Having got one, it waits no more."""
        got = max(0, min(most, self.left))
        self.taken += got
        if got:
            self.waits = False
        return got

    def give_back(self, count: int) -> None:
        """Give places back, used or not."""
        self.taken -= count
        assert self.taken >= 0
        if count:
            self._freed.set()
            self._places.freed()

    async def wait_for_one(self, seconds: float) -> None:
        """Return as soon as one of its places has got free, or after ``seconds``."""
        self._freed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._freed.wait(), seconds)

    def end(self) -> None:
        """Work is over, and its ending is still to be written: that needs no place.

        But where as many endings as there are places are not written yet, the further ones keep theirs: a database that
        takes none of them shall not be given ever more.
        """
        kept = self._kept
        self.endings += 1
        self.give_back(1 - (self._kept - kept))

    def written(self, count: int) -> None:
        """So many endings are written."""
        kept = self._kept
        self.endings -= count
        assert self.endings >= 0
        self.give_back(kept - self._kept)

    def wait(self) -> None:
        """There is work and no place for it: until it has one, no other takes more than its part."""
        self.waits = True

    def wait_no_more(self) -> None:
        """There is no work left, or no way to get at it: the others need not hold back."""
        self.waits = False
