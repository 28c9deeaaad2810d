"""The tree of commands. Only names and help texts are here, so that ``--help`` costs nothing but typer."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gnomon.cli import (
    agents,
    apply,
    audit,
    calendars,
    crontab,
    doctor,
    instances,
    jobs,
    keys,
    mcp,
    preview,
    runs,
    schedules,
    serving,
    sessions,
    settings,
    tasks,
    teams,
    verify,
    work,
)

RUN = "Run it"
NOUNS = "What it works with"
CODE = "As code"
ASK = "Ask it"
PANELS = (RUN, NOUNS, ASK, CODE)


class _InPanels(TyperGroup):
    """Names its commands in the order of their panels: typer names what has commands of its own after what has none."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names; what typer shows and what ``build`` registers stay the same."""
        return sorted(super().list_commands(ctx), key=lambda name: PANELS.index(_panel(self.commands[name])))


def _panel(command: Any) -> str:
    return str(command.rich_help_panel)


def build() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="gnomon",
        cls=_InPanels,
        help="A control centre for unattended work: each slot fires once, and every slot is answered for.",
        epilog="Exit codes: 0 done, 1 refused or failed, 2 bad usage, 3 not reachable.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def _root(
        *,
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        pass

    serving.register(app, RUN)
    work.register(app, RUN)
    mcp.register(app, RUN)
    for noun in (agents, teams, schedules, runs, tasks, jobs, sessions, instances, calendars, keys):
        noun.register(app, NOUNS)
    apply.register(app, CODE)
    crontab.register(app, CODE)
    preview.register(app, ASK)
    audit.register(app, ASK)
    verify.register(app, ASK)
    doctor.register(app, ASK)
    settings.register(app, ASK)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"gnomon {version('gnomon')}")
        raise typer.Exit
