"""API keys: their text form, their hash, their record (SEC-3).

``gnk_<tenant>_<kind>_<32 random characters>_<checksum>``: the tenant's slug stands inside, so that a key leads to its
database with no shared look-up; ``master`` is no tenant. The random part holds 160 bits in Crockford's base 32, the
checksum is the CRC-32 of all before it. The text is shown once and kept nowhere; what is stored is its keyed BLAKE2b.
Where random bits come from is the caller's affair.
"""

import hashlib
import re
import zlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gnomon.domain.target import Target, TargetKind

MASTER = "master"
RANDOM_BITS = 160
PEPPER_BYTES = 32
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TEXT = re.compile(
    rf"(gnk_([a-z0-9](?:[a-z0-9_-]{{0,62}}[a-z0-9])?)_(key|agt|tea)_[{_ALPHABET}]{{32}})_([{_ALPHABET}]{{7}})"
)


class KeyKind(StrEnum):
    """What a key opens, readable in its text: scopes, one agent, one team."""

    SCOPES = "key"
    AGENT = "agt"
    TEAM = "tea"


_KIND_OF = {None: KeyKind.SCOPES, TargetKind.AGENT: KeyKind.AGENT, TargetKind.TEAM: KeyKind.TEAM}


@dataclass(frozen=True, slots=True)
class KeyText:
    """What a key's text says of itself; it may still open nothing."""

    tenant: str
    kind: KeyKind


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The record of one key. ``hint`` is the end of its random part; a key has a target or scopes, never both.

    One with a ``role`` connects and claims for that role alone.
    """

    id: str
    name: str
    hint: str
    scopes: tuple[str, ...]
    target: Target | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    role: str | None = None


def kind_of(target: Target | None) -> KeyKind:
    """The kind of a key that is bound to ``target``, or to scopes."""
    return _KIND_OF[None if target is None else target.kind]


def make_text(tenant: str, kind: KeyKind, random_bits: int) -> str:
    """The text of a new key; ``random_bits`` holds at least RANDOM_BITS of them."""
    body = f"gnk_{tenant}_{kind.value}_{_base32(random_bits, 32)}"
    return f"{body}_{_checksum(body)}"


def read_text(text: str) -> KeyText | None:
    """What a key's text says, or ``None`` where it is no key of ours, or was copied wrongly."""
    match = _TEXT.fullmatch(text)
    if match is None or _checksum(match.group(1)) != match.group(4):
        return None
    return KeyText(match.group(2), KeyKind(match.group(3)))


def hint_of(text: str) -> str:
    """The last four characters of the random part: enough to recognise a key by, too little to use."""
    return text.split("_")[-2][-4:]


def hashed(text: str, pepper: bytes) -> bytes:
    """What is stored of a key."""
    return hashlib.blake2b(text.encode(), key=pepper, digest_size=32, person=b"gnomon-api-key").digest()


def seal_of(text: str) -> bytes:
    """A secret that only the bearer of the key can make again: it seals the answers kept for them."""
    return hashlib.blake2b(text.encode(), person=b"gnomon-key-seal").digest()


def _checksum(body: str) -> str:
    return _base32(zlib.crc32(body.encode()), 7)


def _base32(number: int, length: int) -> str:
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(5 * (length - 1), -1, -5))
