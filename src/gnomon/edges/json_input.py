"""Reading JSON strictly: bounded while it streams in, and nothing in it that another reader would read otherwise.

What comes out is plain UTF-8 text, numbers that fit 64 bits, and no name twice. All edges share it; it knows no noun and
no protocol. ``what`` names the thing that is read, for the sentence of a fault.
"""

import json
import math
from typing import Any

from starlette.requests import Request

from gnomon.domain.errors import Fault, Invalid

BODY_BYTES = 1_048_576
DEPTH = 32
FAULTS = 100
_DIGITS = 19
_LARGEST = 2**63 - 1


async def read(request: Request, limit: int = BODY_BYTES) -> bytes:
    """The body, at most ``limit`` bytes; more is refused as soon as it is known.

    Raises:
        Invalid: ``body_too_large``.
    """
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and (len(said) > 15 or int(said) > limit):
        raise _too_large(limit)
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def parse(raw: bytes, what: str = "body") -> Any:
    """The JSON value of some bytes.

    Raises:
        Invalid: ``malformed_body``: it is no JSON, or JSON that readers disagree about; ``invalid``: texts and numbers
            in it that no database takes, each at its place.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(what, f"it is not UTF-8 (byte {error.start})") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise _malformed(
            what, f"it is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise _malformed(what, f"it is nested more than {DEPTH} deep") from None
    except _Disputed as error:
        raise _malformed(what, str(error)) from None
    check(value, what)
    return value


def check(value: Any, what: str = "body") -> None:
    """Look through a JSON value that somebody else has read.

    Raises:
        Invalid: as ``parse``, for what a reader may have let through.
    """
    faults: list[Fault] = []
    try:
        _walk(value, "", 1, faults)
    except _Disputed as error:
        raise _malformed(what, str(error)) from None
    if faults:
        raise Invalid(faults[:FAULTS])


class _Disputed(Exception):  # noqa: N818 - it never leaves this module
    """What readers of JSON disagree about."""


def _walk(value: Any, path: str, depth: int, faults: list[Fault]) -> None:
    if isinstance(value, str):
        _check_text(value, path, faults)
    elif isinstance(value, (dict, list)) and depth > DEPTH:
        raise _Disputed(f"it is nested more than {DEPTH} deep")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_text(name, path, faults)
            _walk(inner, f"{path}.{name[:64]}" if path else name[:64], depth + 1, faults)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _walk(inner, f"{path}.{index}" if path else str(index), depth + 1, faults)
    elif isinstance(value, float) and not math.isfinite(value):
        faults.append(Fault(path, "is no finite number"))
    elif isinstance(value, int) and abs(value) > _LARGEST:
        faults.append(Fault(path, "does not fit 64 bits"))


def _check_text(text: str, path: str, faults: list[Fault]) -> None:
    if "\0" in text:
        faults.append(Fault(path, "holds a NUL character"))
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            faults.append(Fault(path, "holds half of a surrogate pair"))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Disputed("a name stands twice in one of its objects")
    return found


def _integer(text: str) -> int:
    """The number, or one that is refused at its place: to read a long one takes time."""
    return int(text) if len(text) <= _DIGITS + 1 else _LARGEST + 1


def _constant(text: str) -> float:
    raise _Disputed(f"{text} is not JSON")


def _malformed(what: str, why: str) -> Invalid:
    return Invalid(f"The {what} can't be read: {why}.", code="malformed_body")


def _too_large(limit: int) -> Invalid:
    return Invalid(f"The body is larger than {limit:,} bytes.", code="body_too_large")
