"""The tools of the Model Context Protocol over the same services as HTTP (UI-5)."""

from fastapi import FastAPI

from gnomon.edges.http.services import Services
from gnomon.edges.mcp.door import Door
from gnomon.edges.mcp.services import Services as ToolServices
from gnomon.services.questions import Questions


def tool_services(services: Services, questions: Questions) -> ToolServices:
    """What the tools stand on."""
    return ToolServices(
        api_keys=services.api_keys,
        previews=services.previews,
        schedules=services.schedules,
        pausing=services.pausing,
        run_now=services.run_now,
        runs=services.runs,
        explain=services.explain,
        tasks=services.tasks,
        overview=services.overview,
        questions=questions,
    )


def mount(app: FastAPI, services: Services, questions: Questions, version: str) -> Door:
    """Stand ``/mcp`` beside the routes of HTTP; whoever stops the application closes the door."""
    door = Door(tool_services(services, questions), version=version)
    app.router.routes.append(door.route)
    return door
