"""``gnomon import crontab``: a crontab as agents and schedules, with a plan first, safe to repeat (CONTRACT, CLI)."""

from typing import Annotated

import typer

from gnomon.cli.apply import carry_out
from gnomon.cli.command import Failed, Talk, Usage, asking


def crontab(
    talk: Talk,
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The crontab; - is standard input.")],
    zone: Annotated[
        str | None, typer.Option(help="The zone of its wall clock.", show_default="the machine's")
    ] = None,
    system: Annotated[
        bool, typer.Option("--system", help="Each line names a user, as in /etc/crontab.")
    ] = False,
    timeout: Annotated[int, typer.Option(min=1, max=86_400, help="Seconds for one run.")] = 86_400,
    partly: Annotated[
        bool, typer.Option("--partly", help="Leave out what can't be imported instead of refusing all.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask after the plan.")] = False,
) -> None:
    """Make an agent of each command of a crontab and a schedule of each line, all of it or nothing.

    The crontab itself stays as it is: take the lines out of it once you are content.

    For example:

    crontab -l | gnomon import crontab - --dry-run
    """
    from getpass import getuser
    from pathlib import Path

    from gnomon.domain import crontab as crontabs

    found = crontabs.read(
        _text(file),
        zone=_zone(zone),
        home=str(Path.home()),
        user=getuser() if system else None,
    )
    for number, sentence in found.left_out:
        talk.out.note(f"Line {number}: {sentence}.")
    refused = [{"field": f"line {each.line}", "message": each.reason} for each in found.refused]
    if refused and not partly:
        detail = f"{len(refused)} of its lines can't be imported; nothing was changed. --partly imports the others."
        raise Failed({"detail": detail, "code": "crontab_refused", "errors": refused})
    for each in found.refused:
        talk.out.note(f"Line {each.line} is left out: {each.reason}.")
    carry_out(talk, crontabs.document(found.entries, timeout), dry_run=dry_run, yes=yes)


def _zone(given: str | None) -> str:
    from gnomon.adapters.local_zone import local_zone
    from gnomon.cadence import zone_names

    if given is None:
        found = local_zone()
        if found is None:
            raise Usage("This machine doesn't say which zone its clock shows: name it with --zone.")
        return found
    if given not in zone_names():
        raise Usage(f'"{given}" is no IANA zone such as Europe/Berlin.')
    return given


def _text(file: str) -> str:
    import sys
    from pathlib import Path

    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"{file} can't be read: {getattr(error, 'strerror', None) or error}.") from error


def register(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="import", help="Take over what another scheduler has.", rich_help_panel=panel)

    @group.callback()
    def _import() -> None:
        pass

    asking(group, "crontab", creates=True)(crontab)
