"""Which noun answers at which addresses, and when its routes come: before the first request, or with the first for them.

A server has them all from its start. A command that sends one request within its own process would build, in vain, fourteen
of fifteen. Knows no noun but by name.
"""

from collections.abc import Mapping
from importlib import import_module

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX = "/v1/"
# module: the first words of its addresses, behind the prefix
NOUNS: Mapping[str, tuple[str, ...]] = {
    "agents": ("agents",),
    "teams": ("teams",),
    "schedules": ("schedules",),
    "runs": ("runs",),
    "tasks": ("tasks",),
    "jobs": ("jobs",),
    "instances": ("instances", "connect"),
    "calendars": ("calendars",),
    "keys": ("keys",),
    "sessions": ("sessions",),
    "previews": ("preview",),
    "records": ("audit", "settings"),
    "doctor": ("doctor",),
    "overview": ("overview", "usage"),
    "apply": ("apply", "export"),
}


class Nouns:
    """Puts the routes of nouns into the table of an application, those of each noun once."""

    def __init__(self, table: list[BaseRoute]) -> None:
        self._table = table
        self._absent = dict(NOUNS)

    def bring(self, path: str) -> None:
        """The routes that could answer at this path."""
        word = path.removeprefix(PREFIX).partition("/")[0]
        for noun in [noun for noun, words in self._absent.items() if word in words]:
            self._put(noun)

    def bring_all(self) -> None:
        """The routes of every noun."""
        for noun in list(self._absent):
            self._put(noun)

    def _put(self, noun: str) -> None:
        self._table.extend(import_module(f"gnomon.edges.http.{noun}").router.routes)
        del self._absent[noun]


class OnDemand:
    """The middleware that brings the routes for each request before it is looked for among them."""

    def __init__(self, app: ASGIApp, *, nouns: Nouns) -> None:
        self._app = app
        self._nouns = nouns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one exchange through."""
        if scope["type"] == "http":
            self._nouns.bring(scope["path"])
        await self._app(scope, receive, send)
