"""Reading a JSON body strictly: bounded while it streams in, and nothing in it that another reader would read otherwise.

What comes out is plain UTF-8 text, numbers that fit 64 bits, and no name twice. Knows no noun.
"""

import json
import math
import re
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request

from gnomon.domain.errors import Fault, Invalid

BODY_BYTES = 1_048_576
DEPTH = 32
FAULTS = 100
_JSON_TYPE = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json", re.ASCII | re.IGNORECASE)
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


def parse(body: bytes) -> Any:
    """The JSON value of a body.

    Raises:
        Invalid: ``malformed_body``: it is no JSON, or JSON that readers disagree about; ``invalid``: texts in it that no
            database takes, each at its place.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(f"it is not UTF-8 (byte {error.start})") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise _malformed(f"it is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise _malformed(f"it is nested more than {DEPTH} deep") from None
    faults: list[Fault] = []
    _walk(value, "", 1, faults)
    if faults:
        raise Invalid(faults[:FAULTS])
    return value


async def json_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object.

    Raises:
        Invalid: with the code that says what is wrong with it.
    """
    _check_type(request)
    value = parse(await read(request))
    if not isinstance(value, dict):
        raise Invalid([Fault("", "the body must be a JSON object")])
    return value


async def optional_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object; no body at all is an empty one.

    Raises:
        Invalid: as ``json_object``.
    """
    body = await read(request)
    if not body.strip():
        return {}
    _check_type(request)
    value = parse(body)
    if not isinstance(value, dict):
        raise Invalid([Fault("", "the body must be a JSON object")])
    return value


Body = Annotated[dict[str, Any], Depends(json_object)]
OptionalBody = Annotated[dict[str, Any], Depends(optional_object)]


def _check_type(request: Request) -> None:
    given = request.headers.get("content-type")
    if given is None:
        return
    kind, *parameters = (part.strip() for part in given.split(";"))
    charsets = [
        p.partition("=")[2].strip('" ').lower() for p in parameters if p.lower().startswith("charset")
    ]
    if not _JSON_TYPE.fullmatch(kind) or any(charset not in {"utf-8", "utf8"} for charset in charsets):
        raise Invalid(
            "The body must be JSON in UTF-8: send Content-Type: application/json.",
            code="unsupported_media_type",
        )


def _walk(value: Any, path: str, depth: int, faults: list[Fault]) -> None:
    if isinstance(value, str):
        _check_text(value, path, faults)
        return
    if isinstance(value, (dict, list)) and depth > DEPTH:
        raise _malformed(f"it is nested more than {DEPTH} deep")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_text(name, path, faults)
            _walk(inner, f"{path}.{name[:64]}" if path else name[:64], depth + 1, faults)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _walk(inner, f"{path}.{index}" if path else str(index), depth + 1, faults)


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
        raise _malformed("a name stands twice in one of its objects")
    return found


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > _DIGITS or abs(found := int(text)) > _LARGEST:
        raise _malformed("a number in it does not fit 64 bits")
    return found


def _number(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise _malformed("a number in it is out of range")
    return found


def _constant(text: str) -> float:
    raise _malformed(f"{text} is not JSON")


def _malformed(why: str) -> Invalid:
    return Invalid(f"The body can't be read: {why}.", code="malformed_body")


def _too_large(limit: int) -> Invalid:
    return Invalid(f"The body is larger than {limit:,} bytes.", code="body_too_large")
