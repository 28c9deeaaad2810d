"""The one tree of errors, five branches named by who must act.

    GnomonError
    ├── Invalid       the caller must change the request        (faults: field by field)
    ├── Missing       nothing is there under that name
    ├── Conflict      the world moved: busy, stale, already there
    ├── Refused       who you are, or how much you used
    └── Unavailable   try later; nothing was lost

Each carries a stable ``code`` (snake_case), a sentence for a person, and the data a program needs. Status codes of
HTTP are not known here; they live in ``edges/http/problems.py``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one field: ``field`` is a dotted path (``cadence.at``), ``message`` a sentence."""

    field: str
    message: str


class GnomonError(Exception):
    """The root: ``code`` is stable and for programs, the message is for people, ``data`` is JSON-safe."""

    code = "error"

    def __init__(
        self, message: str, *, code: str | None = None, data: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.data: dict[str, object] = dict(data or {})


class Invalid(GnomonError):  # noqa: N818 - the branch is named by who must act
    """The caller must change the request; ``faults`` lists every fault, each at its field."""

    code = "invalid"

    def __init__(
        self,
        faults: Iterable[Fault] | str,
        *,
        code: str | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        self.faults: tuple[Fault, ...] = () if isinstance(faults, str) else tuple(faults)
        message = (
            faults if isinstance(faults, str) else "; ".join(f"{f.field}: {f.message}" for f in self.faults)
        )
        super().__init__(message, code=code, data=data)


class Missing(GnomonError):  # noqa: N818 - likewise
    """Nothing is there under that name, or it is somebody else's: the two are not told apart."""

    code = "not_found"


class Conflict(GnomonError):  # noqa: N818 - likewise
    """The world moved: a run is in flight, a revision is stale, a fence is old."""

    code = "conflict"


class RevisionStale(Conflict):
    """An edit named a revision that is no longer the newest one (SCH-4)."""

    code = "revision_stale"


class RunInFlight(Conflict):
    """The schedule has an unfinished run; ``data['run_id']`` names it (SCH-10, SCH-11)."""

    code = "run_in_flight"


class FenceStale(Conflict):
    """A write came with a fence that has been superseded; nothing was changed (RUN-6)."""

    code = "fence_stale"


class Refused(GnomonError):  # noqa: N818 - likewise
    """Who you are, or how much you used, does not allow it."""

    code = "forbidden"


class Unauthenticated(Refused):
    """No key, or none that opens anything."""

    code = "unauthenticated"


class Unavailable(GnomonError):  # noqa: N818 - likewise
    """Try later: the database is busy, read-only or gone; nothing was lost."""

    code = "unavailable"


class UnusableDatabase(Unavailable):
    """The database can't be used at all: not ours, newer than the program, read-only, on a network disk."""

    code = "unusable_database"
