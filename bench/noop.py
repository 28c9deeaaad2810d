"""The target of the benches: it does nothing."""

from gnomon.client import Invocation


async def noop(invocation: Invocation) -> str:
    """Answer at once."""
    return ""
