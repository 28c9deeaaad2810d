"""A process of its own that outlives the server by a moment: it kills the process groups the server leaves behind.

Run as a script, with the read end of a pipe as its stdin. The server writes ``+PGID`` and ``-PGID`` lines; when the
pipe ends, because the server closed it or died in whatever way, every group still noted is killed. It knows nothing
else and imports nothing of Gnomon, so that it starts in milliseconds.

Why not PR_SET_PDEATHSIG: it has to be set between fork and exec, where running Python is not safe in a process with
threads; it fires when the thread that forked ends, not the process; and it reaches the child alone, not its children.
"""

import os
import signal
from contextlib import suppress


def kill(pgid: int) -> None:
    """Kill a process group, if it is still there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signal.SIGKILL)


def watch(pipe: int) -> None:
    """Take notes until the pipe ends, then kill what is still noted."""
    noted: set[int] = set()
    rest = b""
    while chunk := os.read(pipe, 65_536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            pgid = int(line[1:])
            if line[:1] == b"+":
                noted.add(pgid)
            else:
                noted.discard(pgid)
    for pgid in noted:
        kill(pgid)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watch(0)
