"""Requests over HTTP, sync and async: each sends one call, again where that is safe, and raises what was refused.

What may be tried again and for how long is decided in ``calls``; here is only the sending and the waiting.
"""

import asyncio
import random
import threading

import httpx2

from gnomon.adapters.clock import SystemClock
from gnomon.client.backoff import Backoff
from gnomon.client.calls import PATIENCE_SECONDS, Answer, Attempts, Call, Unanswered
from gnomon.client.errors import ClientError
from gnomon.client.place import Place

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
# what happened before a byte of the request was on its way
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
_chance = random.SystemRandom().random


def timeout(call: Call, seconds: float | None) -> httpx2.Timeout:
    """How long each phase of one try may take; by default longer for the answer than for the connection."""
    if seconds is not None:
        return httpx2.Timeout(seconds)
    return httpx2.Timeout(CONNECT_SECONDS, read=ANSWER_SECONDS + call.waits_seconds)


class Http:
    """The sync face. Safe to use from several threads."""

    def __init__(self, place: Place, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.place = place
        self._patience = patience_seconds
        self.clock = SystemClock()
        self._backoff = Backoff()
        self._client = httpx2.Client(base_url=place.url, headers=place.headers)
        self._closed = threading.Event()

    def send(self, call: Call, *, patience_seconds: float | None = None) -> Answer:
        """One call, with its repeats.

        Raises:
            Refused: by its subclass, what the server answered.
            Unreachable: nobody answered within the patience.
        """
        patience = self._patience if patience_seconds is None else patience_seconds
        attempts = Attempts(call, self.clock.monotonic(), patience, self._backoff)
        while True:
            outcome = self.try_once(call)
            pause = attempts.pause_after(outcome, self.clock.monotonic(), _chance(), self.clock.now())
            if pause is None or self._closed.wait(pause):
                return _ended(attempts.end(outcome, self.place.url))

    def try_once(self, call: Call, *, seconds: float | None = None) -> Answer | Unanswered:
        """One try. ``seconds`` bound each of its phases."""
        try:
            return _read(self._client.send(_request(self._client, call, seconds)))
        except httpx2.RequestError as error:
            return _unanswered(error)
        except RuntimeError:
            if not self._closed.is_set():
                raise
            return Unanswered("this client was closed", sent=False)

    def close(self) -> None:
        """Let go of the connections; who waits for another try waits no longer."""
        self._closed.set()
        self._client.close()


class AsyncHttp:
    """The async face."""

    def __init__(self, place: Place, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.place = place
        self._patience = patience_seconds
        self.clock = SystemClock()
        self._backoff = Backoff()
        self._client = httpx2.AsyncClient(base_url=place.url, headers=place.headers)

    async def send(self, call: Call, *, patience_seconds: float | None = None) -> Answer:
        """One call, with its repeats; raises as ``Http.send`` does."""
        patience = self._patience if patience_seconds is None else patience_seconds
        attempts = Attempts(call, self.clock.monotonic(), patience, self._backoff)
        while True:
            outcome = await self._try(call)
            pause = attempts.pause_after(outcome, self.clock.monotonic(), _chance(), self.clock.now())
            if pause is None:
                return _ended(attempts.end(outcome, self.place.url))
            await asyncio.sleep(pause)

    async def _try(self, call: Call) -> Answer | Unanswered:
        try:
            return _read(await self._client.send(_request(self._client, call, None)))
        except httpx2.RequestError as error:
            return _unanswered(error)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()


def _request(client: httpx2.Client | httpx2.AsyncClient, call: Call, seconds: float | None) -> httpx2.Request:
    return client.build_request(
        call.method,
        "/v1" + call.path,
        params=None if call.query is None else dict(call.query),
        headers=dict(call.headers),
        json=call.body,
        timeout=timeout(call, seconds),
    )


def _read(response: httpx2.Response) -> Answer:
    try:
        body = response.json() if response.content else None
    except ValueError:
        body = None
    return Answer(
        response.status_code, body, {name.lower(): value for name, value in response.headers.items()}
    )


def _unanswered(error: httpx2.RequestError) -> Unanswered:
    reason = str(error) or type(error).__name__
    return Unanswered(reason.rstrip("."), sent=not isinstance(error, _NOT_SENT))


def _ended(end: Answer | ClientError) -> Answer:
    if isinstance(end, ClientError):
        raise end
    return end
