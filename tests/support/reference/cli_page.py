"""``docs/reference/cli.md``: every command with its arguments and options, as the program itself tells them."""

from collections.abc import Iterator
from typing import Any

import typer

from gnomon.cli.app import build
from support.reference.markdown import cell, table


def cli_page() -> str:
    """The page."""
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
        "runs on it; with `--url` and `--key` (`GNOMON_URL`, `GNOMON_API_KEY`) they ask that server instead.",
        "Where there is no `GNOMON_API_KEY`, `GNOMON_KEY` is read.",
    ]
    for path, command in _commands(root, "gnomon"):
        lines += ["", f"## {path}", "", *_described(command)]
    return "\n".join(lines) + "\n"


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, each in inner.items():
        if each.hidden:
            continue
        yield from _commands(each, f"{path} {name}")


def _described(command: Any) -> list[str]:
    lines = [_with_example(str(command.help))]
    rows = [row for row in (_row(each) for each in command.params) if row is not None]
    if rows:
        lines += ["", *table(("argument or option", "meaning"), rows)]
    return lines


def _with_example(text: str) -> str:
    """The help with its example as a block: a line that ends with a backslash goes on in the next."""
    before, said, example = text.partition("For example:\n\n")
    return f"{before}{said}```text\n{example.strip()}\n```" if said else text


def _row(parameter: Any) -> tuple[str, str] | None:
    if parameter.name in ("json", "url", "key", "help"):
        return None
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        name = ", ".join(f"`{each}`" for each in parameter.opts)
    text = cell(parameter.help or "")
    shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    default = "" if shown in (None, False, True, ...) or parameter.required else f" Default `{shown}`."
    return name, text + default
