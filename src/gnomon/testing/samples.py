"""Callables for a `python` agent, to try things with: no network, no cost, an answer at once."""

from gnomon.domain.invocation import Invocation


def greet(invocation: Invocation) -> str:
    """Greet, and say what it was asked, for which slot, in which attempt."""
    slot = invocation.nominal_fire_at
    when = "by hand" if slot is None else f"for the slot {slot:%Y-%m-%d %H:%M} UTC"
    return f"Hello from {invocation.run_id}, started {when}, attempt {invocation.attempt}: {invocation.query}"


def count_words(invocation: Invocation) -> str:
    """Count the words of what it was asked."""
    words = len(invocation.query.split())
    return f"{words} word{'' if words == 1 else 's'}"
