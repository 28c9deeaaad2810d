"""Civil time: zones as integer windows of constant offset, and the one rule that turns wall clock into instant.

The only module that knows `zoneinfo`. It must not know cadences. Instants are whole seconds since 1970 in
UTC, wall-clock values are seconds since 1970-01-01T00:00 local, days are days since 1970-01-01.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import import_module, resources
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from zoneinfo import TZPATH, ZoneInfo, available_timezones

DAY = 86_400
MICRO = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
FIRST_DAY = date.min.toordinal() - EPOCH_ORDINAL
LAST_DAY = date.max.toordinal() - EPOCH_ORDINAL
FIRST_SECOND = FIRST_DAY * DAY
LAST_SECOND = (LAST_DAY + 1) * DAY - 1

# No offset in IANA data reaches 16 h, so two readings of one wall time are never further apart than this.
REACH = 2 * DAY
_CHUNK = 31_556_952  # one mean Gregorian year: a window table is built for a year at a time, when asked for
_PROBE = 14 * DAY  # shorter than any daylight period a footer rule describes
_CHUNKS_KEPT = 1024
_NOT_PLACES = frozenset({"Factory", "localtime", "posixrules"})


class Window(NamedTuple):
    """A span of instants [start, end) with one offset; `peak` is the end of all wall time shown before it."""

    start: int
    end: int
    offset: int
    peak: int


class Zone:
    """One IANA zone, right for any instant a `datetime` can hold; its tables are built lazily, year by year."""

    __slots__ = ("_chunks", "_edges", "_tz", "missing", "name")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self._tz = ZoneInfo.from_file(BytesIO(data), key=name)
        self._edges = _transitions(data)
        self._chunks: dict[int, tuple[Window, ...]] = {}
        self.missing = frozenset(self._missing_days())

    def window(self, second: int) -> Window:
        """Give the window that holds this instant."""
        windows = self._chunks.get(second // _CHUNK)
        if windows is None:
            windows = self._build(second // _CHUNK)
        index = 0
        while second >= windows[index][1]:
            index += 1
        return windows[index]

    def windows(self, first: int, last: int) -> Iterator[Window]:
        """Give the windows that touch [first, last], in order."""
        window = self.window(first)
        yield window
        while window.end <= last:
            window = self.window(window.end)
            yield window

    def resolve(self, wall: int) -> int:
        """Turn wall time into the first instant at which the clock shows it or something later (CAD-4).

        That is the earlier of two readings, and the first valid instant after a gap. It never falls when the
        wall time rises, which is why slots come out in order.
        """
        window = self.window(wall - REACH)
        while wall >= window.end + window.offset:
            window = self.window(window.end)
        return max(wall - window.offset, window.start)

    def repeats(self, wall: int) -> bool:
        """Tell whether the clock shows this wall time twice."""
        return len(self.readings(wall)) > 1

    def readings(self, wall: int) -> list[int]:
        """Give every instant at which the clock shows this wall time, in order; none inside a gap."""
        shown = {
            wall - window.offset
            for window in self.windows(wall - REACH, wall + REACH)
            if window.start <= wall - window.offset < window.end
        }
        return sorted(shown)

    def _offset(self, second: int) -> int:
        # Two days inside the range of datetime, so that the local side of the conversion can't leave it.
        inside = min(max(second, FIRST_SECOND + REACH), LAST_SECOND - REACH)
        moment = EPOCH + timedelta(seconds=inside)
        # Not utcoffset(): that starts from wall time, and `fold` tells two readings of it apart, not three.
        offset = moment.astimezone(self._tz).replace(tzinfo=UTC) - moment
        return offset.days * DAY + offset.seconds

    def _build(self, chunk: int) -> tuple[Window, ...]:
        if len(self._chunks) >= _CHUNKS_KEPT:
            self._chunks.clear()
        first, end = chunk * _CHUNK, (chunk + 1) * _CHUNK
        edges = [first - REACH, *self._changes(first - REACH, end), end]
        built: list[Window] = []
        peak = -(1 << 60)
        for start, stop in pairwise(edges):
            offset = self._offset(start)
            if stop > first:
                # A window cut by the border of its chunk has shown all wall time up to that border already.
                before = max(peak, first + offset) if start < first else peak
                built.append(Window(max(start, first), stop, offset, before))
            peak = max(peak, stop + offset)
        self._chunks[chunk] = windows = tuple(built)
        return windows

    def _changes(self, first: int, end: int) -> list[int]:
        """Find every instant in (first, end) at which the offset may change."""
        found = [edge for edge in self._edges if first < edge < end]
        low = max(first, self._edges[-1]) if self._edges else first
        before = self._offset(low)
        while low < end:
            high = min(low + _PROBE, end)
            after = self._offset(high)
            if before != after:
                found.append(self._edge_between(low, high))
            low, before = high, after
        return [edge for edge in found if edge < end]

    def _edge_between(self, low: int, high: int) -> int:
        before = self._offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle) == before:
                low = middle
            else:
                high = middle
        return high

    def _missing_days(self) -> Iterator[int]:
        """Give the dates that the zone jumped over whole (CAD-4)."""
        for edge in self._edges:
            skipped_from, skipped_to = edge + self._offset(edge - 1), edge + self._offset(edge)
            yield from range(-(-skipped_from // DAY), skipped_to // DAY)


def _transitions(data: bytes) -> list[int]:
    """Read the instants of the listed changes out of a TZif file (RFC 8536); zoneinfo does not show them."""
    isut, isstd, leap, times, types, chars = struct.unpack_from(">6l", data, 20)
    second = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut
    (times,) = struct.unpack_from(">l", data, second + 32)
    return list(struct.unpack_from(f">{times}q", data, second + 44))


@cache
def zone_names() -> frozenset[str]:
    """Give the names a rule may use: those of the pinned package, or of the system where there is none."""
    try:
        listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    except ModuleNotFoundError:
        listed = list(available_timezones())
    return frozenset(listed) - _NOT_PLACES


def zone_data_version() -> str:
    """Give the version of the zone data in use, such as `2026f`; `system` without the pinned package (CAD-11)."""
    try:
        return str(import_module("tzdata").IANA_VERSION)
    except ModuleNotFoundError:
        return "system"


def _zone_data(name: str) -> bytes:
    places = [Path(folder) for folder in TZPATH]
    with suppress(ModuleNotFoundError):
        places.insert(0, Path(str(resources.files("tzdata"))) / "zoneinfo")
    for place in places:
        file = place / name
        if file.is_file():
            return file.read_bytes()
    raise KeyError(name)


@cache
def zone_named(name: str) -> Zone:
    """Load a zone, once per process; KeyError where there is no zone of that name (CAD-11)."""
    if name not in zone_names():
        raise KeyError(name)
    return Zone(name, _zone_data(name))
