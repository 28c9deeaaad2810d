"""Whether the process lives, whether it does its work, and its figures (OPS-5a, OPS-6).

Open to all: nothing here names a tenant, a record or a setting.
"""

from typing import Any

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from gnomon.cadence import zone_data_version
from gnomon.edges.http.auth import public
from gnomon.edges.http.services import Services


class HealthShape(BaseModel):
    """The process answers."""

    status: str
    version: str
    zone_data: str


class CheckShape(BaseModel):
    """One thing that readiness depends on."""

    name: str
    ok: bool
    detail: str


class ReadinessShape(BaseModel):
    """Whether work gets done here."""

    status: str
    checks: list[CheckShape]


def routes(services: Services, version: str, registry: CollectorRegistry) -> APIRouter:
    """The three routes."""
    router = APIRouter(tags=["health"], dependencies=[public()])

    @router.get("/healthz", summary="Say that the process lives", response_model=HealthShape)
    async def healthz() -> Response:
        return JSONResponse({"status": "ok", "version": version, "zone_data": zone_data_version()})

    @router.get(
        "/readyz",
        summary="Say whether work gets done here",
        response_model=ReadinessShape,
        responses={
            503: {"description": "Something that the work needs is not well", "model": ReadinessShape}
        },
    )
    async def readyz() -> Response:
        checks = await services.readiness()
        ready = all(check.ok for check in checks)
        body: dict[str, Any] = {
            "status": "ready" if ready else "not_ready",
            "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks],
        }
        return JSONResponse(body, 200 if ready else 503)

    @router.get(
        "/metrics",
        summary="Give the figures in Prometheus' text form",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return router
