"""The HTTP application of one process, over its services and figures.

Importing this takes longer than all the rest of ``wiring``; ``Center`` does it for whoever asks for the application.
"""

from typing import TYPE_CHECKING

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from gnomon.adapters.metrics import BoardCollector, ProcessCollector, TriggerCollector
from gnomon.edges.http.app import build_app
from gnomon.edges.http.services import Services
from gnomon.edges.mcp.services import Services as ToolServices
from gnomon.services.task_sweep import TaskSweep
from gnomon.wiring.parts import Parts

if TYPE_CHECKING:
    from gnomon.edges.mcp.door import Door


def build_http(
    parts: Parts, services: Services, tools: ToolServices, board: TaskSweep, *, version: str, whole: bool
) -> "tuple[FastAPI, Door | None]":
    """The application, and the door of ``/mcp`` in it; it has no doors where it is not ``whole`` (``build_app``)."""
    registry = CollectorRegistry()
    registry.register(ProcessCollector(parts.engine.counts))
    registry.register(TriggerCollector(parts.job_engine.counts))
    registry.register(BoardCollector(lambda: board.depths))
    app = build_app(
        services,
        clock=parts.clock,
        entropy=parts.entropy,
        version=version,
        registry=registry,
        whole=whole,
    )
    if not whole:
        return app, None
    from gnomon.wiring.doors import let_instances_in, mount  # noqa: PLC0415 - nobody comes in from outside above

    let_instances_in(app, services, parts, registry)
    return app, mount(app, tools, version)
