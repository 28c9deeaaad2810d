"""Agents behind a URL: one signed POST for each attempt, its answer read within bounds (TGT-1, TGT-4, TGT-5).

Where it may connect is ``addresses`` and ``connecting``; what it sends is ``sending``; how an answer is read is
``answers``. The attempt's time is the caller's: it cancels, and the connection is closed with that.
"""

import os
import re
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from email.utils import parsedate_to_datetime

import httpx2

from gnomon.domain.agent import HttpRuntime, RuntimeSpec
from gnomon.domain.invocation import Deferred, Failing, Invocation, Limits, Result, TargetFailure
from gnomon.ports.clock import Clock
from gnomon.ports.runtime import Reporter
from gnomon.runtimes.addresses import check_url, parse
from gnomon.runtimes.answers import OUTPUT_BYTES, excerpt, nonsense, read_json, read_mapping, storable
from gnomon.runtimes.connecting import (
    CONNECT_SECONDS,
    GuardedBackend,
    GuardedTransport,
    Resolver,
    SystemResolver,
)
from gnomon.runtimes.sending import body_of, check_headers, our_headers

REDIRECTS = 3
_KEEPING_THE_POST = frozenset({307, 308})
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_TRIED_AGAIN = frozenset({408, 425, 429})
_HEADER_BYTES = 64 * 1024
_ERROR_BYTES = 2_000
_ENVELOPE_BYTES = 16 * 1024
_LARGEST_WAIT = 86_400.0
_SECONDS = re.compile(r"[0-9]{1,9}")
_CHARSETS = frozenset({"utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252", "utf-16"})
_CHARSET = re.compile(r"charset=\"?([A-Za-z0-9_.:-]+)", re.IGNORECASE)


class HttpTargets:
    """``ports.runtime.Runtime`` for ``HttpRuntime``.

    ``allow_private`` lets targets have private, loopback and link-local addresses. ``resolve`` and ``tls`` stand in
    for the machine's resolver and its trusted certificates.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        allow_private: bool = False,
        resolve: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._clock = clock
        self._allow_private = allow_private
        self._resolver = SystemResolver()
        backend = GuardedBackend(resolve or self._resolver, allow_private=allow_private)
        self._transport = GuardedTransport(backend, tls)
        self._timeouts = {"connect": connect_seconds, "read": None, "write": None, "pool": None}

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """POST the invocation and read the answer. See ``ports.runtime.Runtime``.

        Only 307 and 308 are followed, three times at most, each checked as if it were the first address; a user's
        headers stay behind when the origin changes.
        """
        assert isinstance(spec, HttpRuntime)
        faults = [message for _, message in check_headers(spec.headers)]
        if faults:
            raise TargetFailure(Failing.TARGET_INVALID, "; ".join(faults))
        body = body_of(invocation)
        url = self._checked(spec.url, "the target's URL")
        ours = our_headers(invocation, body, secret, self._clock.now())
        users = {name.lower(): value for name, value in spec.headers.items()}
        for _ in range(REDIRECTS + 1):
            async with self._post(url, {**users, **ours}, body) as response:
                if response.status_code not in _REDIRECTING:
                    reporter.progress(f"{url.host} answered {response.status_code}")
                    return await self._read(response, invocation.limits)
                onward = self._onward(url, response)
            if onward.netloc != url.netloc or onward.scheme != url.scheme:
                users = {}
            url = onward
        raise TargetFailure(Failing.REDIRECTED, f"the target redirected more than {REDIRECTS} times")

    async def close(self) -> None:
        """Close the connections and the resolver's threads."""
        await self._transport.aclose()
        self._resolver.close()

    def _checked(self, url: str, what: str) -> httpx2.URL:
        faults = check_url(url, allow_private=self._allow_private)
        if faults:
            raise TargetFailure(Failing.ADDRESS_REFUSED, f"{what} is refused: {'; '.join(faults)}")
        return parse(url)

    def _onward(self, url: httpx2.URL, response: httpx2.Response) -> httpx2.URL:
        """Where a redirect leads, judged like the first URL."""
        status = response.status_code
        location = response.headers.get("location", "")
        if status not in _KEEPING_THE_POST:
            message = (
                f"the target answered {status}: only 307 and 308 keep a POST a POST, so it is not followed"
            )
            raise TargetFailure(Failing.REDIRECTED, message)
        try:
            onward = str(url.join(location)) if location else ""
        except (httpx2.InvalidURL, ValueError):
            onward = ""
        if not onward:
            raise TargetFailure(Failing.REDIRECTED, f"the target answered {status} without a usable address")
        checked = self._checked(onward, f"the address it was redirected to ({excerpt(onward)})")
        if url.scheme == "https" and checked.scheme != "https":
            raise TargetFailure(Failing.REDIRECTED, "the target redirected from https to http; not followed")
        return checked

    @asynccontextmanager
    async def _post(
        self, url: httpx2.URL, headers: dict[str, str], body: bytes
    ) -> AsyncIterator[httpx2.Response]:
        request = httpx2.Request(
            "POST", url, headers=headers, content=body, extensions={"timeout": self._timeouts}
        )
        where = f"{url.scheme}://{url.netloc.decode('ascii')}"
        try:
            response = await self._transport.handle_async_request(request)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx2.RemoteProtocolError as error:
            raise _broken(where, error) from error
        except httpx2.LocalProtocolError as error:
            raise TargetFailure(Failing.TARGET_INVALID, f"the request can't be sent: {error}") from error
        except httpx2.TransportError as error:
            raise TargetFailure(Failing.UNREACHABLE, f"{where}: {_why(error)}", retryable=True) from error

    async def _read(self, response: httpx2.Response, limits: Limits) -> Result | Deferred:
        if sum(len(name) + len(value) for name, value in response.headers.raw) > _HEADER_BYTES:
            raise nonsense(f"the target sent more than {_HEADER_BYTES:,} bytes of headers")
        status = response.status_code
        if status == 202:
            return Deferred()
        if 200 <= status < 300:
            return _answer(response, await _body(response, _cap(limits)))
        retryable = status in _TRIED_AGAIN or status >= 500
        said = excerpt((await _beginning(response)).decode(errors="replace"))
        raise TargetFailure(
            Failing.HTTP_STATUS,
            f"the target answered {status} {excerpt(response.reason_phrase, 40)}{': ' if said else ''}{said}",
            retryable=retryable,
            retry_after=self._retry_after(response) if retryable else None,
        )

    def _retry_after(self, response: httpx2.Response) -> float | None:
        """Seconds from ``Retry-After``, given as a number or as a date; a day at most, nothing if unreadable."""
        text = response.headers.get("retry-after", "").strip()
        if _SECONDS.fullmatch(text):
            return min(float(text), _LARGEST_WAIT)
        try:
            at = parsedate_to_datetime(text)
            seconds = (at - self._clock.now()).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
        return min(max(seconds, 0.0), _LARGEST_WAIT)


