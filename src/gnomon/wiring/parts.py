"""What the services and edges of one process are built over, in one record."""

from dataclasses import dataclass

from gnomon.ports.clock import Clock, Entropy
from gnomon.services.agenda import Chore
from gnomon.services.connections import Connections
from gnomon.services.engine import Engine
from gnomon.services.instances import Instances
from gnomon.services.job_engine import JobEngine
from gnomon.services.loop import Errand
from gnomon.services.mint import Mint
from gnomon.services.pausing import Pausing
from gnomon.settings import Settings
from gnomon.wiring.databases import Link


@dataclass(frozen=True, slots=True)
class Pushed:
    """The instances of one process. ``errands`` tick in its engine, ``chores`` in its watchdog."""

    connections: Connections
    instances: Instances
    errands: tuple[Errand, ...]
    chores: tuple[Chore, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the services of one process are built over."""

    settings: Settings
    clock: Clock
    entropy: Entropy
    mint: Mint
    link: Link
    engine: Engine
    pausing: Pausing
    pushed: Pushed
    job_engine: JobEngine
    dispatches: bool
