"""Workers as real processes beside a real server: what they say, what their commands did, what the board says of it."""

import json
import os
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from gnomon.adapters.clock import SystemClock
from gnomon.client import Client
from support.processes import until
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
def working(
    product: Running, folder: Path, *command: str, role: str = "pm", options: tuple[str, ...] = ()
) -> Iterator[Worker]:
    """A worker of a role, once the server has answered it."""
    words = ("work", "--json", "--role", role, *options, "--", *command)
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


def a_job(client: Client, role: str, payload: Any = None) -> str:
    """A job of this role whose one slot comes in a moment; its slug."""
    at = (SystemClock().now() + timedelta(seconds=1.5)).strftime("%Y-%m-%dT%H:%M:%S")
    job = {
        "slug": role,
        "role": role,
        "cadence": {"unit": "once", "at": at},
        "dedup_key": "{{job}}/{{date}}",
        "payload": payload,
    }
    return str(client.request("POST", "/jobs", job)["slug"])


def the_trigger(client: Client, job: str, *statuses: str) -> dict[str, Any]:
    """The one trigger of a job, once it is there and in one of these statuses."""

    def look() -> Any:
        found = client.request("GET", f"/jobs/{job}/triggers")["items"]
        assert len(found) <= 1, "JOB-3: one for each slot"
        return found[0] if found and (not statuses or found[0]["status"] in statuses) else None

    found: dict[str, Any] = until(look, f"a trigger of {job} that is {' or '.join(statuses) or 'there'}")
    return found


def a_role(client: Client, role: str, **changes: Any) -> str:
    """A schedule of an agent that is this role, which never fires by itself; its id."""
    client.request("POST", "/agents", {"slug": role, "runtime": {"kind": "role", "role": role}})
    schedule = {
        "name": role,
        "target": {"kind": "agent", "id": role},
        "cadence": {"unit": "once", "at": "2099-01-01T00:00:00"},
        "query": "how?",
        **changes,
    }
    return str(client.request("POST", "/schedules", schedule)["id"])


def a_run(client: Client, schedule: str) -> str:
    """A run of it, by hand; its id."""
    return str(client.request("POST", f"/schedules/{schedule}/run", {})["id"])


def ended(client: Client, run: str) -> dict[str, Any]:
    """A run once it has ended."""

    def look() -> Any:
        found = client.request("GET", f"/runs/{run}")
        return None if found["status"] in {"queued", "running"} else found

    found: dict[str, Any] = until(look, "the end of the run")
    return found
