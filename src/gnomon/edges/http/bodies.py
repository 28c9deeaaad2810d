"""The body of a request as a JSON object: its type, then what ``edges.json_input`` makes of it. Knows no noun."""

import re
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request

from gnomon.domain.errors import Fault, Invalid
from gnomon.edges.json_input import parse, read

_JSON_TYPE = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json", re.ASCII | re.IGNORECASE)


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
