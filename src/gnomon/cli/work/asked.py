"""What a worker's command is told: variables of its environment and the text on its stdin. Pure but for ``clean``.

What has no value is an empty string, so that a shell script may name every variable under ``set -u``.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gnomon.client.frames import Trigger
from gnomon.client.held import AsyncHeld
from gnomon.domain.instants import rfc3339
from gnomon.domain.invocation import Invocation

OURS = "GNOMON_"
_LONGEST_VALUE = 100_000  # bytes: Linux takes no variable of more than 128 KiB
_NAMES = (
    "TASK_ID",
    "TRIGGER_ID",
    "RUN_ID",
    "ROLE",
    "INSTANCE",
    "ATTEMPT",
    "FENCE",
    "IDEMPOTENCY_KEY",
    "DEDUP_KEY",
    "VERIFY_FIRST",
    "LAST_REPORT",
    "JOB",
    "REDELIVERED",
    "NOMINAL_FIRE_AT",
    "DEADLINE",
    "TENANT",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One piece of work as a command gets it: what it is, by id, its variables without their prefix, its stdin."""

    kind: str
    id: str
    variables: Mapping[str, str]
    stdin: str
    plain: Mapping[str, str] = field(default_factory=dict)  # variables that are not ours by name

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """The command's environment: ``own``, and everything of ours that this work has or has not."""
        ours = {f"{OURS}{name}": _value(self.variables.get(name, "")) for name in _NAMES}
        return {**own, **ours, **self.plain}


def clean(*, keep: Mapping[str, str]) -> dict[str, str]:
    """The worker's own environment without anything of Gnomon's, above all no key (SEC-3); ``keep`` is put back."""
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith(OURS)}
    return {"PATH": os.defpath, **own, **keep}


def of_task(held: AsyncHeld, role: str, instance: str) -> Asked:
    """A task: its title and its body on stdin. Its idempotency key is its id, over all its claims (IDM-3)."""
    task = held.task
    body = task.get("body") or ""
    return Asked(
        "task",
        str(task["id"]),
        {
            "TASK_ID": str(task["id"]),
            "ROLE": role,
            "INSTANCE": instance,
            "FENCE": str(held.fence),
            "IDEMPOTENCY_KEY": str(task["id"]),
            "DEDUP_KEY": task.get("dedup_key") or "",
            "VERIFY_FIRST": "1" if held.verify_first else "",
            "LAST_REPORT": last_report(held.last_report),
        },
        f"{task['title']}\n\n{body}\n" if body else f"{task['title']}\n",
    )


def of_trigger(trigger: Trigger, role: str, instance: str) -> Asked:
    """A trigger: its payload on stdin, a text as it is, anything else as JSON."""
    return Asked(
        "trigger",
        trigger.id,
        {
            "TRIGGER_ID": trigger.id,
            "ROLE": role,
            "INSTANCE": instance,
            "JOB": trigger.job,
            "NOMINAL_FIRE_AT": rfc3339(trigger.nominal_at),
            "IDEMPOTENCY_KEY": trigger.idempotency_key,
            "DEDUP_KEY": trigger.dedup_key,
            "REDELIVERED": "1" if trigger.redelivered else "",
            "VERIFY_FIRST": "1" if trigger.redelivered else "",
        },
        payload_text(trigger.payload),
    )


def of_run(run: Invocation, role: str, instance: str) -> Asked:
    """A run: its query on stdin, and the variables that an agent of kind ``command`` gets (CONTRACT)."""
    return Asked(
        "run",
        run.run_id,
        {
            "RUN_ID": run.run_id,
            "ROLE": role,
            "INSTANCE": instance,
            "ATTEMPT": str(run.attempt),
            "FENCE": str(run.fence),
            "IDEMPOTENCY_KEY": run.idempotency_key,
            "DEDUP_KEY": run.dedup_key or "",
            "NOMINAL_FIRE_AT": "" if run.nominal_fire_at is None else rfc3339(run.nominal_fire_at),
            "DEADLINE": rfc3339(run.deadline),
            "TENANT": run.tenant or "",
        },
        run.query,
        {} if run.traceparent is None else {"TRACEPARENT": run.traceparent},
    )


def payload_text(payload: Any) -> str:
    """A payload as a program reads it."""
    if payload is None:
        return ""
    return payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False) + "\n"


def last_report(report: Mapping[str, Any] | None) -> str:
    """What was reported last, as JSON; without its result where that is too long for a variable."""
    if report is None:
        return ""
    text = json.dumps(report, ensure_ascii=False)
    return text if _fits(text) else json.dumps({**report, "result": None}, ensure_ascii=False)


def _fits(text: str) -> bool:
    return len(text.encode(errors="replace")) <= _LONGEST_VALUE


def _value(text: str) -> str:
    """A text as a variable takes it: no NUL, not too long."""
    kept = text.replace("\0", "\ufffd")
    return kept if _fits(kept) else kept.encode(errors="replace")[:_LONGEST_VALUE].decode(errors="ignore")
