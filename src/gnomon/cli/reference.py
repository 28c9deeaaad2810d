"""The reference pages of the command line and the settings, made from the program itself: ``python -m gnomon.cli.reference``.

A test compares the pages with what this module makes, so that none of them can grow old.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from gnomon.cli.app import build
from gnomon.settings import Settings, inventory

PAGES = Path("docs/reference")


def cli_page() -> str:
    """``docs/reference/cli.md``."""
    root = typer.main.get_command(build())
    lines = [
        "# The command line",
        "",
        f"{root.help}",
        "",
        "Exit codes: 0 done, 1 refused or failed, 2 bad usage, 3 not reachable. Every command takes `--json`, which",
        "prints results as JSON on standard output and problems as JSON on standard error, and `--help`. `NO_COLOR` is",
        "honoured.",
        "",
        "Commands that ask the API open the database of the [settings](settings.md) themselves, whether or not a server",
        "runs on it; with `--url` and `--key` (`GNOMON_URL`, `GNOMON_KEY`) they ask that server instead.",
    ]
    for path, command in _commands(root, "gnomon"):
        lines += ["", f"## {path}", "", *_described(command)]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """``docs/reference/settings.md``."""
    lines = [
        "# Settings",
        "",
        "`GNOMON_…` variables win over `gnomon.toml` in the working directory (or the file that `GNOMON_CONFIG` names),",
        "which wins over the defaults; a flag of a command wins over all. In the file a setting has its name without the",
        "prefix, in lower case. What is unknown, out of range or inconsistent stops the start, all of it told at once.",
        "`gnomon settings` prints the values in use and where each came from.",
    ]
    for entry in inventory(Settings()):
        default = "unset" if entry.default is None else str(entry.default).lower()
        bounds = f", {entry.range}" if entry.range else ""
        lines += [
            "",
            f"## {entry.variable}",
            "",
            f"{entry.meaning}",
            "",
            f"{entry.type}{bounds}; default `{default}`",
        ]
    return "\n".join(lines) + "\n"


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, each in inner.items():
        yield from _commands(each, f"{path} {name}")


def _described(command: Any) -> list[str]:
    lines = [str(command.help)]
    rows = [row for row in (_row(each) for each in command.params) if row is not None]
    if rows:
        lines += ["", "| argument or option | meaning |", "| --- | --- |", *rows]
    return lines


def _row(parameter: Any) -> str | None:
    if parameter.name in ("json", "url", "key", "help"):
        return None
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        name = ", ".join(f"`{each}`" for each in parameter.opts)
    text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    default = "" if shown in (None, False, True, ...) or parameter.required else f" Default `{shown}`."
    return f"| {name} | {text}{default} |"


def main() -> None:
    """Write both pages into the folder that the one argument names, ``docs/reference`` unless it does."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGES
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cli.md").write_text(cli_page(), encoding="utf-8")
    (folder / "settings.md").write_text(settings_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
