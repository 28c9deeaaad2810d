"""An instance of the board as a process of its own, with nothing but what Python brings: it claims, works, reports.

    python board_instance.py ADDRESSES KEY NAME SAID

``ADDRESSES`` is a file with the servers of the moment, ``SAID`` where it writes what it did, a line each, before it
sends what it is about to do and after it has heard the answer: so that whoever kills it knows what it may believe.
Instants are seconds since 1970. It ends when it is killed.
"""

import http.client
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENCE_SECONDS = 20
WORK_SECONDS = 0.02


class Instance:
    """One instance."""

    def __init__(self, addresses: str, key: str, name: str, said: str) -> None:
        self.addresses = Path(addresses)
        self.key = key
        self.name = name
        self.said = os.open(said, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.rng = random.Random(name)

    def say(self, **line: Any) -> None:
        """One line, whole whoever dies meanwhile."""
        os.write(self.said, (json.dumps({"name": self.name, "at": time.time(), **line}) + "\n").encode())  # noqa: TID251 - compared with other processes

    def ask(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """One request, to one server or another, until there is an answer."""
        while True:
            address = urlsplit(self.rng.choice(json.loads(self.addresses.read_text())))
            connection = http.client.HTTPConnection(
                address.hostname or "", address.port, timeout=PATIENCE_SECONDS
            )
            try:
                headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
                connection.request("POST", f"/v1/tasks{path}", json.dumps(body), headers)
                answer = connection.getresponse()
                read = json.loads(answer.read())
                if answer.status < 500:
                    return answer.status, read
            except (OSError, http.client.HTTPException, ValueError):
                pass  # its server was killed, or is being started
            finally:
                connection.close()
            time.sleep(0.05)  # noqa: TID251 - a process that has nothing else to do

    def work(self, granted: dict[str, Any]) -> None:
        """One task, from its claim to its report."""
        task, fence = granted["task"]["id"], granted["fence"]
        path = f"/{task}"
        time.sleep(self.rng.uniform(0, WORK_SECONDS))  # noqa: TID251 - this is the work
        if self.rng.random() < 0.1:
            status, _ = self.ask(f"{path}/renew", {"fence": fence, "instance": self.name, "note": "half"})
            self.say(kind="renewed", task=task, fence=fence, status=status)
        self.say(kind="reports", task=task, fence=fence)
        status, _ = self.ask(f"{path}/report", {"fence": fence, "status": "done", "instance": self.name})
        self.say(kind="reported", task=task, fence=fence, status=status)

    def live(self) -> None:
        """Until somebody kills it."""
        while True:
            wish = {
                "role": "pm",
                "instance": self.name,
                "limit": self.rng.choice((1, 2, 3)),
                "claim_id": f"{self.name}/{self.rng.getrandbits(40)}",
                "wait_seconds": 1,
            }
            status, answer = self.ask("/claim", wish)
            assert status == 200, answer
            for granted in answer["items"]:
                self.say(
                    kind="claimed",
                    task=granted["task"]["id"],
                    fence=granted["fence"],
                    ends=granted["expires_at"],
                )
            for granted in answer["items"]:
                self.work(granted)


if __name__ == "__main__":
    Instance(*sys.argv[1:]).live()
