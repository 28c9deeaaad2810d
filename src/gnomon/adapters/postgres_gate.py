"""A process between us and a PostgreSQL server of ours: the server runs under it, as another user, and ends with us.

Run as a script, so it imports nothing of Gnomon and starts in milliseconds; it knows no database. Two ways to call it:

    postgres_gate.py become UID GID PASSAGE COMMAND …    turn into the command, as that user
    postgres_gate.py guard  UID GID PASSAGE COMMAND …    run the command until stdin ends

``guard`` holds the read end of a pipe whose write end is ours alone: when it ends, because we closed it or died in
whatever way, the server is shut down. A server that dies by itself after it had been well is started again. Should the
gate be killed, the kernel stops the server (PR_SET_PDEATHSIG; here the forking thread is the process, so it is exact).
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable

# A fast shutdown breaks off transactions and writes a checkpoint; an immediate one leaves recovery to the next start.
ENDINGS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
IGNORED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
)  # a Ctrl-C is for Gnomon, which stops the server last
WELL_SECONDS = 10.0
PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)

_PR_SET_PDEATHSIG, _PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 1, 28, 47, 2
_SECBIT_NO_SETUID_FIXUP = 4
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2
_CAPABILITY_VERSION_3 = 0x20080522


def _prctl(*numbers: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(*[ctypes.c_ulong(number) for number in (*numbers, 0, 0, 0, 0)[:5]]) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def _set_capabilities(mask: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
    if libc.capset(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capset failed")


def become(uid: int, gid: int, *, passage: bool) -> None:
    """Be that user from now on; with ``passage``, one that may pass through folders which are closed to it.

    That is for a root whose home nobody else may enter, with the program or the data in it: nothing is changed there.
    """
    if passage:  # so that access(2), by which PostgreSQL finds its own files, counts the capability as well
        _prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if passage:
        for capability in (_CAP_DAC_READ_SEARCH, _CAP_DAC_OVERRIDE):  # containers often have the second alone
            try:
                _set_capabilities(1 << capability)
                _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability)
            except OSError:
                continue
            return
        raise PermissionError


def _enter(argv: list[str]) -> list[str]:
    uid, gid, passage, *command = argv
    if int(uid) != os.geteuid():
        become(int(uid), int(gid), passage=passage == "1")
    return command


def _start(argv: list[str]) -> int:
    gate = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        command = _enter(argv)
        for number in (*IGNORED, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == "linux":
            _prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
            if os.getppid() != gate:
                os._exit(1)
        os.execv(command[0], command)  # noqa: S606 - the command is our caller's
    finally:
        os._exit(126)


class Guard:
    """One server under guard, in one thread: forking beside others is not safe."""

    def __init__(self, start: Callable[[], int], lifeline: int) -> None:
        self._start = start
        self._lifeline = lifeline
        self._cut = False
        self._woken, waking = os.pipe()
        os.set_blocking(waking, False)
        signal.set_wakeup_fd(waking)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> int:
        """Keep the server up until the lifeline ends or it can't be kept up; the exit code of its last run."""
        failures, ever_well = 0, False
        while True:
            began = time.monotonic()
            code = self._see_through(self._start())
            well = time.monotonic() - began >= WELL_SECONDS
            ever_well, failures = ever_well or well, 0 if well else failures + 1
            if self._cut or not ever_well or failures >= len(PAUSES):
                return code if code >= 0 else 128 - code
            self._wait(PAUSES[failures])

    def _see_through(self, pid: int) -> int:
        endings, deadline = iter(ENDINGS), 0.0
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            if self._cut and time.monotonic() >= deadline:
                number, seconds = next(endings, ENDINGS[-1])
                os.kill(pid, number)
                deadline = time.monotonic() + seconds
            self._wait(deadline - time.monotonic() if self._cut else None)

    def _wait(self, seconds: float | None) -> None:
        """Return when a child ended, when the lifeline does, or after ``seconds``."""
        watched = [self._woken] if self._cut else [self._woken, self._lifeline]
        ready, _, _ = select.select(watched, [], [], seconds if seconds is None else max(seconds, 0.0))
        if self._woken in ready:
            os.read(self._woken, 1_024)
        if self._lifeline in ready and not os.read(self._lifeline, 1_024):
            self._cut = True


def main(argv: list[str]) -> int:
    """Do as the module says; ``become`` does not return."""
    way, *rest = argv
    if way == "become":
        command = _enter(rest)
        os.execv(command[0], command)  # noqa: S606 - the command is our caller's
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    return Guard(lambda: _start(rest), 0).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
