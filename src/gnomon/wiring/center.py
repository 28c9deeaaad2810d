"""One process of the product, built: what it starts with and how it stops."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import structlog

from gnomon.domain.errors import Unavailable
from gnomon.edges.http.services import Services
from gnomon.edges.mcp.services import Services as ToolServices
from gnomon.runtimes.table import RuntimeTable
from gnomon.services.engine import Engine
from gnomon.services.verify import Verify
from gnomon.wiring.databases import Link

if TYPE_CHECKING:
    from fastapi import FastAPI

    from gnomon.edges.mcp.door import Door

_log = structlog.get_logger()


class Center:
    """One process of the product over one database: the app, the services behind it, the engine that ticks.

    ``tools`` are what the tools of ``/mcp`` stand on, for whoever serves them in another way.
    """

    def __init__(
        self,
        *,
        build_app: "Callable[[], tuple[FastAPI, Door | None]]",
        services: Services,
        engine: Engine,
        runtimes: RuntimeTable,
        link: Link,
        verify: Verify,
        tools: ToolServices,
    ) -> None:
        self.services = services
        self.engine = engine
        self.verify = verify
        self._runtimes = runtimes
        self._link = link
        self.tools = tools
        self._build_app = build_app
        self._door: Door | None = None

    @property
    def process_id(self) -> str:
        """The random id of this start of this process (RUN-5a)."""
        return self.engine.process_id

    @cached_property
    def app(self) -> "FastAPI":
        """The application, made when it is first asked for: a process that answers no HTTP never pays for it."""
        app, self._door = self._build_app()
        return app

    async def start(self) -> None:
        """Start the loops: after the sockets listen (DSP-1)."""
        self._link.listen()
        await self.engine.start()

    async def drain(self) -> None:
        """Stop claiming, end the waits for tasks, and let runs finish, within the grace of the settings (DSP-10)."""
        self.services.tasks.end_waits()
        await self.engine.drain()

    async def stop(self) -> None:
        """Stop what is left, heartbeat last, and close the database."""
        if self._door is not None:
            await self._door.close()
        try:
            await self.engine.stop()
        except (
            Unavailable
        ) as error:  # others take the heartbeat's silence for the word that could not be written
            _log.warning("stopped_without_a_word", error=error.message)
        finally:
            await self._runtimes.close()
            await self._link.close()
