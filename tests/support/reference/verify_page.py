"""``docs/reference/verify.md``: the invariants that ``gnomon verify`` judges (OPS-7)."""

from gnomon.domain.breach import TOLD
from support.reference.markdown import table

_OVER = {
    "occurrences": "The ledger",
    "schedules": "Schedules",
    "status_changes": "Changes of status",
    "runs": "Runs",
    "attempts, checkpoints, events": "What hangs on runs",
    "api_keys": "Keys",
    "audit": "The audit",
}


def verify_page() -> str:
    """The page."""
    lines = [
        "# Invariants",
        "",
        "What `gnomon verify` judges a whole database by. The name is stable, and is what `--json` gives as `invariant`.",
        "How to read its answer is in the [guide](../guide/verify.md).",
    ]
    for over, title in _OVER.items():
        lines += ["", f"## {title}", ""]
        lines += table(
            ("invariant", "what holds", "rules"),
            ((f"`{name}`", told.demands, told.rules) for name, told in TOLD.items() if told.over == over),
        )
    return "\n".join(lines) + "\n"
