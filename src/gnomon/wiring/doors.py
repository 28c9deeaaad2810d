"""The doors that stand in the HTTP application of a server: for instances that connect, and for agents that use tools."""

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from gnomon.adapters.metrics import ConnectionCollector
from gnomon.edges.http import problems
from gnomon.edges.http.services import Services
from gnomon.edges.mcp.door import Door
from gnomon.edges.mcp.services import Services as ToolServices
from gnomon.edges.ws import connect
from gnomon.wiring.parts import Parts


def mount(app: FastAPI, tools: ToolServices, version: str) -> Door:
    """Stand ``/mcp`` beside the routes of HTTP (UI-5); whoever stops the application closes the door."""
    door = Door(tools, version=version)
    app.router.routes.append(door.route)
    return door


def let_instances_in(app: FastAPI, services: Services, parts: Parts, registry: CollectorRegistry) -> None:
    """Let instances connect to the application, and say how many are."""
    pushed = parts.pushed
    registry.register(ConnectionCollector(pushed.connections.__len__))
    app.state.connections = pushed.connections
    app.router.routes.extend(
        connect.routes(
            api_keys=services.api_keys,
            connections=pushed.connections,
            instances=pushed.instances,
            clock=parts.clock,
            entropy=parts.entropy,
            heartbeat_seconds=parts.settings.heartbeat_seconds,
            heartbeat_timeout_seconds=parts.settings.heartbeat_timeout_seconds,
            problem=problems.on_error,
        )
    )
