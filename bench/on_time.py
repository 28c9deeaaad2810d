"""From a slot's instant to its target, through the real program over HTTP: one at a time, and a thousand at once."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import httpx2

from bench.rounds import tell

ALONE = 20
TOGETHER = 1_000
ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def up(folder: Path) -> Iterator[httpx2.Client]:
    """``gnomon up`` on a fresh file; a client with its admin key."""
    env = {**os.environ, "GNOMON_DATABASE_URL": f"sqlite:///{folder}/gnomon.db", "GNOMON_PORT": "0"}
    with (folder / "up.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gnomon", "up", "--json"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=env,
            cwd=ROOT,
        )
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            headers = {"Authorization": f"Bearer {said['key']}"}
            with httpx2.Client(base_url=said["address"], headers=headers, timeout=30) as client:
                yield client
        finally:
            process.terminate()
            process.wait(30)


def an_agent(client: httpx2.Client) -> str:
    runtime = {"kind": "python", "path": "bench.stamps:stamp"}
    answer = client.post("/v1/agents", json={"slug": "stamp", "name": "stamp", "runtime": runtime})
    answer.raise_for_status()
    return str(answer.json()["id"])


def once(client: httpx2.Client, agent: str, at: datetime, file: Path) -> None:
    answer = client.post(
        "/v1/schedules",
        json={
            "name": "on time",
            "target": {"kind": "agent", "id": agent},
            "cadence": {"unit": "once", "at": at.strftime("%Y-%m-%dT%H:%M:%S")},
            "query": str(file),
        },
    )
    answer.raise_for_status()


def calls(file: Path, number: int, seconds: float) -> list[tuple[int, int, str]]:
    """The calls in the file, once there are ``number`` of them or the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) >= number:
            break
        time.sleep(0.05)  # noqa: TID251 - a bench waits for another process
    return [(int(slot), int(now), key) for slot, now, key in (line.split() for line in lines)]


def soon(seconds: int) -> datetime:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)  # noqa: TID251 - real time is measured


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with up(folder) as client:
            agent = an_agent(client)
            file = folder / "alone"
            for _ in range(ALONE):
                once(client, agent, soon(4), file)
                time.sleep(1)  # noqa: TID251 - one second apart, so that each is alone
            late = sorted((now - slot) / 1e3 for slot, now, _ in calls(file, ALONE, 10))
            tell("on time", what="one alone: slot to target, ms", n=len(late), p50=median(late), most=late[-1], least=late[0],
                 bar=20, holds=len(late) == ALONE and median(late) <= 20 and late[0] >= 0)  # fmt: skip
            file, at = folder / "together", soon(25)
            for _ in range(TOGETHER):
                once(client, agent, at, file)
            told = calls(file, TOGETHER, 60)
            late = sorted((now - slot) / 1e3 for slot, now, _ in told)
            tell("on time", what="a thousand at one instant: slot to target, ms", n=len(told), keys=len({key for _, _, key in told}),
                 p50=median(late), most=late[-1], least=late[0],
                 holds=len(told) == TOGETHER == len({key for _, _, key in told}) and late[0] >= 0)  # fmt: skip


if __name__ == "__main__":
    main()
