"""What is kept of a command's stdout: all of it up to a bound, beyond that its beginning and its end. It always drains."""

import asyncio

from gnomon.runtimes.programs import CHUNK

HALF_BYTES = 128 * 1024


class Kept:
    """Bytes of a stream within twice ``half`` bytes; what lies between the two halves is only counted."""

    def __init__(self, half: int = HALF_BYTES) -> None:
        self._half = half
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def take(self, chunk: bytes) -> None:
        """The next bytes."""
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        over = len(self._tail) - self._half
        if over > 0:
            del self._tail[:over]
            self._left_out += over

    def all(self) -> bytes:
        """What is kept, with a word on what is not."""
        if not self._left_out:
            return bytes(self._head + self._tail)
        gap = f"\n… {self._left_out:,} bytes are left out here …\n".encode()
        return bytes(self._head) + gap + bytes(self._tail)


async def keep(stdout: asyncio.StreamReader) -> bytes:
    """Read to the end, for ``Program.run``: a command that says much is not stopped for it."""
    kept = Kept()
    try:
        while chunk := await stdout.read(CHUNK):
            kept.take(chunk)
    except asyncio.CancelledError:
        # a process outside the group holds the pipe open; what the command itself wrote is here
        return kept.all()
    return kept.all()
