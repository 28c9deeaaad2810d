"""What a command's ending means: its exit status, and the JSON file that it may have left. Pure.

0 is done, 75 is "not now" (EX_TEMPFAIL), everything else a failure that a person should see.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from gnomon.client.board import Report, Status, excerpt
from gnomon.client.frames import Outcome
from gnomon.domain.invocation import TargetFailure
from gnomon.runtimes.answers import read_usage
from gnomon.runtimes.programs import TRY_AGAIN, ending

OUTPUT_CHARACTERS = 60_000
_STATUSES: tuple[str, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its status (negative for a signal), stdout, the end of stderr, what its result file says.

    ``fault`` is what was wrong with that file, or with starting the command at all.
    """

    status: int
    output: str = ""
    tail: str = ""
    said: Mapping[str, Any] | None = None
    fault: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether the command says that it has done its work."""
        return self.status == 0 and self.fault is None

    @property
    def why(self) -> str:
        """Why it has not, in words."""
        return self.fault or ending(self.status, self.tail)


def of_task(ended: Ended) -> Report:
    """What is reported of a task."""
    said = ended.said or {}
    note = said.get("note", said.get("output"))
    result = said.get("result")
    if not ended.is_done:
        status: Status = "backlog" if ended.status == TRY_AGAIN else "blocked"
        return Report(status, excerpt(f"{ended.why}" if note is None else f"{note}\n{ended.why}"), result)
    if note is None and ended.output.strip():
        note = excerpt(ended.output)
        if result is None and len(ended.output.strip()) > len(note):
            result = {"output": excerpt(ended.output, OUTPUT_CHARACTERS)}
    role = said.get("role")
    return Report(said.get("status", "done"), None if note is None else excerpt(str(note)), result, role)


def of_push(ended: Ended) -> Outcome:
    """What is answered to a trigger or a run."""
    said = ended.said or {}
    text = said.get("output", said.get("note"))
    usage = read_usage(said.get("usage"), "the result file")
    if ended.is_done:
        failed = said.get("status", "succeeded") not in {"succeeded", "done"}
        return Outcome(
            "failed" if failed else "succeeded", ended.output if text is None else str(text), usage
        )
    why = ended.why if text is None else f"{text}\n{ended.why}"
    return Outcome("failed", excerpt(why), usage, is_retryable=ended.status == TRY_AGAIN)


def fault_of(said: object, kind: str) -> str | None:
    """What is wrong with a result file, as a sentence; ``kind`` is what it was written for."""
    if not isinstance(said, Mapping):
        return "the result file holds no JSON object"
    known = _STATUSES if kind == "task" else ("succeeded", "failed", "done")
    if said.get("status", known[0]) not in known:
        return f"the status in the result file must be one of {', '.join(known)}"
    if said.get("role") is not None and said.get("status") != "backlog":
        return 'a role in the result file goes with the status "backlog"'
    for name in ("note", "output", "role"):
        if not isinstance(said.get(name), str | None):
            return f"{name} in the result file is no text"
    try:
        read_usage(said.get("usage"), "the result file")
    except TargetFailure as failure:
        return failure.message
    return None
