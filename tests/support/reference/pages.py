"""The generated pages by their file's name."""

from collections.abc import Callable, Mapping

from support.reference.api_page import api_page
from support.reference.audit_page import audit_page
from support.reference.cadence_page import cadence_page
from support.reference.cli_page import cli_page
from support.reference.frames_page import frames_page
from support.reference.mcp_page import mcp_page
from support.reference.schema_page import schema_page
from support.reference.settings_page import settings_page
from support.reference.verify_page import verify_page

PAGES: Mapping[str, Callable[[], str]] = {
    "api.md": api_page,
    "audit.md": audit_page,
    "cadence.md": cadence_page,
    "cli.md": cli_page,
    "frames.md": frames_page,
    "mcp.md": mcp_page,
    "schema.md": schema_page,
    "settings.md": settings_page,
    "verify.md": verify_page,
}
