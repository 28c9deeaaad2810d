"""Numbers with their nouns."""

import pytest

from gnomon.cli.counting import counted


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (counted(0, "schedule"), "0 schedules"),
        (counted(1, "schedule"), "1 schedule"),
        (counted(2_000, "schedule"), "2,000 schedules"),
        (counted(1, "audit entry", "audit entries"), "1 audit entry"),
        (counted(9, "audit entry", "audit entries"), "9 audit entries"),
        (counted(0.5, "second"), "0.5 seconds"),
        (counted(1.0, "second"), "1 second"),
    ],
)
def test_a_number_agrees_with_its_noun(text: str, told: str) -> None:
    assert text == told
