"""What a process says when it is up: its address, the first key, what to try, and what another one left unfinished."""

import shlex
from typing import TYPE_CHECKING

from gnomon.cli.counting import counted
from gnomon.cli.terminal import Terminal, shown
from gnomon.domain.errors import Unavailable
from gnomon.domain.instants import rfc3339

if TYPE_CHECKING:
    from gnomon.settings import Settings
    from gnomon.wiring import Center


def announce(
    out: Terminal,
    settings: "Settings",
    address: str,
    key: str | None,
    *,
    welcome: bool,
    named: str | None,
) -> None:
    """Say that the process is up: where, on what, and to a newcomer what to try."""
    if out.as_json:
        out.event({"address": address, "database": settings.database_place, "key": key})
        return
    place = "PostgreSQL" if settings.is_postgres else settings.database_place
    out.line(f"Gnomon is up at {address}, on {place}.")
    if settings.is_postgres and named is None:
        out.line(f"    {settings.database_place}")
    if key is not None:
        out.line()
        out.line("This is the admin key. It is shown this once; keep it:")
        out.line(f"    {key}")
    if welcome:
        out.line()
        out.line(f"The API in a browser:  {address}/docs")
        out.line("Try in another terminal, in this folder:")
        program = _program()
        if named is not None:  # a flag of this process is unknown to every other
            out.line(f"    export GNOMON_DATABASE_URL={shlex.quote(named)}")
        out.line(f"    {program} preview '0 9 * * 1-5' --zone Europe/Berlin")
        out.line(f"    {program} schedules list")
        out.line(f"Ctrl-C stops it; runs in flight get {counted(settings.shutdown_grace_seconds, 'second')}.")


def _program() -> str:
    """How this program is called from here: by its name where the shell finds it, else by its path."""
    import os
    import shutil
    import sys

    found = shutil.which("gnomon")
    if found is not None or not sys.argv[0].endswith("gnomon"):
        return "gnomon"
    return os.path.relpath(sys.argv[0])


def address_of(host: str, port: int) -> str:
    """The address under which this machine's browser finds it."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 - told, not bound
    return f"http://{shown}:{port}"


async def tell_left_over(out: Terminal, center: "Center") -> None:
    """Say how many runs other processes hold, who may have been killed, and when those are free again (RUN-7)."""
    if out.as_json:
        return
    try:
        found = await center.engine.watchdog.elsewhere()
    except Unavailable:  # it is up all the same, and says by itself what it can't reach
        return
    if found is None:
        return
    one = found.runs == 1
    whose = "another process is" if one else "other processes are"
    killed = "that process was killed, the run is" if one else "those were killed, the runs are"
    out.sentence(
        f"{counted(found.runs, 'run')} of {whose} unfinished. If {killed} closed, or queued again, by "
        f"{shown(rfc3339(found.by))}: `gnomon runs list --status running`."
    )
