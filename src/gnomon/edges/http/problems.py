"""Errors as problem documents (RFC 9457): the one place that knows which error is which status (CONTRACT, errors).

A code is stable and means one thing. Nothing of the request is ever echoed here but what a service put into its sentence.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gnomon.domain.errors import (
    Conflict,
    Fault,
    GnomonError,
    Invalid,
    Missing,
    Refused,
    RevisionStale,
    Unauthenticated,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"
_KEY_TEXT = re.compile(r"gnk_[A-Za-z0-9_-]{8,}")
RETRY_SECONDS = 1

_BY_CODE = {
    "malformed_body": 400,
    "bad_cursor": 400,
    "bad_header": 400,
    "bad_request": 400,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "upgrade_required": 426,
    "rate_limited": 429,
    "over_quota": 429,
    "over_budget": 429,
}
_BY_BRANCH: tuple[tuple[type[GnomonError], int], ...] = (
    (RevisionStale, 412),
    (Unauthenticated, 401),
    (Invalid, 422),
    (Missing, 404),
    (Conflict, 409),
    (Refused, 403),
    (Unavailable, 503),
)
_BY_STATUS = {
    400: ("bad_request", "The request can't be read."),
    401: ("unauthenticated", "This needs an API key."),
    403: ("forbidden", "This is not allowed."),
    404: ("not_found", "There is nothing at this address."),
    405: ("method_not_allowed", "This address does not have this method; Allow lists those that it has."),
    406: ("not_acceptable", "There is no answer in a form that Accept allows."),
    413: ("body_too_large", "The body is too large."),
    415: ("unsupported_media_type", "The body must be JSON."),
    500: ("internal", "Something went wrong here; the log has it under this request_id."),
    503: ("unavailable", "Try again later."),
}
MEANINGS = {
    400: "The request can't be read: broken JSON, a bad header or cursor",
    401: "No key, or one that opens nothing",
    403: "The key's scopes do not cover this",
    404: "Nothing is there under this id or slug",
    406: "Accept allows no form that there is",
    409: "The world moved: taken, busy or in use",
    412: "If-Match names a version that is no longer the newest",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "The request says something that can't be: every fault, field by field",
    429: "Too much, too soon; Retry-After says when",
    503: "Try again later; nothing was lost",
}


def status_of(error: GnomonError) -> int:
    """The status code of an error."""
    found = _BY_CODE.get(error.code)
    if found is not None:
        return found
    return next((status for kind, status in _BY_BRANCH if isinstance(error, kind)), 500)


def document(
    status: int,
    code: str,
    detail: str,
    request_id: str,
    *,
    faults: Iterable[Fault] = (),
    data: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """The body of a problem; what an error knows besides stands beside it under its own name."""
    return {
        **(data or {}),
        "type": f"urn:gnomon:problem:{code}",
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
        "errors": [{"field": fault.field, "message": fault.message} for fault in faults],
        "request_id": request_id,
    }


def response(body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """The answer that carries a problem."""
    status: int = body["status"]
    sent = dict(headers or {})
    if status == 401:
        sent.setdefault("WWW-Authenticate", "Bearer")
    if status == 426:  # RFC 9110, 15.5.22
        sent |= {"Upgrade": "websocket", "Connection": "Upgrade"}
    if status == 503 or body["code"] == "idempotency_key_in_use":
        sent.setdefault("Retry-After", str(RETRY_SECONDS))
    if "retry_after_seconds" in body:
        sent["Retry-After"] = str(max(1, -int(-float(body["retry_after_seconds"]) // 1)))
    return Response(masked(json.dumps(body)), status, sent, MEDIA_TYPE)


async def on_error(request: Request, error: Exception) -> Response:
    """One of ours."""
    assert isinstance(error, GnomonError)
    faults = error.faults if isinstance(error, Invalid) else ()
    detail = error.message.removeprefix(": ")
    if len(faults) > 1:
        detail = f"{len(faults)} fields are wrong; errors lists them."
    body = document(status_of(error), error.code, detail, request_id(request), faults=faults, data=error.data)
    return response(body)


async def on_validation(request: Request, error: Exception) -> Response:
    """A parameter of the address or a header that FastAPI could not read."""
    assert isinstance(error, RequestValidationError)
    return await on_error(request, Invalid(faults_of(error.errors())))


def faults_of(errors: Iterable[Mapping[str, Any]]) -> list[Fault]:
    """What is wrong with the parameters of an address, as FastAPI tells it."""
    return [
        Fault(".".join(str(part) for part in item["loc"][1:]) or str(item["loc"][0]), _in_words(item))
        for item in errors
    ]


def _in_words(item: Mapping[str, Any]) -> str:
    """What was wrong with a parameter, said as it is of a field of a body."""
    limits = item.get("ctx") or {}
    match item["type"]:
        case "literal_error" | "enum":
            return f"must be one of {limits['expected'].replace(chr(39), '').replace(' or ', ', ')}"
        case "int_parsing" | "int_from_float":
            return "must be a whole number"
        case "greater_than_equal" | "less_than_equal":
            return f"must be at least {limits['ge']}" if "ge" in limits else f"must be at most {limits['le']}"
        case "missing":
            return "is required"
        case "value_error":  # one of ours (parameters.py)
            return str(limits["error"])
        case _:
            return str(item["msg"])


async def on_http(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: no such route, no such method."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(request.app.state.methods_of(request.scope)))
    code, detail = _BY_STATUS.get(error.status_code, _BY_STATUS[400])
    status = error.status_code if error.status_code in _BY_STATUS else 400
    return response(document(status, code, detail, request_id(request)), headers)


def masked(text: str) -> str:
    """A text with every API key in it made useless: for whatever goes to a person or a log."""
    return _KEY_TEXT.sub("gnk_***", text)


def internal(request_id: str) -> Response:
    """What nobody expected; the log has the rest."""
    code, detail = _BY_STATUS[500]
    return response(document(500, code, detail, request_id))


def request_id(request: Request) -> str:
    """The id that this exchange goes under, in its answer and in the log."""
    found: str = getattr(request.state, "request_id", "")
    return found
