"""The product as a real process: started, asked over a real socket, stopped by a real signal."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.nursery import Born, can_bear, nursery

BOUND_SECONDS = 30.0


def environment(**more: str) -> dict[str, str]:
    """This machine's environment without any setting of ours, and with what makes texts the same everywhere."""
    clean = {name: value for name, value in os.environ.items() if not name.upper().startswith("GNOMON_")}
    return {**clean, "COLUMNS": "80", "NO_COLOR": "1", **more}


def gnomon(*words: str, cwd: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "gnomon", *words],
        cwd=cwd,
        env=environment(**env),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        check=False,
    )


class Running:
    """One process of the product. Its lines are read by threads, so that no pipe ever fills."""

    def __init__(
        self,
        words: tuple[str, ...],
        cwd: Path,
        env: dict[str, str],
        program: tuple[str, ...] = ("-m", "gnomon"),
    ) -> None:
        self.process = _begin([*program, *words], cwd, environment(**env))
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.out, True), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.err, False), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        self.started: dict[str, Any] = {}

    def _read(self, stream: Any, kept: list[str], told: bool) -> None:
        for line in stream:
            kept.append(line)
            if told:
                self.lines.put(line)
        if told:
            self.lines.put(None)

    def wait_for_start(self) -> dict[str, Any]:
        """The line that a process with ``--json`` prints once it is up."""
        line = self.lines.get(timeout=BOUND_SECONDS)
        assert line is not None, f"it ended: {''.join(self.err)}"
        self.started = json.loads(line)
        return self.started

    def said_until(self, words: str) -> str:
        """What it printed, up to the line with these words."""
        text = ""
        while words not in text:
            line = self.lines.get(timeout=BOUND_SECONDS)
            assert line is not None, f"it ended: {''.join(self.err)}"
            text += line
        return text

    def ask(self, path: str, *, method: str = "GET", body: Any = None) -> tuple[int, Any]:
        """One request with the key of the first start."""
        request = urllib.request.Request(self.started["address"] + path, method=method)
        if self.started.get("key"):
            request.add_header("Authorization", f"Bearer {self.started['key']}")
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, data, timeout=BOUND_SECONDS) as answer:
                return answer.status, _read_body(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _read_body(error)

    def stop(self, sig: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(sig)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end; the exit code."""
        code = self.process.wait(BOUND_SECONDS)
        for reader in self._readers:
            reader.join(BOUND_SECONDS)
        return code

    def end(self) -> None:
        """Make sure that nothing of it is left."""
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


def _begin(program: list[str], cwd: Path, env: dict[str, str]) -> "subprocess.Popen[str] | Born":
    if can_bear(env):
        return nursery().bear(program, str(cwd), env)
    return subprocess.Popen(
        [sys.executable, *program],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _read_body(answer: Any) -> Any:
    raw = answer.read()
    kind = answer.headers.get_content_type()
    return json.loads(raw) if kind.endswith("json") else raw.decode()


@contextmanager
def running(*words: str, cwd: Path, **env: str) -> Iterator[Running]:
    """A process that is killed at the end, if it has not ended before."""
    product = Running(words, cwd, env)
    try:
        yield product
    finally:
        product.end()


@contextmanager
def up(cwd: Path, *words: str, **env: str) -> Iterator[Running]:
    """``gnomon up`` on a free port, once it answers."""
    with running("up", "--port", "0", "--json", *words, cwd=cwd, **env) as product:
        product.wait_for_start()
        yield product
