"""The pages hold together: links lead somewhere, files that they name exist, decisions have their five parts."""

import re
from pathlib import Path

import pytest

from support.pages import ROOT, Page, page, pages

_FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|sql|md|toml))(?::[^`]*)?`")
_ROOTS = (ROOT, ROOT / "src/gnomon", ROOT / "docs", ROOT / "tests")
_PARTS = ["Context", "Decision", "Measured", "Consequences", "How to undo"]
DECISIONS = sorted((ROOT / "docs/adr").glob("0*.md"))


@pytest.mark.parametrize("each", pages(), ids=lambda each: each.name)
def test_every_link_leads_somewhere(each: Page) -> None:
    dead = [link for link in each.links() if not _leads(each, link)]
    assert dead == []


def _leads(each: Page, link: str) -> bool:
    if link.startswith("https://"):
        return True
    file, _, anchor = link.partition("#")
    target = each.path if not file else (each.path.parent / file).resolve()
    if not target.exists():
        return False
    return not anchor or anchor in Page(target).anchors()


@pytest.mark.parametrize("each", pages(), ids=lambda each: each.name)
def test_every_file_that_is_named_exists(each: Page) -> None:
    named = {match for match in _FILE.findall(each.prose()) if "NNNN" not in match and "<" not in match}
    missing = sorted(name for name in named if not any((root / name).exists() for root in _ROOTS))
    assert missing == []


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_five_parts(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == _PARTS
    assert text.startswith(f"# {path.stem[:4]} ")
    assert len(text.splitlines()) <= 60


def test_the_index_lists_every_decision_with_its_title() -> None:
    index = page("docs/adr/README.md").text()
    for path in DECISIONS:
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        assert f"- [{title}]({path.name})" in index


def test_every_page_is_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    frontier = [ROOT / "README.md"]
    while frontier:
        path = frontier.pop()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        links = (link.partition("#")[0] for link in Page(path).links() if not link.startswith("https://"))
        frontier += [(path.parent / link).resolve() for link in links if link]
    found = {each.path for each in pages() if each.path.parent.name != "changelog.d"}
    assert found - seen == set()


def test_the_page_for_agents_stays_short() -> None:
    assert len(page("AGENTS.md").text().splitlines()) <= 150


@pytest.mark.parametrize("path", sorted((ROOT / "changelog.d").glob("*.md")), ids=lambda path: path.name)
def test_a_fragment_is_one_sentence_or_two_under_a_known_type(path: Path) -> None:
    assert re.fullmatch(r"\+?[a-z0-9-]+\.(feature|bugfix|doc|removal|misc)\.md", path.name)
    text = path.read_text(encoding="utf-8")
    assert text.endswith(".\n")
    assert text.count("\n") == 1
