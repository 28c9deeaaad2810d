"""``gnomon work``: makes an instance of any command. One process for each task, trigger or run (BRD-3, JOB-4, TGT-1).

Here are the options and the exit codes; what the command is told is in ``asked``, what its ending means in ``verdict``.
"""

import os
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.command import KEY_NAMES, Exit, Failed, Usage, local
from gnomon.cli.terminal import Terminal

if TYPE_CHECKING:
    from gnomon.cli.work.child import Commands
    from gnomon.cli.work.worker import Options, Tell
    from gnomon.client import ClientError
    from gnomon.client.place import Place

_PATIENCE_SECONDS = 10.0


def work(
    out: Terminal,
    *,
    command: Annotated[
        list[str], typer.Argument(help="The command, after --, with its arguments; no shell.")
    ],
    role: Annotated[str, typer.Option(help="The kind of worker that it is.")],
    instance: Annotated[
        str | None, typer.Option(help="Its name among those of the role.", show_default="HOST-PID")
    ] = None,
    url: Annotated[
        str | None, typer.Option(envvar="GNOMON_URL", help="The server.", show_default="this machine's")
    ] = None,
    key: Annotated[str | None, typer.Option(envvar=KEY_NAMES, help="The API key for it.")] = None,
    most: Annotated[int, typer.Option("--max", min=1, max=1_000, help="How many at once.")] = 1,
    once: Annotated[
        bool, typer.Option("--once", help="Do one task, if there is one, and end; take no pushes.")
    ] = False,
    tasks: Annotated[bool, typer.Option(help="Claim tasks from the board.")] = True,
    push: Annotated[bool, typer.Option(help="Be pushed triggers of jobs, and runs.")] = True,
    timeout_seconds: Annotated[
        float | None, typer.Option("--timeout", min=0.001, help="Seconds for one process.")
    ] = None,
    kill_seconds: Annotated[
        float, typer.Option("--kill-after", min=0, help="Seconds between SIGTERM and SIGKILL.")
    ] = 5,
    drain_seconds: Annotated[
        float, typer.Option("--grace", min=0, help="Seconds for what is at work when it is stopped.")
    ] = 30,
    pass_key: Annotated[
        bool, typer.Option("--pass-key", help="Give the command GNOMON_URL and GNOMON_API_KEY.")
    ] = False,
) -> None:
    """Make an instance of any command: one process for each task, trigger or run.

    The work is on its stdin and in GNOMON_ variables. Exit 0 is done, 75 puts a task back, anything else blocks it.
    """
    import asyncio

    from gnomon.cli.work.asked import clean
    from gnomon.cli.work.child import Commands
    from gnomon.cli.work.worker import Options
    from gnomon.client.errors import ClientError
    from gnomon.client.place import find
    from gnomon.domain.invocation import TargetFailure

    if once and not tasks:
        raise Usage("--once does one task, and --no-tasks takes none. Choose one of them.")
    if not tasks and not push:
        raise Usage("With --no-tasks and --no-push there is nothing to do.")
    try:
        place = find(url or _local(), key)
    except ValueError as error:
        raise Usage(str(error)) from error
    opens = place.key or ""
    passed = {"GNOMON_URL": place.url, "GNOMON_API_KEY": opens, "GNOMON_KEY": opens} if pass_key else {}
    try:
        commands = Commands(command, clean(keep=passed), timeout_seconds)
    except TargetFailure as failure:
        raise Usage(f"{failure.message[:1].upper()}{failure.message[1:]}.") from failure
    name = instance or f"{os.uname().nodename}-{os.getpid()}"
    options = Options(role, name, most, once, tasks, push and not once, kill_seconds, drain_seconds)
    try:
        shown = f"{name} works as {role} for {place.url}: {shlex.join(command)}"
        failed = asyncio.run(_work(place, commands, options, lambda event: _tell(out, event, shown)))
    except ClientError as error:
        raise _failed(error) from error
    finally:
        commands.close()
    if once and failed:
        raise typer.Exit(Exit.FAILED)


async def _work(place: "Place", commands: "Commands", options: "Options", tell: "Tell") -> int:
    """Work until a signal; how much failed."""
    from gnomon.cli.work.worker import Worker
    from gnomon.client import AsyncClient
    from gnomon.edges.server import stop_signal

    client: AsyncClient = AsyncClient(place.url, place.key, patience_seconds=_PATIENCE_SECONDS)
    async with stop_signal() as stop, client:
        worker = Worker(client, commands, options, tell)
        await worker.run(stop)
    return worker.failed


def _local() -> str:
    """This machine's server, where no other is named."""
    from gnomon.settings import load

    return f"http://127.0.0.1:{load().port}"


def _failed(error: "ClientError") -> Failed:
    from gnomon.client.errors import Refused, Unauthenticated, Unreachable

    if isinstance(error, Unreachable):
        return Failed({"detail": str(error), "code": "unreachable"}, Exit.UNREACHABLE)
    if isinstance(error, Unauthenticated):
        return Failed({**error.problem, "detail": f"{error.detail} Name a key with GNOMON_API_KEY or --key."})
    return Failed(error.problem if isinstance(error, Refused) else str(error))


def _tell(out: Terminal, event: dict[str, Any], shown: str) -> None:
    if out.as_json:
        out.event(event)
        return
    what = next((event[kind] for kind in ("task", "trigger", "run") if kind in event), "")
    match event["event"]:
        case "started":
            out.line(shown)
        case "begun":
            name = event.get("title") or event.get("job")
            out.line(f"{what} begun{f': {name}' if name else ''}")
        case "reported":
            note = str(event.get("note") or "").strip().splitlines()
            out.line(f"{what} {event['status']}{': ' + note[-1] if note else ''}")
        case "draining":
            out.note(f"Stopping; {event['at_work']} at work. Ctrl-C once more ends it.")
        case "nothing":
            out.note(f"There is no task for {event['role']}.")
        case "waiting":
            out.note(f"{event['detail']} Trying again.")
        case kind:
            out.note(f"{what} {kind}{': ' + event['detail'] if 'detail' in event else ''}")


def register(app: typer.Typer, panel: str) -> None:
    """Add the command. Whatever follows its own options is the command's, whether -- stands between or not."""
    local(app, "work", rich_help_panel=panel, context_settings={"allow_interspersed_args": False})(work)
