"""Trace context of a run (W3C): derived from the run's id, so that it needs no place in the record.

A run that was invoked with a ``traceparent`` of its caller keeps that trace instead.
"""

import hashlib


def trace_id(run_id: str) -> str:
    """The 32 hex digits of the run's own trace."""
    return hashlib.blake2b(run_id.encode(), digest_size=16).hexdigest()


def traceparent(trace: str, run_id: str, attempt: int) -> str:
    """The header that an attempt hands to its target."""
    span = hashlib.blake2b(f"{run_id}/{attempt}".encode(), digest_size=8).hexdigest()
    return f"00-{trace}-{span}-01"
