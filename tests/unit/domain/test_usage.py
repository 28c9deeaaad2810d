"""What sums of usage are told apart by (UI-1)."""

import pytest

from gnomon.domain.invocation import Usage
from gnomon.domain.usage import Grouping, Used


@pytest.mark.parametrize("name", ["day", "target", "principal"])
def test_a_grouping_is_read_from_its_names(name: str) -> None:
    """UI-1."""
    found = Grouping.of({name})
    assert [each for each in ("day", "target", "principal") if getattr(found, each)] == [name]
    assert Grouping.of(set()) == Grouping(day=False, target=False, principal=False)


def test_a_sum_over_everything_names_nothing() -> None:
    """UI-1."""
    total = Used(None, None, None, None, None, 2, Usage(2) + Usage(1))
    assert (total.runs, total.usage.model_calls, total.day) == (2, 3, None)
