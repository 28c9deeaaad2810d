"""Every example of the pages runs as it is written, in one shell from top to bottom (`support/page_runner.py`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gnomon.cadence import Cadence
from support.page_runner import Reader, checkout
from support.pages import Page, page, pages

RUN = [each for each in pages() if any(block.language == "sh" for block in each.blocks())]
KNOWN = {"server", "background", "fails", "until", "contains", "file", "exact", "like", "run", "cadence"}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.close()


@pytest.mark.process
@pytest.mark.timeout(180)
@pytest.mark.parametrize("each", RUN, ids=lambda each: each.name)
def test_what_a_page_says_works(each: Page, reader: Reader) -> None:
    if each.name == "README.md":
        checkout(reader.folder)
    reader.follow(each.blocks())


def test_the_readme_and_the_guide_are_run() -> None:
    assert {"README.md", *(f"docs/guide/{name}.md" for name in GUIDE)} <= {each.name for each in RUN}


GUIDE = (
    "agents",
    "board",
    "cadences",
    "idempotency",
    "jobs",
    "mcp",
    "running",
    "schedules",
    "security",
    "teams",
    "verify",
    "workers",
)


@pytest.mark.parametrize("each", pages(), ids=lambda each: each.name)
def test_a_block_says_what_it_is_in_known_words(each: Page) -> None:
    for block in each.blocks():
        assert block.language, f"line {block.line} has no language"
        assert {word.partition("=")[0] for word in block.info[1:]} <= KNOWN, f"line {block.line}"


def test_cadences_of_the_guide_can_be_used() -> None:
    import json

    found = [
        Cadence.parse(json.loads(block.text))
        for block in page("docs/guide/cadences.md").blocks()
        if block.info == ("json", "cadence")
    ]
    assert len(found) > 5
