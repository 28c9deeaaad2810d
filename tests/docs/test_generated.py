"""The generated pages say what the program says; `make docs` writes them anew. Nothing that has a name is left out."""

import re

import pytest

from gnomon.domain.audit import Action
from gnomon.domain.occurrence import Reason
from support.pages import ROOT
from support.reference import audit_page, codes
from support.reference.pages import PAGES

SOURCE = ROOT / "src/gnomon"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_program_says(name: str) -> None:
    assert (ROOT / "docs/reference" / name).read_text(encoding="utf-8") == PAGES[name]()


def test_every_error_code_is_documented_and_none_is_made_up() -> None:
    """OPS-8: a code is stable, so it is told."""
    assert set(codes.MEANINGS) == codes.expected()


def test_every_code_of_a_run_is_documented() -> None:
    assert set(codes.OF_RUNS) == codes.runs_expected()


def test_a_code_that_nobody_documented_is_noticed() -> None:
    assert "fence_stale" in codes.found_in_source()
    assert "key_revoked" in codes.found_in_source()


def test_every_audit_action_is_documented() -> None:
    """The list is closed (CONTRACT, audit entry)."""
    assert set(audit_page.ACTIONS) | set(audit_page.NOT_WRITTEN) == set(Action)


def test_what_is_said_to_be_written_is_written() -> None:
    text = "\n".join(
        file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py") if file.name != "audit.py"
    )
    written = {Action[name] for name in re.findall(r"\bAction\.([A-Z_]+)\b", text)}
    assert written == set(audit_page.ACTIONS)


def test_reasons_of_slots_are_those_that_the_program_gives() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    given = {Reason[name] for name in re.findall(r"\bReason\.([A-Z_]+)\b", text)}
    assert given == set(codes.OF_SLOTS)
