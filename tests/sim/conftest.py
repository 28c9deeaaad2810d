"""What the simulations did is told at the end: a simulator that injects nothing proves nothing."""

from collections import Counter

import pytest

DONE: Counter[str] = Counter()


@pytest.fixture
def done() -> Counter[str]:
    """How often what was injected and seen, over all simulations of this process."""
    return DONE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if DONE:
        told = ", ".join(f"{name} {count}" for name, count in sorted(DONE.items()))
        terminalreporter.write_line(f"simulated: {told}")
