"""Instances: they come, are heard of, drain and go; people read them (JOB-5, BRD-4).

A new connection of the same (role, name) is the same instance under the next epoch. What it says in its hello that it
still works on goes on; what it says nothing of, though it had acknowledged it, was lost with the process before it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Conflict, Missing
from gnomon.domain.ids import Kind
from gnomon.domain.instance import MOST_IN_FLIGHT, Instance, InstanceStatus
from gnomon.domain.push import PushKey, PushStatus, key_of
from gnomon.ports.push import Speaker
from gnomon.ports.wakeup import Wakeup
from gnomon.services.gathering import Gathering
from gnomon.services.mint import Mint
from gnomon.stores import audit, instances, pushes
from gnomon.stores.database import Database, Tx

RESTARTED = "The instance came back without it: its process had ended. It may be half done."


class Instances:
    """The instances of one database, and the connections of this process to them."""

    def __init__(self, database: Database, mint: Mint, signal: Wakeup, process_id: str) -> None:
        self._database = database
        self._mint = mint
        self._signal = signal
        self._process_id = process_id
        self._coming = Gathering(database, self._come, signal.notify)
        self._going = Gathering(database, self._go, signal.notify)

    async def connect(self, caller: Caller, hello: Mapping[str, Any]) -> tuple[Speaker, list[PushKey]]:
        """A connection that this process holds has said hello: who that is from now on.

        ``hello`` is the frame, its shape checked. The keys are of runs that it says it works on and that are not its any
        more: it is to be told to drop them.

        Raises:
            Refused: the key serves another role.
        """
        caller.require_role(hello["role"])
        return await self._coming.do((caller.actor, hello))

    async def _come(self, tx: Tx, said: tuple[str, Mapping[str, Any]]) -> tuple[Speaker, list[PushKey]]:
        actor, hello = said
        role, name = hello["role"], hello["instance"]
        row = await instances.connect(
            tx,
            self._mint.make(Kind.INSTANCE),
            role,
            name,
            server=self._process_id,
            version=hello.get("version"),
            max_in_flight=hello.get("max_in_flight") or MOST_IN_FLIGHT,
        )
        speaker = Speaker(row["id"], role, name, row["epoch"])
        foreign = await _take_up(tx, speaker, hello.get("in_flight"))
        detail: dict[str, object] = {"role": role, "instance": name, "server": self._process_id}
        await _note(tx, actor, Action.CONNECT, (speaker.instance_id, speaker.epoch), detail)
        return speaker, foreign

    def arrived(self) -> None:
        """A connection can be sent to from now on: whoever has something for it looks again."""
        self._signal.wake()

    async def gone(self, speaker: Speaker, *, goodbye: bool) -> bool:
        """A connection that this process held is over; whether it was the present one of its instance.

        After a ``goodbye`` the instance is offline; else it has until its heartbeat is overdue to come back. What it
        never acknowledged goes to another at once (JOB-4).
        """
        return await self._going.do((speaker, goodbye))

    async def _go(self, tx: Tx, gone: tuple[Speaker, bool]) -> bool:
        speaker, goodbye = gone
        return await part(tx, self._process_id, speaker.instance_id, speaker.epoch, {"goodbye": goodbye})

    async def drain(self, caller: Caller, instance_id: str) -> Instance:
        """Give an instance nothing new until it was offline; a repeat changes nothing.

        Raises:
            Missing: there is none under this id.
            Conflict: ``instance_offline``.
        """

        async def work(tx: Tx) -> Instance:
            before = _there(await instances.get(tx, instance_id), instance_id)
            if not await instances.drain(tx, before.id):
                raise Conflict(
                    f"The instance {before.name} is offline: there is nothing to drain.",
                    code="instance_offline",
                )
            if before.drain_asked_at is None:
                await _note(tx, caller.actor, Action.DRAIN, (before.id, before.epoch), {"asked": True})
            return _there(await instances.get(tx, instance_id), instance_id)

        drained = await self._database.write(work)
        self._signal.notify()
        return drained

    async def drain_itself(self, speaker: Speaker, _frame: Mapping[str, Any]) -> None:
        """``drain``: the instance wants nothing new over this connection."""

        async def work(tx: Tx) -> None:
            if await instances.drain_itself(tx, speaker.instance_id, speaker.epoch):
                at = (speaker.instance_id, speaker.epoch)
                await _note(tx, speaker.instance_id, Action.DRAIN, at, {"asked": False})

        await self._database.write(work)

    async def get(self, instance_id: str) -> Instance:
        """The instance of this id.

        Raises:
            Missing: there is none.
        """
        return _there(await self._database.read(lambda tx: instances.get(tx, instance_id)), instance_id)

    async def page(
        self, after: str, limit: int, *, role: str | None = None, status: InstanceStatus | None = None
    ) -> list[Instance]:
        """Up to ``limit`` instances after an id, in the order of their first coming."""
        return await self._database.read(
            lambda tx: instances.page(tx, after, limit, role=role, status=status)
        )


async def part(tx: Tx, server: str, instance_id: str, epoch: int, detail: dict[str, object]) -> bool:
    """Write that a connection which ``server`` held is over, ``detail["goodbye"]`` or not; whether it was the present one.

    What is written is guarded on server and epoch: the late end of an old connection takes nothing from the new (ws-05).
    """
    if not await instances.gone(tx, server, instance_id, epoch, goodbye=bool(detail.get("goodbye"))):
        return False
    await pushes.release(tx, instance_id, epoch)
    await _note(tx, instance_id, Action.DISCONNECT, (instance_id, epoch), {**detail, "server": server})
    return True


async def _take_up(tx: Tx, speaker: Speaker, said: object) -> list[PushKey]:
    """Settle what earlier connections of the instance left open, by what it says that it works on."""
    open_before = await pushes.held(tx, speaker.instance_id, speaker.epoch)
    if not isinstance(said, list):  # it does not say: what it has acknowledged is taken to go on
        kept = [key for key, status in open_before if status is PushStatus.ACKNOWLEDGED]
        await pushes.adopt(tx, kept, speaker.instance_id, speaker.epoch)
        await pushes.release(tx, speaker.instance_id, speaker.epoch)
        return []
    named = _named(said)
    kept = [key for key, status in open_before if _says(named, key, status)]
    await pushes.adopt(tx, kept, speaker.instance_id, speaker.epoch)
    await pushes.release(tx, speaker.instance_id, speaker.epoch - 1)
    await pushes.lose(tx, speaker.instance_id, speaker.epoch - 1, RESTARTED)
    ours = set(kept)
    return [
        key_of(wire_id, fence)
        for wire_id, fence in named
        if fence is not None and key_of(wire_id, fence) not in ours
    ]


def _named(said: Iterable[Any]) -> set[tuple[str, int | None]]:
    """The runs of a hello's ``in_flight``: each a ``run_id`` with its fence, or a bare id."""
    found: set[tuple[str, int | None]] = set()
    for each in said:
        if isinstance(each, str) and each.startswith(Kind.RUN.value):
            found.add((each, None))
        elif isinstance(each, Mapping) and each.get("run_id"):
            found.add((each["run_id"], each.get("fence")))
    return found


def _says(named: set[tuple[str, int | None]], key: PushKey, status: PushStatus) -> bool:
    """Whether the instance works on it. A bare id may be that of an earlier attempt, unless this one was acknowledged."""
    if (key.wire_id, key.fence) in named:
        return status is not PushStatus.PENDING
    return (key.wire_id, None) in named and status is PushStatus.ACKNOWLEDGED


def _there(instance: Instance | None, instance_id: str) -> Instance:
    if instance is None:
        raise Missing(f'There is no instance "{instance_id[:64]}".')
    return instance


async def _note(
    tx: Tx, actor: str, action: Action, connection: tuple[str, int], detail: dict[str, object]
) -> None:
    instance_id, epoch = connection
    await audit.append(
        tx,
        actor=actor,
        action=action,
        subject_kind="instance",
        subject_id=instance_id,
        fence=epoch,
        detail=detail,
    )
