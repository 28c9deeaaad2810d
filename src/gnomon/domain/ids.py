"""Ids: a type prefix, then twenty characters that sort by the instant of creation and are random behind it.

48 bits of milliseconds and 52 random bits in Crockford's base 32, lower case: ``run_01hf2k…``. Where the bits come
from is the caller's affair (``ports.clock.Entropy``); this module draws none.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_RANDOM_BITS = 52
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")


class Kind(StrEnum):
    """The types of record that carry an id of their own; the value is the prefix."""

    SCHEDULE = "sch"
    RUN = "run"
    SESSION = "ses"
    MESSAGE = "msg"
    TASK = "tsk"
    JOB = "job"
    TRIGGER = "trg"
    INSTANCE = "ins"
    AGENT = "agt"
    TEAM = "tea"
    KEY = "key"
    PRINCIPAL = "prn"
    CALENDAR = "cal"
    PROCESS = "prc"
    CLAIM = "clm"


def make_ids(kind: Kind, millis: int, random_bits: Iterable[int]) -> list[str]:
    """Many ids of one instant, one for each item of at least 52 random bits."""
    first = (millis << _RANDOM_BITS) >> 60
    prefix = f"{kind.value}_" + "".join([_PAIRS[(first >> shift) & 1023] for shift in range(30, -1, -10)])
    low = (millis << _RANDOM_BITS) & ((1 << 60) - 1)
    found = []
    for bits in random_bits:
        number = low | (bits & ((1 << _RANDOM_BITS) - 1))
        found.append(
            f"{prefix}{_PAIRS[number >> 50]}{_PAIRS[(number >> 40) & 1023]}{_PAIRS[(number >> 30) & 1023]}"
            f"{_PAIRS[(number >> 20) & 1023]}{_PAIRS[(number >> 10) & 1023]}{_PAIRS[number & 1023]}"
        )
    return found


def make_id(kind: Kind, millis: int, random_bits: int) -> str:
    """An id of ``kind`` made at ``millis`` (Unix milliseconds) with at least 52 random bits."""
    return make_ids(kind, millis, (random_bits,))[0]


def make_process_id(random_bits: int) -> str:
    """The id of one start of a process: fifty random bits (RUN-5a). Short, since every run names its worker."""
    bits = random_bits & ((1 << 50) - 1)
    return f"{Kind.PROCESS.value}_" + "".join(
        [_PAIRS[(bits >> shift) & 1023] for shift in range(40, -1, -10)]
    )


def sibling(kind: Kind, of: str) -> str:
    """The id of ``kind`` with the same tail as ``of``: a run, its own session and message share theirs."""
    return kind + of[3:]


def is_id(kind: Kind, text: str) -> bool:
    """Whether ``text`` has the form of an id of this kind (it may still name nothing)."""
    return len(text) == 24 and text.startswith(f"{kind.value}_") and all(c in _ALPHABET for c in text[4:])


def is_slug(text: str) -> bool:
    """Whether ``text`` may be a slug: 1 to 64 of a-z, 0-9, ``-`` and ``_``, and not in the form of an id."""
    return _SLUG.fullmatch(text) is not None and not any(is_id(kind, text) for kind in Kind)
