"""The connections that this process holds: who is there, what is sent to them, who hears what they say (JOB-2, JOB-5).

The newest epoch of an instance wins: an older connection that is still open is ended, and its late end takes nothing
from the newer one. Knows no database and no socket: the edge brings each connection as a ``ports.push.Link``.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from gnomon.domain.errors import Invalid
from gnomon.ports.push import Handler, Link, OnGone, OnHello, Partings, Speaker

_log = structlog.get_logger()
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


@dataclass(slots=True)  # not frozen: it is noted here when the instance is heard
class _Held:
    speaker: Speaker
    link: Link
    key_id: str | None
    heard: bool = False


class Connections:
    """``ports.push.Push``, and the other side of it: what the edge calls."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._handlers: dict[str, Handler] = {}
        self._of_hello: list[OnHello] = []
        self._of_end: list[OnGone] = []

    def on(self, kind: str, handler: Handler) -> None:
        """Let ``handler`` take the frames of one type; a type has one handler."""
        if kind in self._handlers:
            raise ValueError(f"two handlers for frames of the type {kind}")
        self._handlers[kind] = handler

    def on_hello(self, listener: OnHello) -> None:
        """Tell ``listener`` of each connection that is new, once it can be sent to."""
        self._of_hello.append(listener)

    def on_gone(self, listener: OnGone) -> None:
        """Tell ``listener`` of each connection that is over, a replaced one too."""
        self._of_end.append(listener)

    def take(self, speaker: Speaker, link: Link, key_id: str | None = None) -> bool:
        """Hold a connection that has said hello; ``False`` where a newer one of the same instance is held already."""
        standing = self._held.get(speaker.instance_id)
        if standing is not None and standing.speaker.epoch >= speaker.epoch:
            return False
        self._held[speaker.instance_id] = _Held(speaker, link, key_id)
        if standing is not None:
            standing.link.part(Partings.REPLACED)
        return True

    def drop(self, speaker: Speaker) -> bool:
        """Let go of a connection that is over; whether it was still the one that is held."""
        standing = self._held.get(speaker.instance_id)
        if standing is None or standing.speaker.epoch != speaker.epoch:
            return False
        del self._held[speaker.instance_id]
        return True

    async def tell_hello(self, speaker: Speaker, hello: dict[str, Any]) -> None:
        """Call whoever listens for a new connection; one that fails keeps no other from hearing it."""
        for listener in self._of_hello:
            try:
                await listener(speaker, hello)
            except Exception:
                _log.exception("hello_not_heard", instance_id=speaker.instance_id, epoch=speaker.epoch)

    async def tell_gone(self, instance_id: str, epoch: int) -> None:
        """Call whoever listens for the end of one, likewise."""
        for listener in self._of_end:
            try:
                await listener(instance_id, epoch)
            except Exception:
                _log.exception("gone_not_heard", instance_id=instance_id, epoch=epoch)

    async def hear(self, speaker: Speaker, frame: dict[str, Any]) -> None:
        """Hand a frame to whoever takes its type.

        Raises:
            Invalid: ``unknown_type``, nobody does.
            GnomonError: as the handler's.
        """
        handler = self._handlers.get(frame["type"])
        if handler is None:
            raise Invalid(
                f'Nobody here takes frames of the type "{frame["type"][:64]}".', code="unknown_type"
            )
        await handler(speaker, frame)

    def note(self, speaker: Speaker) -> None:
        """The instance was heard of: that is its heartbeat."""
        standing = self._held.get(speaker.instance_id)
        if standing is not None and standing.speaker.epoch == speaker.epoch:
            standing.heard = True

    def heard(self) -> list[tuple[str, int]]:
        """The connections (instance, epoch) that were heard of since this was asked last."""
        found = []
        for held in self._held.values():
            if held.heard:
                held.heard = False
                found.append((held.speaker.instance_id, held.speaker.epoch))
        return found

    def speakers(self) -> list[Speaker]:
        """Whoever is connected here."""
        return [held.speaker for held in self._held.values()]

    def keys(self) -> dict[str, list[Speaker]]:
        """The keys by which connections were opened, each with who came by it."""
        found: dict[str, list[Speaker]] = {}
        for held in self._held.values():
            if held.key_id is not None:
                found.setdefault(held.key_id, []).append(held.speaker)
        return found

    def __len__(self) -> int:
        """How many connections are held."""
        return len(self._held)

    def holds(self, instance_id: str, epoch: int) -> bool:
        """See ``Push.holds``."""
        standing = self._held.get(instance_id)
        return standing is not None and standing.speaker.epoch == epoch

    async def send(self, instance_id: str, epoch: int, frame: Mapping[str, Any]) -> bool:
        """See ``Push.send``."""
        return self._put(instance_id, epoch, _encode(frame))

    async def send_all(self, to: Iterable[tuple[str, int]], frame: Mapping[str, Any]) -> int:
        """Queue one frame for many, encoded once; for how many it was."""
        text = _encode(frame)
        return sum(self._put(instance_id, epoch, text) for instance_id, epoch in to)

    def part(self, instance_id: str, epoch: int, parting: Partings) -> None:
        """See ``Push.part``."""
        standing = self._held.get(instance_id)
        if standing is not None and standing.speaker.epoch == epoch:
            standing.link.part(parting)

    def part_all(self, parting: Partings) -> None:
        """End every connection."""
        for held in list(self._held.values()):
            held.link.part(parting)

    def part_stuck(self) -> None:
        """End the connections whose peers do not read (ws-09)."""
        for held in list(self._held.values()):
            if held.link.is_stuck():
                held.link.part(Partings.TOO_SLOW)

    def _put(self, instance_id: str, epoch: int, text: str) -> bool:
        standing = self._held.get(instance_id)
        return standing is not None and standing.speaker.epoch == epoch and standing.link.put(text)
