"""What is pushed to instances: the connections of this process, what looks after them, and the runtime ``role`` (TGT-1)."""

from collections.abc import Callable

from gnomon.domain.agent import RoleRuntime
from gnomon.ports.clock import Clock
from gnomon.runtimes.role import RoleTargets
from gnomon.runtimes.table import RuntimeTable
from gnomon.services.agenda import Agenda, instances_there
from gnomon.services.connections import Connections
from gnomon.services.delivery import Delivery
from gnomon.services.engine import Engine
from gnomon.services.heartbeats import Heartbeats
from gnomon.services.instance_sweep import InstanceSweep
from gnomon.services.instances import Instances
from gnomon.services.loop import Errand
from gnomon.services.mint import Mint
from gnomon.services.pushing import Pushing
from gnomon.settings import Settings
from gnomon.wiring.databases import Link
from gnomon.wiring.parts import Pushed


def build_pushed(  # noqa: PLR0917 - the parts of a process, each of its own kind
    settings: Settings,
    link: Link,
    mint: Mint,
    clock: Clock,
    runtimes: RuntimeTable,
    process_id: str,
    agenda: Agenda,
    engine: Callable[[], Engine],
) -> Pushed:
    """Everything that pushes; ``engine`` is made after it. The runtime ``role`` is put into ``runtimes``."""
    database, signal = link.database, link.signal
    connections = Connections()
    instances = Instances(database, mint, signal, process_id)
    pushing = Pushing(database, signal)
    runtimes.put(RoleRuntime, RoleTargets(pushing, clock))

    def say(run_id: str, fence: int, text: str) -> None:
        engine().reports.say(run_id, fence, text)

    delivery = Delivery(database, signal, connections, say, process_id)
    connections.on("drain", instances.drain_itself)
    connections.on("run_ack", delivery.acknowledged)
    connections.on("run_progress", delivery.progressed)
    connections.on("run_result", delivery.answered)
    connections.on_gone(delivery.gone)
    heartbeats = Heartbeats(database, connections, process_id, settings.heartbeat_seconds)
    sweep = InstanceSweep(
        database,
        signal,
        connections,
        settings.heartbeat_timeout_seconds,
        lambda: engine().guard.calm_us(),  # noqa: PLW0108 - it is not there yet
        needed=lambda: agenda.shows(instances_there),
    )
    tick = settings.tick_seconds
    return Pushed(
        connections,
        instances,
        (
            Errand("push", pushing.tick, tick),
            Errand("deliver", delivery.tick, tick),
            Errand("hear", heartbeats.tick, heartbeats.every),
        ),
        (sweep.tick,),
    )
