"""How many runs a process works on at a time, shared fairly by all whose work it does (RUN-1).

A process serves one queue, or one for each tenant. Whoever has work may take every place that nobody else wants; as
soon as another one waits for a place, nobody takes more than an even part. So a long queue delays another's run by what
is in work already, never by what is queued. Knows no database and no run.
"""

from collections.abc import Callable


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
        self.waits = False

    @property
    def left(self) -> int:
        """How many more places it may take now."""
        return self._places.left_for(self)

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
            self._places.freed()

    def wait(self) -> None:
        """There is work and no place for it: until it has one, no other takes more than its part."""
        self.waits = True

    def wait_no_more(self) -> None:
        """There is no work left, or no way to get at it: the others need not hold back."""
        self.waits = False
