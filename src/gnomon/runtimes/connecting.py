"""The way out for http targets (TGT-4): resolve, judge every address, connect to one that was judged.

The judge is ``addresses``; what is sent is ``http``'s affair. Below TLS nothing else changes: the host name still goes
into SNI, the certificate check and the Host header, because only the TCP connection is redirected to the address.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

from gnomon.domain.invocation import Failing, TargetFailure
from gnomon.runtimes.addresses import is_address, refusal

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
CONNECT_SECONDS = 10.0
_RESOLVER_THREADS = 8
_ADDRESSES_TRIED = 4


class SystemResolver:
    """The machine's resolver, on threads of its own: a dead name server holds up nobody but http targets."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_RESOLVER_THREADS, thread_name_prefix="resolve")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """All addresses of a host. Raises OSError where there is none."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def close(self) -> None:
        """Give the threads back; one that still waits for an answer ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to nothing but addresses that were judged, in one step with the judgement."""

    def __init__(self, resolve: Resolver, *, allow_private: bool) -> None:
        self._resolve = resolve
        self._allow_private = allow_private
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first address of ``host`` that answers; none at all if one of them is refused."""
        addresses = await self._addresses(host, port, timeout)
        for address in addresses:
            why = refusal(address, allow_private=self._allow_private)
            if why is not None:
                shown = why if address == host else f"{address}, {why}"
                raise TargetFailure(Failing.ADDRESS_REFUSED, f"{host} leads to {shown}; nothing was sent")
        tried = addresses[:_ADDRESSES_TRIED]
        share = None if timeout is None else timeout / len(tried)
        for address in tried[:-1]:
            try:
                return await self._inner.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(tried[-1], port, share, local_address, socket_options)

    async def _addresses(self, host: str, port: int, seconds: float | None) -> Sequence[str]:
        if is_address(host):
            return [host]
        try:
            async with asyncio.timeout(seconds):
                addresses = await self._resolve(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"the name {host} was not resolved in {seconds:g} s") from error
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"the name {host} can't be resolved: {error}") from error
        if not addresses:
            raise httpcore2.ConnectError(f"the name {host} has no address")
        return addresses

    async def sleep(self, seconds: float) -> None:
        """The library's wait between its own retries, which are off."""
        await self._inner.sleep(seconds)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """``httpx2`` over the guarded backend, without a client: no cookies, no proxies, no netrc, no redirects.

    Each request has a connection of its own. A kept one can be closed by the target just as the next request goes
    out, and a run that may be tried only once must not fail for that.
    """

    def __init__(self, backend: GuardedBackend, tls: ssl.SSLContext | None = None) -> None:
        self._backend = backend
        self._tls = tls
        self._pool: httpcore2.AsyncConnectionPool | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the body of the answer is read by the caller, as raw bytes."""
        inner = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            response = await self._open().handle_async_request(inner)
        return httpx2.Response(
            status_code=response.status, headers=response.headers, stream=_Body(response), request=request
        )

    async def aclose(self) -> None:
        """Close what is open."""
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None

    def _open(self) -> httpcore2.AsyncConnectionPool:
        if self._pool is None:
            self._pool = httpcore2.AsyncConnectionPool(
                ssl_context=self._tls or httpx2.create_ssl_context(),
                max_connections=None,
                max_keepalive_connections=0,
                network_backend=self._backend,
            )
        return self._pool


class _Body(httpx2.AsyncByteStream):
    """The bytes of an answer, with the library's lower errors turned into its upper ones."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream: Any = self._response.stream
        assert isinstance(stream, AsyncIterable)
        with _as_httpx():
            async for part in stream:
                yield part

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _as_httpx() -> Generator[None]:
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except (httpcore2.LocalProtocolError, httpcore2.UnsupportedProtocol) as error:
        raise httpx2.LocalProtocolError(str(error)) from error
    except httpcore2.ProtocolError as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except httpcore2.NetworkError as error:
        raise httpx2.NetworkError(str(error)) from error
