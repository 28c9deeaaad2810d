"""The connection of an instance: a thread of its own with its own event loop, one socket at a time (JOB-5).

One coroutine connects, talks and, when the connection is over for whatever reason, waits and connects again: there is
no second place that could plan a reconnect, so there are never two (ws-08). What the frames mean is ``session``'s
affair; handlers run elsewhere, so that none of them can keep a heartbeat from being sent.
"""

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from gnomon.adapters.clock import SystemClock
from gnomon.client import frames
from gnomon.client.backoff import Backoff
from gnomon.client.errors import ClientError, Forbidden, Invalid, Replaced, refused
from gnomon.client.frames import Outcome
from gnomon.client.place import Place
from gnomon.client.session import Complaint, Deed, End, Send, Session, Start, Work

HEARTBEAT_SECONDS = 10.0
# Where the centre does not say when it gives a silent instance up: as many heartbeats as its defaults have.
BEATS_UNTIL_GIVEN_UP = 12
WELCOME_SECONDS = 10.0
# A centre from which nothing comes, not even the answer to a ping, is left after both: its answers are its proof of life.
PING_SECONDS, PONG_SECONDS = 20.0, 20.0
REPLACED = 4409
_FRAME_BYTES = 8 * 1024 * 1024
_NOT_NOW = frozenset({"unavailable", "unusable_database", "internal"})
_FATAL_STATUSES = frozenset({400, 401, 403, 404})
_chance = random.SystemRandom().random
log = logging.getLogger("gnomon.client")
# the library writes the headers of its handshake at level DEBUG, and the key is one of them (SEC-3)
_of_socket = logging.getLogger("gnomon.client.socket")
_of_socket.setLevel(logging.INFO)

Begin = Callable[[Work], None]
Halt = Callable[[End], None]


