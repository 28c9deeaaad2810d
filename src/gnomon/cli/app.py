"""The tree of commands. Only names and help texts are here, so that ``--help`` costs nothing but typer."""

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

RUN = "Run it"
NOUNS = "What it works with"
CODE = "As code"
ASK = "Ask it"
PANELS = (RUN, NOUNS, ASK, CODE)
# module: its panel, and the commands that it registers
PARTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "serving": (RUN, ("up", "serve", "worker", "migrate")),
    "work": (RUN, ("work",)),
    "mcp": (RUN, ("mcp",)),
    "agents": (NOUNS, ("agents",)),
    "teams": (NOUNS, ("teams",)),
    "schedules": (NOUNS, ("schedules", "explain")),
    "runs": (NOUNS, ("runs",)),
    "tasks": (NOUNS, ("tasks",)),
    "jobs": (NOUNS, ("jobs",)),
    "sessions": (NOUNS, ("sessions",)),
    "instances": (NOUNS, ("instances",)),
    "calendars": (NOUNS, ("calendars",)),
    "keys": (NOUNS, ("keys",)),
    "apply": (CODE, ("apply", "export")),
    "crontab": (CODE, ("import",)),
    "preview": (ASK, ("preview",)),
    "audit": (ASK, ("audit",)),
    "verify": (ASK, ("verify",)),
    "doctor": (ASK, ("doctor",)),
    "settings": (ASK, ("settings", "version")),
}


class _InPanels(TyperGroup):
    """Names its commands in the order of their panels: typer names what has commands of its own after what has none."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names; what typer shows and what ``build`` registers stay the same."""
        return sorted(super().list_commands(ctx), key=lambda name: PANELS.index(_panel(self.commands[name])))


def _panel(command: Any) -> str:
    return str(command.rich_help_panel)


def build(first: str | None = None) -> typer.Typer:
    """The whole command line; where its ``first`` word names a command, no more of it than that one needs.

    To read the hundred others takes typer as long as the answer of a server.
    """
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

    asked = [part for part, (_, names) in PARTS.items() if first in names] or list(PARTS)
    for part in asked:
        import_module(f"gnomon.cli.{part}").register(app, PARTS[part][0])
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"gnomon {version('gnomon')}")
        raise typer.Exit
