"""The zone that this machine's wall clock shows, by name: where cron takes it from."""

import os
from pathlib import Path

from gnomon.cadence import zone_names

LOCALTIME = Path("/etc/localtime")
TIMEZONE = Path("/etc/timezone")


def local_zone(environment: dict[str, str] | None = None) -> str | None:
    """The IANA name; ``UTC`` where the machine says nothing, ``None`` where it says something without a name."""
    given = (os.environ if environment is None else environment).get("TZ", "").removeprefix(":")
    if given:
        return given if given in zone_names() else None
    if not LOCALTIME.exists():
        return "UTC"
    for name in (_linked(), _noted()):
        if name in zone_names():
            return name
    return None


def _linked() -> str:
    return str(LOCALTIME.resolve()).partition("zoneinfo/")[2]


def _noted() -> str:
    return TIMEZONE.read_text("utf-8", errors="replace").strip() if TIMEZONE.is_file() else ""
