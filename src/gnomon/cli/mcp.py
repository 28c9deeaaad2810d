"""``gnomon mcp``: the tools of the Model Context Protocol for a client on this machine (UI-5).

Like every command it opens the database of the settings itself, or asks the server that is named. A client starts it and
speaks to it over standard input and output; nobody types into it.
"""

import getpass
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.command import Failed, Key, Url, Usage, local
from gnomon.cli.terminal import Terminal

if TYPE_CHECKING:
    from gnomon.edges.mcp.tool import Seat
    from gnomon.settings import Settings

_PING = {"jsonrpc": "2.0", "id": 0, "method": "ping"}
_WORK = ("tasks:*",)
_HOW = (
    "This speaks the Model Context Protocol over standard input and output: an agent's program starts it, nobody types "
    "into it. `gnomon mcp --print-config` prints what to put into the configuration of such a program."
)


def mcp(
    out: Terminal,
    *,
    role: Annotated[
        str | None,
        typer.Option(help="Claim tasks of this role alone; without --scope only the board is there."),
    ] = None,
    instance: Annotated[
        str | None, typer.Option(help="The name to work under.", show_default="this machine and process")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="What it may do, such as schedules:read; may be repeated.", show_default="everything"
        ),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print what to put into the configuration of a client.")
    ] = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Give an agent on this machine tools: claim and report tasks, watch over schedules."""
    if url and (role or scope or instance):
        raise Usage(
            "With a server its key says what is allowed: --role, --scope and --instance go without --url."
        )
    if print_config:
        out.data(_config(url, role, instance, scope or []))
        return
    if sys.stdin.isatty():
        raise Usage(_HOW)
    import asyncio

    from gnomon.adapters import logs

    logs.configure(level="warning", as_json=False)
    if url:
        asyncio.run(_relay(url, key))
    else:
        asyncio.run(_serve(*_seated(role, instance, scope)))


def _seated(role: str | None, instance: str | None, scope: list[str] | None) -> "tuple[Settings, Seat]":
    """The settings with the database, and who works on it."""
    import socket

    from gnomon.cli.api import operator_token, require_database
    from gnomon.domain.api_key import seal_of
    from gnomon.domain.caller import Caller
    from gnomon.edges.mcp.tool import Seat
    from gnomon.settings import load

    scopes = tuple(scope) if scope else _WORK if role else ("*",)
    _check(scopes, role, instance)
    settings = load()
    require_database(settings)
    caller = Caller(f"mcp {_user()}", scopes, role=role)
    seat = Seat(
        caller, seal_of(operator_token(settings)), role, instance or f"{socket.gethostname()}-{os.getpid()}"
    )
    return settings, seat


async def _serve(settings: "Settings", seat: "Seat") -> None:
    from gnomon.edges.mcp.stdio import serve
    from gnomon.wiring import VERSION, open_center

    center = await open_center(settings, dispatch=False, work=False)
    try:
        await serve(center.tools, VERSION, seat)
    finally:
        await center.stop()


async def _relay(url: str, key: str | None) -> None:
    import httpx2
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types.version import LATEST_MODERN_VERSION

    from gnomon.cli.api import TIMEOUT, place_of, problem_of, unreachable
    from gnomon.edges.mcp.stdio import relay
    from gnomon.wiring import VERSION

    place = place_of(url)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT) as http:
        try:
            answer = await http.post(f"{place}/mcp", json=_PING, headers={"Accept": "application/json"})
        except httpx2.TransportError as error:
            raise unreachable(place, error) from error
        if not answer.is_success:
            raise Failed(problem_of(answer, place))

        def connect() -> Client:
            return Client(
                streamable_http_client(f"{place}/mcp", http_client=http),
                mode=LATEST_MODERN_VERSION,
                cache=None,
            )

        await relay(connect, place, VERSION)


def _check(scopes: tuple[str, ...], role: str | None, instance: str | None) -> None:
    from gnomon.domain.form import Form
    from gnomon.domain.instance import read_name
    from gnomon.domain.scopes import NAMES

    unknown = [name for name in scopes if name not in NAMES]
    if unknown:
        raise Usage(f"{', '.join(unknown)}: there is no such scope. `gnomon keys create --help` names them.")
    form = Form({"role": role, "instance": instance})
    form.slug("role")
    if instance is not None:
        read_name(form, "instance")
    if form.faults:
        raise Usage("; ".join(f"--{fault.field} {fault.message}" for fault in form.faults))


def _config(url: str | None, role: str | None, instance: str | None, scope: list[str]) -> dict[str, Any]:
    """The snippet that most clients take. A key is named and never printed, a password is left out."""
    if url:
        from gnomon.cli.api import place_of

        entry: dict[str, Any] = {
            "type": "http",
            "url": f"{place_of(url)}/mcp",
            "headers": {"Authorization": "Bearer ${GNOMON_API_KEY}"},
        }
    else:
        from gnomon.settings import load

        settings = load()
        words = ["mcp"]
        for flag, value in (
            ("--role", role),
            ("--instance", instance),
            *(("--scope", each) for each in scope),
        ):
            words += [flag, value] if value else []
        database = (
            settings.database_place
            if settings.is_postgres
            else f"sqlite:///{settings.database_path.resolve()}"
        )
        entry = {
            "command": shutil.which("gnomon") or str(Path(sys.argv[0]).absolute()),
            "args": words,
            "env": {"GNOMON_DATABASE_URL": database},
        }
    return {"mcpServers": {"gnomon": entry}}


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        return str(os.getuid())


def register(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    local(app, "mcp", rich_help_panel=panel)(mcp)
