"""Answers that went well, and the two headers that make them repeatable: Idempotency-Key and If-Match.

An answer is JSON-safe, so that it can be kept and given again; what it costs to send is the same either way.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header
from starlette.requests import Request
from starlette.responses import Response

from gnomon.domain import trace
from gnomon.domain.errors import Invalid
from gnomon.domain.versions import Match
from gnomon.services.dedup import Answer, Once, Replay

_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")
_TAG = re.compile(r'(W/)?"([^"]*)"|([^\s,"]+)')


def shown(body: Any, *, tag: str | None = None) -> Answer:
    """200 with a body, under its entity tag where it has one."""
    return {"status": 200, "headers": {} if tag is None else {"ETag": f'"{tag}"'}, "body": body}


def created(body: Any, location: str, *, tag: str | None = None) -> Answer:
    """201 with the new record and its address."""
    answer = shown(body, tag=tag)
    return {"status": 201, "headers": {**answer["headers"], "Location": location}, "body": body}


def accepted(body: Any, location: str) -> Answer:
    """202 with the address of what has begun."""
    return {"status": 202, "headers": {"Location": location}, "body": body}


def send(answer: Answer, *, replayed: bool = False) -> Response:
    """The answer as it goes out."""
    headers = dict(answer["headers"])
    if replayed:
        headers["Idempotent-Replayed"] = "true"
    text = json.dumps(answer["body"], separators=(",", ":"), allow_nan=False)
    return Response(text, answer["status"], headers, "application/json")


def done() -> Response:
    """204: it is done, and there is nothing to say."""
    return Response(status_code=204)


def respond(made: Any, render: Callable[[Any], Answer]) -> Response:
    """The answer to a request that may have been a repeat."""
    if isinstance(made, Replay):
        return send(made.answer, replayed=True)
    return send(render(made))


@dataclass(frozen=True, slots=True)
class Key:
    """The Idempotency-Key of one request, with what it holds for."""

    key: str
    scope: str
    seal: bytes

    def once(self, body: Any, render: Callable[[Any], Answer]) -> Once:
        """The effect that this request may have once."""
        return Once.under(self.key, self.scope, self.seal, body, render)


async def idempotency_key(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="A name of this request, of your making: a repeat gets the first answer again",
        ),
    ] = None,
) -> Key | None:
    """The request's key, if it has one; stands behind the route's guard.

    Raises:
        Invalid: ``bad_header``.
    """
    if idempotency_key is None:
        return None
    given = request.headers.getlist("idempotency-key")
    if len(given) != 1 or not _KEY.fullmatch(given[0]):
        raise Invalid("Idempotency-Key must be one text of 1 to 255 ASCII characters.", code="bad_header")
    scope = f"{request.state.caller.actor} {request.method} {request.scope['path']}"
    return Key(given[0], scope, request.state.seal)


Keyed = Annotated[Key | None, Depends(idempotency_key)]


def once_for(keyed: Key | None, body: Any, render: Callable[[Any], Answer]) -> Once | None:
    """``Key.once`` where the request has a key."""
    return None if keyed is None else keyed.once(body, render)


async def given_trace(
    traceparent: Annotated[
        str | None,
        Header(
            description="The trace that the request belongs to (W3C): the run keeps it and its target gets it"
        ),
    ] = None,
) -> str | None:
    """The caller's trace; a header that names none is left alone, as W3C wants it."""
    return trace.given_trace(traceparent)


Traced = Annotated[str | None, Depends(given_trace)]


async def if_match(
    request: Request,
    if_match: Annotated[
        str | None,
        Header(
            alias="If-Match",
            description="The ETag of the version that this edit was made from; * is whatever is there",
        ),
    ] = None,
) -> Match:
    """The tags that an edit accepts. A weak one never matches."""
    if if_match is None:
        return None
    text = ",".join(request.headers.getlist("if-match"))
    return frozenset(quoted or bare for weak, quoted, bare in _TAG.findall(text) if not weak)


Matching = Annotated[Match, Depends(if_match)]
