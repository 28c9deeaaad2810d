"""The heartbeats of instances that are connected here: what was heard is written, what is not ours any more is ended.

One write for all that were heard of since the last tick (JOB-5), and one read of what the database says that this process
holds: a connection that another server has taken over, that was marked offline, or whose key has ended is closed.
"""

from gnomon.ports.push import Partings, Speaker
from gnomon.services.connections import Connections
from gnomon.stores import api_keys, instances
from gnomon.stores.database import Database, Tx

SHARE = 4  # ticks to a heartbeat: what is heard is written well before it counts as overdue
LEAST_SECONDS, MOST_SECONDS = 0.05, 2.5


class Heartbeats:
    """One process's connections, looked after."""

    def __init__(
        self, database: Database, connections: Connections, process_id: str, heartbeat_seconds: float
    ) -> None:
        self._database = database
        self._connections = connections
        self._process_id = process_id
        self.every = min(max(heartbeat_seconds / SHARE, LEAST_SECONDS), MOST_SECONDS)

    async def tick(self) -> float | None:
        """Write what was heard, end what is over; seconds until the next."""
        if not len(self._connections):
            return None
        there = self._connections.speakers()
        heard = self._connections.heard()
        if heard:
            await self._database.write_guarded(lambda tx: instances.beat(tx, self._process_id, heard))
        keys = self._connections.keys()

        async def look(tx: Tx) -> tuple[set[tuple[str, int]], set[str]]:
            return await instances.kept(tx, self._process_id), await api_keys.closed(tx, keys)

        kept, closed = await self._database.read(look)
        for speaker in there:
            if (speaker.instance_id, speaker.epoch) not in kept:
                await self._end(speaker)
        for key_id in closed:
            for speaker in keys[key_id]:
                self._connections.part(speaker.instance_id, speaker.epoch, Partings.KEY_ENDED)
        self._connections.part_stuck()
        return self.every

    async def _end(self, speaker: Speaker) -> None:
        """Tell the instance why: it is connected elsewhere, or was silent for too long."""
        standing = await self._database.read(lambda tx: instances.get(tx, speaker.instance_id))
        replaced = standing is not None and standing.epoch > speaker.epoch
        parting = Partings.REPLACED if replaced else Partings.SILENT
        self._connections.part(speaker.instance_id, speaker.epoch, parting)
