"""Every invariant over one simulation, by name."""

from support import history_checks, history_executions, history_ledger, history_records
from support.history import History

CHECKS = (*history_checks.CHECKS, *history_records.CHECKS, *history_ledger.CHECKS, *history_executions.CHECKS)


def breaches(history: History) -> list[str]:
    """What is wrong with a history; empty where every invariant holds."""
    return [f"{check.__name__}: {sentence}" for check in CHECKS for sentence in check(history)]
