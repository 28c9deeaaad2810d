"""``gnomon settings``: the inventory, with where each value came from (OPS-5); and ``gnomon version``."""

from dataclasses import asdict
from typing import Any

import typer

from gnomon.cli.command import local
from gnomon.cli.terminal import Terminal, fields


def settings(out: Terminal) -> None:
    """Show every setting: its value, where that came from, its range and its meaning."""
    from gnomon.settings import config_file, inventory, load

    entries = [asdict(entry) for entry in inventory(load())]
    if out.as_json:
        out.data({"items": entries})
        return
    for entry in entries:
        out.line(f"{entry['variable']} = {_plain(entry['value'])}   ({_origin(entry)})")
        for text in _wrapped(entry, out.width):
            out.line(text)
    out.line()
    out.line(f"Set them as variables, or without the prefix and in lower case in {config_file()}.")


def version(out: Terminal) -> None:
    """Show the versions of Gnomon and of its zone data."""
    from importlib.metadata import version as version_of

    from gnomon.cadence import zone_data_version

    found = {"version": version_of("gnomon"), "zone_data": zone_data_version()}
    if out.as_json:
        out.data(found)
        return
    for text in fields(found):
        out.line(text)


def _wrapped(entry: dict[str, Any], width: int) -> list[str]:
    import textwrap

    bounds = f" {entry['range']}." if entry["range"] else ""
    kind = f"{entry['type'].capitalize()}{',' if bounds else '.'}{bounds}"
    text = f"{entry['meaning']} {kind}"
    return textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")


def _origin(entry: dict[str, Any]) -> str:
    if entry["origin"] != "default":
        return f"from {entry['origin']}; default {_plain(entry['default'])}"
    return "default"


def _plain(value: object) -> str:
    if value is None:
        return "unset"
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    local(app, "settings", rich_help_panel=panel)(settings)
    local(app, "version", rich_help_panel=panel)(version)
