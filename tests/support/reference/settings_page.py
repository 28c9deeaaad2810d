"""``docs/reference/settings.md``: the inventory of settings (OPS-5)."""

from gnomon.settings import Settings, inventory


def settings_page() -> str:
    """The page."""
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
