"""Sealing a text so that only who brings the same secret again can read it; the database alone can't (SEC-3).

The tag is a keyed BLAKE2b of the text and seeds the SHAKE-256 stream that hides it, so that no randomness is drawn, the
same stream is never used for two texts, and a changed byte is noticed.
"""

import hashlib
import hmac

_TAG = 32


def seal(secret: bytes, text: bytes) -> bytes:
    """The sealed form: tag, then the hidden text. ``secret`` has at most 64 bytes."""
    tag = _tag(secret, text)
    return tag + _xor(text, _stream(secret, tag, len(text)))


def unseal(secret: bytes, sealed: bytes) -> bytes | None:
    """The text, or ``None`` where the secret is another or a byte was changed."""
    tag, hidden = sealed[:_TAG], sealed[_TAG:]
    text = _xor(hidden, _stream(secret, tag, len(hidden)))
    return text if hmac.compare_digest(tag, _tag(secret, text)) else None


def _tag(secret: bytes, text: bytes) -> bytes:
    return hashlib.blake2b(text, key=secret, digest_size=_TAG, person=b"gnomon-seal-tag").digest()


def _stream(secret: bytes, tag: bytes, length: int) -> bytes:
    seed = hashlib.blake2b(tag, key=secret, person=b"gnomon-seal-key").digest()
    return hashlib.shake_256(seed).digest(length)


def _xor(text: bytes, stream: bytes) -> bytes:
    size = len(text)
    return (int.from_bytes(text, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")
