"""The HTTP application: every noun's routes on one flat table, inside one exchange, with one form of error."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from gnomon.domain.errors import GnomonError
from gnomon.edges.http import documents, health, problems
from gnomon.edges.http.auth import Requires
from gnomon.edges.http.exchange import Exchange, HttpFigures
from gnomon.edges.http.nouns import Nouns, OnDemand
from gnomon.edges.http.routing import hoisted, write_schemas
from gnomon.edges.http.services import Services
from gnomon.edges.http.shapes import Problem
from gnomon.ports.clock import Clock, Entropy


def build_app(
    services: Services,
    *,
    clock: Clock,
    entropy: Entropy,
    version: str,
    registry: CollectorRegistry,
    whole: bool = True,
) -> FastAPI:
    """The application. Other edges add their routes to ``app.router.routes``; ``registry`` is what ``/metrics`` shows.

    One that is not ``whole`` answers the same, and has the routes of a noun from the first request for them on.
    """
    app = FastAPI(
        title="Gnomon",
        version=version,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.services = services
    nouns = Nouns(app.router.routes)
    _describe(app, nouns)
    app.state.methods_of = lambda scope: methods_of(app, scope)
    if whole:
        nouns.bring_all()
    else:
        app.add_middleware(OnDemand, nouns=nouns)
    for router in (health.routes(services, version, registry), documents.routes(app.openapi)):
        app.router.routes.extend(router.routes)
    app.add_exception_handler(GnomonError, problems.on_error)
    app.add_exception_handler(RequestValidationError, problems.on_validation)
    app.add_exception_handler(HTTPException, problems.on_http)
    app.add_middleware(Exchange, clock=clock, entropy=entropy, figures=HttpFigures(registry))
    return app


def methods_of(app: FastAPI, scope: Scope) -> set[str]:
    """Every method that the address of a request has, over all routes (FastAPI's own answer names one route's)."""
    found: set[str] = set()
    for route in app.router.routes:
        if route.matches(scope)[0] is not Match.NONE:
            found |= set(getattr(route, "methods", None) or ())
    return found | ({"HEAD"} if "GET" in found else set())


def guard_of(route: APIRoute) -> Requires | None:
    """The guard that a route declares (SEC-1)."""
    calls = (inner.call for inner in route.dependant.dependencies)
    return next((call for call in calls if isinstance(call, Requires)), None)


def _describe(app: FastAPI, nouns: Nouns) -> None:
    """Let ``app.openapi`` give the whole document: bodies, scopes, one shape of problem; made once."""
    made: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not made:
            nouns.bring_all()
            write_schemas()
            document = get_openapi(title=app.title, version=app.version, routes=app.router.routes)
            for route, operation in _operations(app, document):
                guard = guard_of(route)
                operation["security"] = [] if guard is None else [{"key": []}]
                if guard is not None:
                    operation["x-scope"] = guard.scope.value
            made.update(hoisted(document, [Problem]))
        return made

    app.openapi = openapi  # type: ignore[method-assign]


def _operations(app: FastAPI, document: dict[str, Any]) -> Iterator[tuple[APIRoute, dict[str, Any]]]:
    for route in app.router.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                yield route, document["paths"][route.path_format][method.lower()]
