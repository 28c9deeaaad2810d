"""Who may call a route: each one declares its scope here, and a test walks all routes to see that it does (SEC-1).

Knows no noun; how a key comes, ``edges.bearer`` knows, and what it is, ``services.api_keys``.
"""

from collections.abc import Iterator
from typing import Any

from fastapi import Depends
from fastapi.dependencies.utils import request_params_to_args
from starlette.requests import Request

from gnomon.domain.api_key import seal_of
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.scopes import Scope
from gnomon.edges.bearer import bearer, refuse_key_in_query
from gnomon.edges.http.problems import faults_of

JSON = "application/json"
_PROBLEM = "application/problem+json"


class Requires:
    """The guard of one route: the key, the scope, the form of the answer, and no unknown parameter.

    ``bound_keys`` lets a key through that is bound to a target and so has no scopes; the route then checks the target.
    ``offers`` are the media types that the route can answer in.
    """

    def __init__(self, scope: Scope, *, bound_keys: bool = False, offers: tuple[str, ...] = (JSON,)) -> None:
        self.scope = scope
        self._bound_keys = bound_keys
        self._offers = offers

    async def __call__(self, request: Request) -> Caller:
        """The caller, once everything about the request but its body is in order."""
        refuse_key_in_query(request.query_params)
        text = bearer(request.headers.getlist("authorization"))
        caller: Caller = await request.app.state.services.api_keys.authenticate(text)
        request.state.caller = caller
        request.state.seal = seal_of(text)
        if caller.target is None:
            caller.require(self.scope)
        elif not self._bound_keys:
            raise caller.bound()
        _refuse_unknown_parameters(request)
        if not accepts(request.headers.get("accept"), (*self._offers, _PROBLEM)):
            raise Invalid(f"This answers in {' or '.join(self._offers)}.", code="not_acceptable")
        return caller


class Public:
    """Marks a route that anybody may call."""

    async def __call__(self) -> None:
        """Let everybody through."""


def needs(scope: Scope, *, bound_keys: bool = False, offers: tuple[str, ...] = (JSON,)) -> Any:
    """Declare the scope of a route, as the annotation of its first parameter."""
    return Depends(Requires(scope, bound_keys=bound_keys, offers=offers))


def public() -> Any:
    """Declare that a route needs no key."""
    return Depends(Public())


def accepts(header: str | None, offers: tuple[str, ...]) -> bool:
    """Whether an Accept header leaves at least one of the offered media types."""
    if header is None or not header.strip():
        return True
    quality: dict[str, float] = {}
    for item in header.lower().split(","):
        kind, *parameters = (part.strip() for part in item.split(";"))
        quality[kind] = max(quality.get(kind, 0.0), _quality(parameters))

    def allowed(offer: str) -> bool:
        for pattern in (offer, f"{offer.partition('/')[0]}/*", "*/*", "*"):
            if pattern in quality:
                return quality[pattern] > 0
        return False

    return any(allowed(offer) for offer in offers)


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0


def _refuse_unknown_parameters(request: Request) -> None:
    """Refuse a parameter that this address does not have, together with all that is wrong with those that it has."""
    if not request.query_params:
        return
    known = [*_query_fields(request.scope["route"].dependant)]
    names = {field.alias for field in known}
    faults = [
        Fault(name[:64], "is not a known parameter of this address")
        for name in dict.fromkeys(request.query_params)
        if name not in names
    ]
    if faults:  # FastAPI, which reads the others later, would not come to that
        _, wrong = request_params_to_args(known, request.query_params)
        raise Invalid([*faults, *faults_of(wrong)])


def _query_fields(dependant: Any) -> Iterator[Any]:
    yield from dependant.query_params
    for inner in dependant.dependencies:
        yield from _query_fields(inner)
