"""``gnomon up``, ``serve``, ``worker`` and ``migrate``: the processes of the product.

``up`` is all in one, ``serve`` answers HTTP and fires schedules, ``worker`` works on runs; the settings can turn each
half off (DSP-1, OPS-4). What a process is made of, ``wiring`` knows.
"""

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.command import Failed, Usage, local
from gnomon.cli.counting import counted
from gnomon.cli.terminal import Terminal
from gnomon.cli.welcome import address_of, announce, tell_left_over

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Iterator

    from gnomon.settings import Settings
    from gnomon.wiring import Center

POSTGRES_FOLDER = Path("gnomon-postgres")
Host = Annotated[str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(help="The port to listen on.", show_default="8420")]
DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", help="The database.", show_default="./gnomon.db")
]


def up(
    out: Terminal,
    *,
    host: Host = None,
    port: Port = None,
    database_url: DatabaseUrl = None,
    postgres: Annotated[
        bool,
        typer.Option(
            "--postgres", help="Start PostgreSQL too, in ./gnomon-postgres, and stop it at the end."
        ),
    ] = False,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Bring sample agents, a team and schedules to watch; repeating adds nothing."
        ),
    ] = False,
) -> None:
    """Start everything in one process: HTTP, dispatcher, runner."""
    if postgres and database_url is not None:
        raise Usage(
            "--postgres starts a database of its own, --database-url names another one. Choose one of them."
        )
    settings = _settings(host=host, port=port, database_url=database_url)
    _serve(out, settings, first_key=True, demo=demo, named=database_url, own_postgres=postgres)


def serve(out: Terminal, *, host: Host = None, port: Port = None, database_url: DatabaseUrl = None) -> None:
    """Answer HTTP and fire schedules; workers elsewhere do the work."""
    _serve(out, _settings(host=host, port=port, database_url=database_url), work=False)


def worker(out: Terminal, *, database_url: DatabaseUrl = None) -> None:
    """Work on runs, without HTTP; any number of them share one database."""
    settings = _settings(database_url=database_url)
    if not settings.works:
        raise Failed("GNOMON_WORK is off: this worker would do nothing.")
    from gnomon.edges.server import to_its_end

    _log(settings)
    with _runner() as runner:
        runner.run(to_its_end(_work(out, settings)))


def migrate(out: Terminal, *, database_url: DatabaseUrl = None) -> None:
    """Bring the database up to date, and make it where there is none."""
    import asyncio

    settings = _settings(database_url=database_url)
    from gnomon.wiring import migrate as apply_migrations

    applied = asyncio.run(apply_migrations(settings))
    if out.as_json:
        out.data({"database": settings.database_place, "applied": applied})
    elif not applied:
        out.line(f"{settings.database_place} is up to date.")
    else:
        out.line(f"{settings.database_place} is up to date; applied {', '.join(applied)}.")


def _settings(**flags: Any) -> "Settings":
    from gnomon.settings import load

    return load(**flags)


def _log(settings: "Settings") -> None:
    from gnomon.adapters import logs
    from gnomon.settings import LogFormat

    chosen = settings.log_format
    as_json = chosen is LogFormat.JSON or (chosen is LogFormat.AUTO and not logs.is_terminal())
    logs.configure(level=settings.log_level, as_json=as_json)


def _serve(
    out: Terminal,
    settings: "Settings",
    *,
    work: bool | None = None,
    first_key: bool = False,
    demo: bool = False,
    named: str | None = None,
    own_postgres: bool = False,
) -> None:
    from gnomon.edges.server import listen, to_its_end

    _log(settings)
    sockets = listen(
        settings.host, settings.port
    )  # before the database is touched: a port in use changes nothing
    with ExitStack() as stack:
        for each in sockets:
            stack.callback(each.close)
        if own_postgres:
            settings = stack.enter_context(_own_postgres(out, settings))
            named = settings.database_url
        if demo:
            _bring_demo(out, settings)
        runner = stack.enter_context(_runner())
        serving = _serve_on(sockets, out, settings, work=work, first_key=first_key, named=named)
        runner.run(to_its_end(serving))


@contextmanager
def _own_postgres(out: Terminal, settings: "Settings") -> "Iterator[Settings]":
    """A PostgreSQL server while Gnomon runs, and the settings with its address: one that has no password in it."""
    from gnomon.adapters.postgres_server import PostgresServer

    if not POSTGRES_FOLDER.exists():
        out.note(f"Making a PostgreSQL database in {POSTGRES_FOLDER.absolute()}.")
    with PostgresServer(POSTGRES_FOLDER) as server:
        yield settings.over(server.shown_url, origin="--postgres")


def _bring_demo(out: Terminal, settings: "Settings") -> None:
    from gnomon.cli.demo import bring

    bring(out, settings)
    _log(settings)


async def _serve_on(
    sockets: "list[socket.socket]",
    out: Terminal,
    settings: "Settings",
    *,
    work: bool | None,
    first_key: bool,
    named: str | None,
) -> None:
    from gnomon.edges.server import Server
    from gnomon.wiring import open_center

    center = await open_center(settings, work=work)
    app = center.app
    address = address_of(settings.host, sockets[0].getsockname()[1])
    key = await _first_key(center) if first_key else None

    async def started() -> None:
        await center.start()
        announce(out, settings, address, key, welcome=first_key, named=named)
        await tell_left_over(out, center)

    async def drain() -> None:
        out.note(
            f"Stopping; runs in flight get {counted(settings.shutdown_grace_seconds, 'second')}. Ctrl-C once more ends it."
        )
        await center.drain()

    server = Server(
        app,
        started=started,
        drain=drain,
        stopped=center.stop,
        ping_seconds=settings.heartbeat_seconds,
    )
    await server.serve(sockets=sockets)


async def _work(out: Terminal, settings: "Settings") -> None:
    from gnomon.edges.server import stop_signal
    from gnomon.wiring import open_center

    async with stop_signal() as stop:
        center = await open_center(settings, dispatch=False)
        try:
            await center.start()
            if out.as_json:
                out.event({"process_id": center.process_id, "database": settings.database_place})
            out.line(
                f"Working on the runs of {settings.database_place}, {settings.concurrency} at once. Ctrl-C stops."
            )
            await tell_left_over(out, center)
            await stop.wait()
        finally:
            await center.drain()
            await center.stop()


async def _first_key(center: "Center") -> str | None:
    """A key that may do everything, where the database has none yet."""
    from gnomon.domain.caller import system

    keys = center.services.api_keys
    if await keys.count():
        return None
    made = await keys.create_first(
        system("first start"), {"name": "admin, made at the first start", "scopes": ["*"]}
    )
    return None if made is None else made.text


def _runner() -> "asyncio.Runner":
    import asyncio

    from gnomon.adapters.interpreter import tune_interpreter

    tune_interpreter()
    try:
        import uvloop
    except ImportError:  # it has no wheel for Windows
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    for name, work in (("up", up), ("serve", serve), ("worker", worker), ("migrate", migrate)):
        local(app, name, rich_help_panel=panel)(work)