def _why(error: httpx2.TransportError) -> str:
    """What the machine said at the bottom of the chain (connection refused), in words for whoever set the URL."""
    if isinstance(error, httpx2.ConnectTimeout):
        return str(error) or "no connection was made in time"
    found, reason = error.__cause__, str(error) or type(error).__name__
    while found is not None:
        if isinstance(found, OSError) and not isinstance(found, ssl.SSLError) and (found.errno or 0) > 0:
            reason = os.strerror(found.errno or 0)
        found = found.__cause__ or found.__context__
    return excerpt(reason)


def _broken(where: str, error: httpx2.RemoteProtocolError) -> TargetFailure:
    """A connection that ended too early can be tried again; bytes that are no HTTP would come again."""
    text = str(error)
    if "disconnected" in text or "closed connection" in text:
        message = f"{where} closed the connection before its answer was complete"
        return TargetFailure(Failing.UNREACHABLE, message, retryable=True)
    return nonsense(f"{where} did not answer in HTTP: {excerpt(text)}")


def _cap(limits: Limits) -> int:
    """Bytes of body read at most. JSON may write one byte of output as six, and has an envelope around it."""
    if limits.output_bytes is None:
        return OUTPUT_BYTES
    return min(OUTPUT_BYTES, 6 * limits.output_bytes + _ENVELOPE_BYTES)


async def _pieces(response: httpx2.Response, most: int) -> AsyncGenerator[bytes, None]:
    """The decoded body piece by piece; no piece is larger than ``most`` plus one, whatever it was packed from."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding == "identity":
        async for raw in response.stream:  # type: ignore[union-attr]  # ours is always the asynchronous one
            yield raw
        return
    if coding not in {"gzip", "x-gzip", "deflate"}:
        raise nonsense(f"the answer is packed as {excerpt(coding, 40)!r}, which was not asked for")
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        async for raw in response.stream:  # type: ignore[union-attr]  # likewise
            rest = raw
            while rest:
                yield unpack.decompress(rest, most + 1)
                rest = unpack.unconsumed_tail
    except zlib.error as error:
        raise nonsense(f"the answer calls itself {coding} and is not: {error}") from error
    if not unpack.eof:
        raise nonsense(f"the answer's {coding} ends in the middle")


async def _body(response: httpx2.Response, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async with aclosing(_pieces(response, most)) as pieces:
        async for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size > most:
                message = f"the answer is longer than {most:,} bytes; reading was stopped there"
                raise TargetFailure(Failing.OUTPUT_TOO_LARGE, message)
    return b"".join(parts)


async def _beginning(response: httpx2.Response) -> bytes:
    """The first bytes of an answer that says what went wrong."""
    found = b""
    try:
        async with aclosing(_pieces(response, _ERROR_BYTES)) as pieces:
            async for piece in pieces:
                found += piece[:_ERROR_BYTES]
                if len(found) >= _ERROR_BYTES:
                    break
    except (TargetFailure, httpx2.TransportError):
        return found
    return found


def _answer(response: httpx2.Response, data: bytes) -> Result:
    kind = response.headers.get("content-type", "")
    media = kind.partition(";")[0].strip().lower()
    if not data.strip():
        return Result("")
    if media == "application/json" or media.endswith("+json"):
        return read_mapping(read_json(data, "the answer"), "the answer")
    found = _CHARSET.search(kind)
    charset = found.group(1).lower() if found else "utf-8"
    shown = excerpt(kind, 60) or "without a type"
    if charset not in _CHARSETS:
        raise nonsense(f"the answer ({shown}) is in no character set that is read here")
    try:
        text = data.decode(charset)
    except UnicodeDecodeError as error:
        raise nonsense(f"the answer ({shown}) is neither JSON nor text: {error}") from error
    return Result(storable(text))
