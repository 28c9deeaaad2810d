"""Which web pages may speak to the centre in the name of whoever reads them: those of this machine to this machine.

No key comes by itself with a request of a browser, so a page that was led here under a false name (DNS rebinding) opens
nothing; it is turned away before it can try. A program that is no browser sends no Origin.
"""

from urllib.parse import urlsplit

from gnomon.domain.errors import Refused

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def check_origin(origin: str | None, host: str | None) -> None:
    """Let a request through by its Origin and Host headers.

    Raises:
        Refused: ``bad_origin``, it comes from a page, and the page or the name it asked for is not this machine's own.
    """
    if origin is None or (_name(origin) in _LOOPBACK and _name(f"//{host}") in _LOOPBACK):
        return
    raise Refused(
        "A page of another site may not speak to this server; a program that is no browser sends no Origin.",
        code="bad_origin",
    )


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
