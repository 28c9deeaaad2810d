"""One process for one piece of work: started behind the gate, noted by the warden, gone before its ending is told."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gnomon.cli.work.asked import OURS, Asked
from gnomon.cli.work.kept import keep
from gnomon.cli.work.verdict import Ended, fault_of
from gnomon.domain.invocation import TargetFailure, Usage
from gnomon.runtimes.processes import Warden, see_through
from gnomon.runtimes.programs import Program, locate, read_result

Say = Callable[[str], None]


class Commands:
    """Runs the worker's command, any number at once. Nothing that it starts outlives this process (RUN-5)."""

    def __init__(self, argv: Sequence[str], own: Mapping[str, str], timeout_seconds: float | None) -> None:
        """Look the command up.

        Raises:
            TargetFailure: there is no such program.
        """
        self._own = own
        self._timeout = timeout_seconds
        self._argv = [locate(argv, own, None), *argv[1:]]
        self._warden = Warden()

    async def run(self, asked: Asked, say: Say, grace: Callable[[], float]) -> Ended:
        """One process, to its end. Cancelled, it is asked with SIGTERM and killed after ``grace()`` seconds (RUN-10)."""
        scratch = Path(tempfile.mkdtemp(prefix="gnomon-work-"))
        try:
            return await self._run(asked, scratch / "result.json", say, grace)
        finally:
            await see_through(asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True))

    async def _run(self, asked: Asked, result_file: Path, say: Say, grace: Callable[[], float]) -> Ended:
        env = {**asked.environment(self._own), f"{OURS}RESULT_FILE": str(result_file)}
        program = Program(self._argv, env, None, self._warden, _Progress(say))
        try:
            async with asyncio.timeout(self._timeout):
                status, output = await program.run(asked.stdin, keep, grace)
        except TimeoutError:
            return Ended(1, fault=f"the command was ended: it took longer than {self._timeout:g} seconds")
        except TargetFailure as failure:
            return Ended(1, fault=failure.message)
        text = output.decode(errors="replace").replace("\x00", "\ufffd")
        try:
            said = read_result(result_file)
        except TargetFailure as failure:
            return Ended(status, text, program.tail(), None, failure.message if status == 0 else None)
        fault = None if said is None else fault_of(said, asked.kind)
        usable = said if isinstance(said, Mapping) and fault is None else None
        return Ended(status, text, program.tail(), usable, fault if status == 0 else None)

    def close(self) -> None:
        """Let the warden go."""
        self._warden.close()


class _Progress:
    """``ports.runtime.Reporter``: each line of stderr is progress."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def progress(self, text: str) -> None:
        self._say(text)

    def usage(self, usage: Usage) -> None:
        """A command tells its usage in its result file."""

    def process_started(self, pgid: int) -> None:
        """The warden knows it."""

    def process_ended(self, pgid: int) -> None:
        """Likewise."""
