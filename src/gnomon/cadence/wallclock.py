"""The slots of a rule that holds wall-clock intent: dates and times of day, resolved in a zone (CAD-3, CAD-4).

Both directions are closed forms, not searches. With m(s) the latest wall time the clock has shown up to the
instant s, and f(w) the first instant that shows w or later, f(w) > s exactly when w > m(s). So the slot after
s is f of the first intent after m(s), and the slot at or before s is f of the last intent not after m(s).
"""

from bisect import bisect_right

from gnomon.cadence.civil import DAY, FIRST_SECOND, LAST_SECOND, MICRO, Window, Zone
from gnomon.cadence.daily import Dates

_NOWHERE = Window(0, 0, 0, 0)


class CivilSlots:
    """Compiled `once`, `day`, `week`, `month`, cron or RRULE; works on integers of microseconds, UTC."""

    __slots__ = ("_dates", "_first", "_floor", "_last", "_times", "_window", "zone")

    def __init__(self, zone: Zone, dates: Dates, times: tuple[int, ...], floor: int) -> None:
        self.zone = zone
        self._dates = dates
        self._times = times
        self._first = times[0]
        self._last = times[-1]
        self._floor = max(floor, FIRST_SECOND)
        self._window = _NOWHERE

    def next_after(self, micros: int) -> int | None:
        """Give the first slot strictly after an instant (CAD-8), None where there is none."""
        # Written out in one piece: this is the call that every tick makes for every due schedule.
        second = micros // MICRO
        if second < self._floor:
            second = self._floor - 1
        start, end, offset, peak = self._window
        if not start <= second < end:
            if second > LAST_SECOND:
                return None
            self._window = start, end, offset, peak = self.zone.window(second)
        wall = second + offset
        if wall < peak:
            wall = peak - 1
        intent = self._intent_after(wall)
        if intent is None:
            return None
        instant = intent - offset
        if instant >= end:
            instant = self.zone.resolve(intent)
        return instant * MICRO if instant <= LAST_SECOND else None

    def intent_at(self, micros: int) -> int:
        """Give the wall time (in seconds) that the rule meant by a slot: another than shown if it fell in a gap."""
        second = micros // MICRO
        start, _, offset, peak = self.zone.window(second)
        shown = second + offset
        if second > start or shown <= peak:
            return shown
        intent = self._intent_after(self._shown(second - 1))
        return shown if intent is None else intent

    def latest_at(self, micros: int) -> int | None:
        """Give the last slot at or before an instant, None where there is none."""
        second = min(micros // MICRO, LAST_SECOND)
        if second < self._floor:
            return None
        intent = self._intent_at(self._shown(second))
        if intent is None:
            return None
        instant = self.zone.resolve(intent)
        return instant * MICRO if instant >= self._floor else None

    def count_between(self, start: int, end: int) -> tuple[int, int, int] | None:
        """Give (first, last, count) of the slots in [start, end), None where there are none.

        The cost grows with the months and the offset changes in the range, never with the number of slots.
        """
        first, last = self.next_after(start - 1), self.latest_at(end - 1)
        if first is None or last is None or first > last:
            return None
        low, high = first // MICRO, last // MICRO
        count = self._count(self._shown(low - 1), self._shown(high))
        for window in self.zone.windows(low, high):
            gap_end = window.start + window.offset
            if window.start >= low and gap_end > window.peak:
                # All intents from the start of a gap to its end land on one instant: one slot (CAD-4).
                count -= max(self._count(window.peak - 1, gap_end) - 1, 0)
        return first, last, count

    def _shown(self, second: int) -> int:
        """Give the latest wall time that the clock has shown up to an instant."""
        _, _, offset, peak = self.zone.window(second)
        return max(second + offset, peak - 1)

    def _intent_after(self, wall: int) -> int | None:
        day = wall // DAY
        clock = wall - day * DAY
        if clock >= self._last:
            found = self._dates.at_or_after(day + 1)
        else:
            found = self._dates.at_or_after(day)
            if found == day and clock >= self._first:
                return day * DAY + self._times[bisect_right(self._times, clock)]
        return None if found is None else found * DAY + self._first

    def _intent_at(self, wall: int) -> int | None:
        day, clock = divmod(wall, DAY)
        times = self._times
        if clock < times[0]:
            day, clock = day - 1, DAY
        found = self._dates.at_or_before(day)
        if found is None:
            return None
        return found * DAY + (times[bisect_right(times, clock) - 1] if found == day else times[-1])

    def _count(self, after: int, upto: int) -> int:
        """Count the intents in (after, upto]."""
        first, first_clock = divmod(after, DAY)
        last, last_clock = divmod(upto, DAY)
        whole = self._dates.count(first, last - 1) * len(self._times)
        ending = self._dates.count(last, last) * bisect_right(self._times, last_clock)
        opening = self._dates.count(first, first) * bisect_right(self._times, first_clock)
        return whole + ending - opening