class Line:
    """Keeps one instance connected until it is closed or refused for good. Its methods may be called on any thread."""

    def __init__(self, place: Place, session: Session, begin: Begin, halt: Halt) -> None:
        self._place = place
        self._session = session
        self._begin = begin
        self._halt = halt
        self._clock = SystemClock()
        self._backoff = Backoff(first_seconds=0.5, longest_seconds=30.0)
        self._loop: asyncio.AbstractEventLoop
        self._closing = asyncio.Event()
        self._socket: ClientConnection | None = None
        self._given_up: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._live, name="gnomon-line", daemon=True)
        self.welcome: Future[dict[str, Any]] = Future()  # the first one, or why there is none
        self.over: Future[None] = Future()  # when the line has ended; with the error, if one ended it
        self.idle = threading.Condition()
        self.trouble = "nobody welcomed this instance in time"

    def start(self) -> None:
        """Begin to connect."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def ended(self, work: Work, outcome: Outcome) -> None:
        """A piece of work has ended."""
        self._later(lambda: self._session.ended(work, outcome, self._clock.monotonic()))

    def progress(self, work: Work, text: str) -> None:
        """A run says how far it is."""
        self._later(lambda: self._session.progress(work, text))

    def drain(self) -> None:
        """Take nothing new."""
        self._later(self._session.drain)

    def close(self) -> None:
        """Say goodbye and connect no more. What is still worked on is told to nobody."""
        with suppress(RuntimeError):  # it is closed already
            self._loop.call_soon_threadsafe(self._closing.set)

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(seconds)

    @property
    def is_done(self) -> bool:
        """Whether nothing is worked on and nothing is left to say."""
        return self._session.is_done

    # all below runs on the line's own thread

    def _later(self, step: Callable[[], Sequence[Deed]]) -> None:
        with suppress(RuntimeError):  # the line is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(self._step, step)

    def _step(self, step: Callable[[], Sequence[Deed]]) -> None:
        deeds = step()
        task = self._loop.create_task(self._do(deeds))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _live(self) -> None:
        error: BaseException | None = None
        self._sending: set[asyncio.Task[None]] = set()
        try:
            self._loop.run_until_complete(self._stay())
        except Exception as found:
            error = found
        finally:
            self._end_loop()
        if not self.welcome.done():
            self.welcome.set_exception(
                error or ClientError("The instance was closed before it was connected.")
            )
        if error is None:
            self.over.set_result(None)
        else:
            self.over.set_exception(error)
        self._tell()

    def _end_loop(self) -> None:
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left))
        self._loop.close()

    async def _stay(self) -> None:
        failures = 0
        while not self._closing.is_set():
            try:
                welcomed = await self._until_closed(self._connected())
            except (OSError, WebSocketException, TimeoutError, EOFError) as error:
                welcomed = False
                self.trouble = str(error) or type(error).__name__
                log.debug("not connected to %s: %s", self._place.url, self.trouble)
            failures = 1 if welcomed else failures + 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._backoff.pause(failures, _chance()))

    async def _until_closed(self, connection: Coroutine[Any, Any, bool]) -> bool:
        """One connection; where the line is closed before it was welcomed, it is let go."""
        attempt = asyncio.ensure_future(connection)
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({attempt, closing}, return_when=asyncio.FIRST_COMPLETED)
            if self._socket is None and not attempt.done():
                attempt.cancel()
            return await attempt
        except asyncio.CancelledError:
            return False
        finally:
            closing.cancel()

    async def _connected(self) -> bool:
        """One connection from its beginning to its end; whether the centre welcomed it."""
        try:
            socket = await connect(
                self._place.socket_url,
                additional_headers=self._place.headers,
                compression=None,
                ping_interval=PING_SECONDS,
                ping_timeout=PONG_SECONDS,
                max_size=_FRAME_BYTES,
                close_timeout=2,
                logger=_of_socket,
            )
        except InvalidStatus as error:
            self._raise_if_final(error)
            raise
        try:
            await socket.send(frames.encode(self._session.hello()))
            welcome = frames.read(await asyncio.wait_for(socket.recv(), WELCOME_SECONDS)) or {}
            if welcome.get("type") != "welcome":
                return self._not_welcome(welcome)
            self._socket = socket
            if self._given_up is not None:
                self._given_up.cancel()
            await self._do(self._session.welcomed(self._clock.monotonic()))
            if not self.welcome.done():
                self.welcome.set_result(welcome)
            await self._talk(socket, _seconds(welcome, "heartbeat_seconds", HEARTBEAT_SECONDS))
        finally:
            if self._socket is not None:
                self._alone(welcome)
            self._socket = None
            self._session.disconnected()
            await socket.close()
        return True

    def _alone(self, welcome: dict[str, Any]) -> None:
        """From now on the centre waits for this instance, but not for ever."""
        beat = _seconds(welcome, "heartbeat_seconds", HEARTBEAT_SECONDS)
        patience = _seconds(welcome, "heartbeat_timeout_seconds", BEATS_UNTIL_GIVEN_UP * beat)
        self._given_up = self._loop.call_later(patience, self._step, self._session.forlorn)

    async def _talk(self, socket: ClientConnection, heartbeat_seconds: float) -> None:
        """Read, and send heartbeats, until the connection ends or the line is closed."""
        doing = [
            asyncio.create_task(self._read(socket)),
            asyncio.create_task(self._beat(socket, heartbeat_seconds)),
            asyncio.create_task(self._closing.wait()),
        ]
        try:
            await asyncio.wait(doing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in doing:
                task.cancel()
            ended = await asyncio.gather(*doing, return_exceptions=True)
        for error in ended:
            if isinstance(error, ConnectionClosed):
                code = None if error.rcvd is None else error.rcvd.code
                if code == REPLACED:
                    raise Replaced(
                        "Another process connected as this instance; each needs a name of its own."
                    )
            elif isinstance(error, Exception):
                raise error

    async def _read(self, socket: ClientConnection) -> None:
        async for text in socket:
            try:
                deeds = self._session.heard(frames.read(text) or {}, self._clock.monotonic())
            except (KeyError, TypeError, ValueError) as error:
                log.warning("a frame of the centre can't be read: %r", error)
            else:
                await self._do(deeds)

    async def _beat(self, socket: ClientConnection, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await socket.send('{"type": "heartbeat"}')

    async def _do(self, deeds: Sequence[Deed]) -> None:
        """One after the other: a push is begun only after its acknowledgement went out."""
        sent, left = True, list(deeds)
        try:
            while left:
                match left[0]:
                    case Send(frame):
                        sent = await self._send(frame)
                    case Start(work) if sent:
                        self._begin(work)
                    case Start(work):
                        self._session.unsent(work)
                    case End() as end:
                        self._halt(end)
                    case Complaint(code, detail):
                        log.info("the centre took a frame for nothing: %s (%s)", detail, code)
                del left[0]
        finally:  # the connection ended while an acknowledgement was on its way
            for deed in left:
                if isinstance(deed, Start):
                    self._session.unsent(deed.work)
        self._tell()

    async def _send(self, frame: dict[str, Any]) -> bool:
        socket = self._socket
        if socket is None:
            return False
        try:
            await socket.send(frames.encode(frame))
        except ConnectionClosed:
            return False
        return True

    def _tell(self) -> None:
        with self.idle:
            self.idle.notify_all()

    def _not_welcome(self, frame: dict[str, Any]) -> bool:
        """The answer to hello was another: final, unless the centre is out of order."""
        if frame.get("type") == "error" and frame.get("code") not in _NOT_NOW:
            raise (Invalid if frame.get("code") == "invalid_frame" else Forbidden)(403, frame)
        log.info("no welcome from %s: %s", self._place.url, frame.get("detail"))
        return False

    def _raise_if_final(self, error: InvalidStatus) -> None:
        status = error.response.status_code
        if status in _FATAL_STATUSES:
            body = frames.read(bytes(error.response.body or b""))
            raise refused(status, body) from error


def _seconds(frame: dict[str, Any], name: str, default: float) -> float:
    value = frame.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else default
