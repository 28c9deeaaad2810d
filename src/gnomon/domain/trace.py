"""Trace context of a run (W3C): derived from the run's id, so that it needs no place in the record.

A run that was invoked with a ``traceparent`` of its caller keeps that trace instead.
"""

import hashlib
import re

_HEADER = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def trace_id(run_id: str) -> str:
    """The 32 hex digits of the run's own trace."""
    return hashlib.blake2b(run_id.encode(), digest_size=16).hexdigest()


def given_trace(header: str | None) -> str | None:
    """The trace that a caller's ``traceparent`` names; ``None`` for one that W3C says to leave alone."""
    found = _HEADER.fullmatch(header or "")
    if found is None or (found[1] == "00" and found[3]):  # the first version has no more parts
        return None
    return found[2]


def traceparent(trace: str, run_id: str, attempt: int) -> str:
    """The header that an attempt hands to its target."""
    span = hashlib.blake2b(f"{run_id}/{attempt}".encode(), digest_size=8).hexdigest()
    return f"00-{trace}-{span}-01"
