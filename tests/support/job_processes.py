"""Real servers that push jobs over real sockets, and the instances that are connected to them, each a process."""

import json
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from gnomon.adapters.clock import SystemClock
from support.processes import until
from support.product import Running, running, up

QUICK = {
    "GNOMON_SWEEP_SECONDS": "0.5",
    "GNOMON_HEARTBEAT_SECONDS": "0.5",
    "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": "5",
}
PROGRAM = Path(__file__).with_name("bare_instance.py")


class Instance:
    """One process that is connected to a server."""

    def __init__(self, process: Running) -> None:
        self.process = process
        self.frames: list[dict[str, Any]] = []

    def frame(self, kind: str) -> dict[str, Any]:
        """The next frame of a kind."""
        while True:
            line = self.process.lines.get(timeout=30)
            assert line is not None, f"it ended: {''.join(self.process.err)}"
            frame: dict[str, Any] = json.loads(line)
            self.frames.append(frame)
            if frame["type"] == kind:
                return frame

    def ends(self) -> list[dict[str, Any]]:
        """Every frame that came until its connection was ended, by whichever side."""
        while True:
            line = self.process.lines.get(timeout=30)
            if line is None:
                return self.frames
            self.frames.append(json.loads(line))

    def triggers(self) -> list[dict[str, Any]]:
        """Every trigger that has come by now."""
        while not self.process.lines.empty():
            line = self.process.lines.get()
            if line is not None:
                self.frames.append(json.loads(line))
        return [frame for frame in self.frames if frame["type"] == "job_trigger"]


class World:
    """Servers over one database, and instances that are connected to them."""

    def __init__(self, folder: Path, stack: ExitStack, url: str = "sqlite:///gnomon.db") -> None:
        self._folder, self._stack = folder, stack
        env = {**QUICK, "GNOMON_DATABASE_URL": url}
        self.role = "pm"
        self.first = stack.enter_context(up(folder, **env))
        self.second = stack.enter_context(running("serve", "--port", "0", "--json", cwd=folder, **env))
        self.second.wait_for_start()
        self.second.started["key"] = self.first.started["key"]

    def instance(self, server: Running, name: str, manner: str) -> Instance:
        """An instance that has been welcomed."""
        words = (server.started["address"], self.first.started["key"], self.role, name, manner)
        process = Running(words, self._folder, {}, program=(str(PROGRAM),))
        self._stack.callback(process.end)
        found = Instance(process)
        found.frame("welcome")
        return found

    def job(self, slug: str | None = None) -> None:
        """A job whose one slot comes in a moment."""
        at = (SystemClock().now() + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%S")
        body = {
            "slug": slug or self.role,
            "role": self.role,
            "cadence": {"unit": "once", "at": at},
            "dedup_key": "{{job}}-{{now}}",
            "payload": {"n": 1},
        }
        status, made = self.first.ask("/v1/jobs", method="POST", body=body)
        assert status == 201, made

    def audit(self, trigger_id: str) -> list[dict[str, Any]]:
        """What the audit tells of a trigger, in its order."""
        _, page = self.first.ask(f"/v1/audit?subject={trigger_id}&limit=200")
        items: list[dict[str, Any]] = page["items"]
        return items

    def trigger(self, server: Running, slug: str | None = None) -> dict[str, Any] | None:
        """The job's one trigger, if it is there."""
        _, page = server.ask(f"/v1/jobs/{slug or self.role}/triggers")
        assert len(page["items"]) <= 1
        return page["items"][0] if page["items"] else None

    def ends(self, server: Running, slug: str | None = None) -> dict[str, Any]:
        """The trigger once it has ended."""

        def look() -> Any:
            found = self.trigger(server, slug)
            return found if found is not None and found["finished_at"] is not None else None

        found: dict[str, Any] = until(look, "the end of the trigger")
        return found
