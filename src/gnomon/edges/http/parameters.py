"""Parameters of an address that several routes have, and that are more than a word or a number.

They are read before their route runs, as all others are, so that one answer tells every fault.
"""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from gnomon.cadence.civil import zone_named
from gnomon.domain.form import read_instant


def _instant(text: Any) -> datetime:
    """An instant of an address: a plus sign that came unescaped reads as a space."""
    try:
        return read_instant(str(text).strip().replace(" ", "+"))
    except ValueError:
        raise ValueError("must be an instant such as 2026-11-29T09:00:00Z") from None


Instant = Annotated[
    datetime, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"})
]


def _zone(name: str) -> str:
    try:
        zone_named(name)
    except KeyError:
        raise ValueError("is no IANA zone such as Europe/Berlin") from None
    return name


Zone = Annotated[str, Field(max_length=64), AfterValidator(_zone)]
