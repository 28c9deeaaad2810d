"""Workers as real processes beside a real server: what they say, what their commands did, what the board says of it."""

import json
import os
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gnomon.client import Client
from support.product import BOUND_SECONDS, Running, running, up

# Short enough for a test to see a lease end, long enough for a busy machine to renew it.
QUICK = {"GNOMON_TASK_LOCK_SECONDS": "3", "GNOMON_SWEEP_SECONDS": "0.5", "GNOMON_HEARTBEAT_SECONDS": "0.5"}


@contextmanager
def served(folder: Path, **env: str) -> Iterator[Running]:
    """A server whose locks are short."""
    with up(folder, **{**QUICK, **env}) as product:
        yield product


def client_of(product: Running) -> Client:
    """A client with the key of the first start."""
    return Client(product.started["address"], product.started["key"])


class Worker:
    """``gnomon work --json`` as a process."""

    def __init__(self, process: Running) -> None:
        self._process = process
        self.events: list[dict[str, Any]] = []

    @property
    def pid(self) -> int:
        return self._process.process.pid

    def until(self, event: str, **fields: Any) -> dict[str, Any]:
        """The next event of this kind with these fields; those before it are in ``events``."""
        wanted = {"event": event, **fields}
        deadline = time.monotonic() + BOUND_SECONDS
        while True:
            try:
                line = self._process.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"never: {wanted}; but {self.events}") from None
            assert line is not None, f"it ended: {''.join(self._process.err)}"
            found: dict[str, Any] = json.loads(line)
            self.events.append(found)
            if wanted.items() <= found.items():
                return found

    def signal(self, number: int) -> None:
        """To the worker alone, not to its command."""
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait()

    @property
    def said(self) -> str:
        """Its standard error."""
        return "".join(self._process.err)


@contextmanager
def working(product: Running, folder: Path, *command: str, options: tuple[str, ...] = ()) -> Iterator[Worker]:
    """A worker of the role pm, once the server has answered it."""
    words = ("work", "--json", "--role", "pm", *options, "--", *command)
    env = {"GNOMON_URL": product.started["address"], "GNOMON_API_KEY": product.started["key"]}
    with running(*words, cwd=folder, **env) as process:
        worker = Worker(process)
        worker.until("started")
        yield worker


def is_there(pid: int) -> bool:
    """Whether a process lives; one that is dead and not yet waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def written(file: Path) -> Callable[[], str]:
    """What a file holds, for ``until``; nothing where it is not there."""
    return lambda: file.read_text() if file.exists() else ""
