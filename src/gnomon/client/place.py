"""Where the server is and what opens it: arguments over ``GNOMON_URL`` and ``GNOMON_API_KEY`` of the environment.

Its short name ``GNOMON_KEY`` is read where there is no ``GNOMON_API_KEY``. Nothing here is ever printed: the key
stays out of every text, a ``repr`` included.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

LOCAL = "http://127.0.0.1:8420"
_KEY = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Place:
    """A server's address, without ``/v1`` and without a slash at its end, and the key for it."""

    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every request and with the WebSocket's handshake."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    @property
    def socket_url(self) -> str:
        """The WebSocket of the instances."""
        return "ws" + self.url.removeprefix("http") + "/v1/connect"


def find(url: str | None, key: str | None, environment: Mapping[str, str] | None = None) -> Place:
    """The place that was named, or that of the environment, or the local server.

    Raises:
        ValueError: the address is none of a server, or the key can't be one.
    """
    names = os.environ if environment is None else environment
    found = url or names.get("GNOMON_URL") or LOCAL
    path = _path(found)
    opened_by = key or names.get("GNOMON_API_KEY") or names.get("GNOMON_KEY") or None
    if opened_by is not None and not _KEY.fullmatch(opened_by):
        raise ValueError("What was given is no API key: one has no blanks and plain letters alone.")
    parts = urlsplit(found)
    return Place(urlunsplit((parts.scheme, parts.netloc, path, "", "")), opened_by)


def _path(url: str) -> str:
    """The path below which the server is, for the few that are not at the root."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that don't close, a port that is no number
        fits = False
    if not fits:
        raise ValueError(f"{url!r} is no address of a server. Write it as {LOCAL}.")
    return parts.path.rstrip("/").removesuffix("/v1")
