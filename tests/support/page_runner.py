"""Runs the examples of one page as its reader would: one shell, one folder, a server beside it.

What stands after a fence's language says what its block is:

    server           a command that serves: started in the background, waited for, stopped at the next one or at the end
    background       likewise, beside the server; with =PORT it is waited for too
    fails            the command is refused: its exit code is not 0
    until=TEXT       tried again, within a bound, until its output holds TEXT
    contains=TEXT    its output holds TEXT
    file=NAME        the text of a file in the folder
    exact, like      (on text) the output of the block before; like takes any date, time and id for any other

A block with none of these is run and has to succeed. The reader's port 8420 and 8099 are free ones here.
"""

import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from support.pages import ROOT, Block

BIN = Path(sys.executable).parent
BOUND_SECONDS = 30.0
AGAIN_SECONDS = 0.5  # a command that is tried again is a process each time
LOOK_SECONDS = 0.02
_MASKS = (
    (re.compile(r"\b([a-z]{3})_[0-9a-z]{20}\b"), r"\1_…"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\d(Z?)"), r"TIME\1"),
    (re.compile(r"[+-]\d\d:\d\d\b"), "OFFSET"),
    (re.compile(r"\b\d+\.\d+\b|\b0\b"), "N"),
    (re.compile(r" +"), " "),
)


class Reader:
    """Somebody who follows a page. ``close`` stops what they started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {"8420": str(_free_port()), "8099": str(_free_port())}
        self._bash = self._shell()
        assert self._bash.stdin is not None
        self._bash.stdin.write(b"set -o pipefail; trap 'FAILED=1' ERR\n")
        self._server: subprocess.Popen[bytes] | None = None
        self._beside: list[subprocess.Popen[bytes]] = []
        self.output = ""

    def follow(self, blocks: list[Block]) -> None:
        """Write every file of the page, then do what it says from top to bottom."""
        for block in blocks:
            if name := _word(block, "file"):
                (self.folder / name).write_text(self._own(block.text), encoding="utf-8")
        for block in blocks:
            self._do(block)

    def _do(self, block: Block) -> None:
        words = set(block.info[1:])
        if block.language == "sh":
            self._run(block, words)
        elif block.language == "python" and "run" in words:
            (self.folder / "example.py").write_text(block.text, encoding="utf-8")
            self._shell_run("python example.py", block.line, fails=False)
        elif "exact" in words:
            assert self.output.strip() == block.text.strip(), f"line {block.line}"
        elif "like" in words:
            assert masked(self.output) == masked(block.text), f"line {block.line}:\n{self.output}"

    def _run(self, block: Block, words: set[str]) -> None:
        text = self._own(block.text)
        if "server" in words:
            self._serve(text)
            return
        if any(word.partition("=")[0] == "background" for word in words):
            port = _word(block, "background")
            self._beside.append(self._start(text))
            if port:
                self._await_port(self.ports[port], self._beside[-1])
            return
        wanted = _word(block, "until")
        deadline = time.monotonic() + BOUND_SECONDS
        while True:
            self._shell_run(text, block.line, fails="fails" in words)
            if wanted is None or wanted in self.output:
                break
            assert time.monotonic() < deadline, f"line {block.line}: no {wanted} in\n{self.output}"
            _pause(AGAIN_SECONDS)
        if contained := _word(block, "contains"):
            assert contained in self.output, f"line {block.line}:\n{self.output}"

    def _shell_run(self, text: str, line: int, *, fails: bool) -> None:
        assert self._bash.stdin is not None
        # a failure in the middle of a block counts, and what the block sets stays for the next one
        block = f'FAILED=0; {{ {text.rstrip()}\n}} </dev/null 2>&1\necho; echo "@@end $FAILED"\n'
        self._bash.stdin.write(block.encode())
        self._bash.stdin.flush()
        self.output, status = self._until_end(line)
        assert (status != 0) is fails, f"line {line} ended with {status}:\n{self.output}"

    def _until_end(self, line: int) -> tuple[str, int]:
        assert self._bash.stdout is not None
        found = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._bash.stdout, selectors.EVENT_READ)
            while b"@@end " not in found or not found.endswith(b"\n"):
                assert selector.select(BOUND_SECONDS), f"line {line} takes too long:\n{found.decode()}"
                chunk = os.read(self._bash.stdout.fileno(), 65_536)
                assert chunk, f"line {line} ended the shell:\n{found.decode()}"
                found += chunk
        said, _, status = found.decode().rpartition("@@end ")
        return said.removesuffix("\n"), int(status)

    def _serve(self, text: str) -> None:
        if self._server is not None:
            self._end(self._server)
        self._server = self._start(text)
        self._await_port(self.ports["8420"], self._server, "/healthz")

    def _start(self, text: str) -> subprocess.Popen[bytes]:
        with (self.folder / "background.log").open("ab") as log:
            return subprocess.Popen(
                ["bash", "-c", f"set -e; {text}"],
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _shell(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GNOMON_")}
        path = f"{BIN}{os.pathsep}{kept.get('PATH', '')}"
        return {**kept, "PATH": path, "GNOMON_PORT": self.ports["8420"], "COLUMNS": "80", "NO_COLOR": "1"}

    def _await_port(self, port: str, process: subprocess.Popen[bytes], path: str | None = None) -> None:
        """Wait until something listens, and, with a path, answers: the sockets of a server are there before it is."""
        deadline = time.monotonic() + BOUND_SECONDS
        while not _listens(int(port), path):
            log = (self.folder / "background.log").read_text(encoding="utf-8")
            assert process.poll() is None, f"it ended:\n{log}"
            assert time.monotonic() < deadline, f"nothing listens on {port}:\n{log}"
            _pause(LOOK_SECONDS)

    def _own(self, text: str) -> str:
        for port, own in self.ports.items():
            text = text.replace(port, own)
        return text

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.wait(BOUND_SECONDS)

    def close(self) -> None:
        """Stop everything."""
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        self._bash.wait(BOUND_SECONDS)
        assert self._bash.stdout is not None
        self._bash.stdout.close()
        for process in (*self._beside, *([self._server] if self._server else [])):
            self._end(process)


def masked(text: str) -> str:
    """A text with every date, time, offset, number and id made alike."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def checkout(folder: Path) -> None:
    """What a reader of the README has after `make up` installed it: the Makefile and an environment that is ready."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(BIN)
    for stamp in ("run.stamp", "test.stamp"):
        (folder / ".venv" / stamp).touch()


def _word(block: Block, name: str) -> str | None:
    return next((word.partition("=")[2] for word in block.info if word.startswith(f"{name}=")), None)


def _pause(seconds: float) -> None:
    """Let the processes of the page have the machine before the next look at them."""
    threading.Event().wait(seconds)


def _listens(port: int, path: str | None) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as probe:
            if path is None:
                return True
            probe.settimeout(5)
            probe.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return probe.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
