"""What surrounds every HTTP exchange: its id, its log line, its figures, and an answer even to what nobody expected.

Pure ASGI, so that nothing is buffered on the way and a client that hangs up is seen behind it.
"""

import logging
import re

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gnomon.edges.http import problems
from gnomon.ports.clock import Clock, Entropy

_log = structlog.get_logger()
_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"})
_PATH_BYTES = 300
_PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
_REFUSED = 400
_FAILED = 500
_HUNG_UP = 499  # in the log and the figures alone; nobody is left to read it


class HttpFigures:
    """The figures of this edge; a route is told by its template, so that no id becomes a label."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("method", "route", "status")
        self.requests = Counter("gnomon_http_requests_total", "Requests answered", labels, registry=registry)
        self.seconds = Histogram(
            "gnomon_http_request_seconds", "Time to answer", ("method", "route"), registry=registry
        )

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one exchange."""
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = getattr(scope.get("route"), "path", "none")
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(method, route).observe(seconds)


class Exchange:
    """The middleware."""

    def __init__(self, app: ASGIApp, *, clock: Clock, entropy: Entropy, figures: HttpFigures) -> None:
        self._app = app
        self._clock = clock
        self._entropy = entropy
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one exchange through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._clock.monotonic()
        request_id = _given_id(scope) or f"req_{self._entropy.bits(80):020x}"
        scope.setdefault("state", {})["request_id"] = request_id
        out = _Sending(send, request_id, head=scope["method"] == "HEAD")
        if out.head:  # answered as GET without the body (RFC 9110, 9.3.2); the server's own scope must go on saying HEAD
            scope = {**scope, "method": "GET"}
        try:
            await self._app(scope, receive, out.send)
        except ClientDisconnect:
            out.status = _HUNG_UP
        except Exception:
            _log.exception(
                "request_failed", request_id=request_id, method=scope["method"], path=scope["path"]
            )
            if out.status:  # too late for an answer of ours: the connection breaks off
                raise
            await problems.internal(request_id)(scope, receive, out.send)
        finally:
            seconds = self._clock.monotonic() - began
            self._figures.observe(scope, out.status or _HUNG_UP, seconds)
            self._note(scope, request_id, out, seconds)

    @staticmethod
    def _note(scope: Scope, request_id: str, out: "_Sending", seconds: float) -> None:
        # Who asks every few seconds whether all is well must not bury what people did.
        quiet = scope["path"] in _PROBES and out.status < _REFUSED
        method = "HEAD" if out.head else scope["method"]
        path, status = _path(scope), out.status or _HUNG_UP
        _log.log(
            logging.DEBUG if quiet else logging.INFO,
            "request",
            # under its id stands elsewhere in the log what went wrong
            in_short=None if status >= _FAILED else f"{method} {path} {status} {seconds * 1_000:.1f} ms",
            request_id=request_id,
            method=method,
            path=path,
            status=status,
            duration_seconds=round(seconds, 6),
            actor=getattr(scope["state"].get("caller"), "actor", None),
        )


class _Sending:
    """The way out: notes the status, adds the headers that every answer has."""

    def __init__(self, send: Send, request_id: str, *, head: bool) -> None:
        self._send = send
        self._request_id = request_id
        self.head = head
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])  # the SDK of /mcp says it by an enumeration
            self._add_headers(message)
        elif message["type"] == "http.response.body" and self.head:
            message = {**message, "body": b""}
        await self._send(message)

    def _add_headers(self, message: Message) -> None:
        headers = list(message.get("headers", ()))
        present = {name.lower() for name, _ in headers}
        headers.append((b"x-request-id", self._request_id.encode()))
        headers.append((b"x-content-type-options", b"nosniff"))
        if b"cache-control" not in present:
            headers.append((b"cache-control", b"no-store"))
        message["headers"] = headers


def _path(scope: Scope) -> str:
    """The path for the log: as it came, so that nothing in it breaks a line; cut, and with no key in it."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode("ascii", "backslashreplace")
    return problems.masked(str(raw[:_PATH_BYTES], "ascii", "backslashreplace"))


def _given_id(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _GIVEN_ID.fullmatch(value):
            return str(value, "ascii")
    return None
