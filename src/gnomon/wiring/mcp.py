"""What the tools of the Model Context Protocol stand on: the same services as HTTP (UI-5)."""

from gnomon.edges.http.services import Services
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
