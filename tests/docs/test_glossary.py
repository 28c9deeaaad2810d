"""The words of the glossary are the words of the project: what it lists is used, what it rejects is not."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.pages import ROOT, Page, page, pages

GLOSSARY = page("docs/glossary.md")
SOURCE = ROOT / "src/gnomon"
# Losing words that mean something else as well, so that only people can tell.
_AMBIGUOUS = {
    "bot",
    "config",
    "input",
    "prompt",
    "account",
    "organisation",
    "spec",
    "trigger",
    "thread",
    "token",
}
_AMBIGUOUS |= {"worker", "epoch", "unlock", "ping", "event log", "handle", "collapse", "next run", "pick up"}
_AMBIGUOUS |= {"cron job", "backfill", "execution", "rescue", "recurrence", "firing", "workflow", "abandoned"}


def entries() -> Iterator[tuple[str, str]]:
    """Each word with those that lost to it."""
    for line in GLOSSARY.prose().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" |")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] not in {"word", "---"}:
            yield cells[0], cells[2]


@cache
def losers() -> frozenset[str]:
    found = {word.strip() for _, lost in entries() for word in lost.split(",") if word.strip()}
    return frozenset(found - _AMBIGUOUS)


def test_the_glossary_is_read() -> None:
    words = {word for word, _ in entries()}
    assert {"slot", "claim", "lease", "fence", "run", "dedup key"} <= words
    assert {"acquire", "dequeue", "reap"} <= losers()


def test_each_word_has_one_entry() -> None:
    words = [word for word, _ in entries()]
    assert sorted(words) == sorted(set(words))


@pytest.mark.parametrize(
    "each", [each for each in pages() if each.name != GLOSSARY.name], ids=lambda each: each.name
)
def test_no_page_uses_a_word_that_lost(each: Page) -> None:
    if each.path.name == "AGENTS.md":
        return  # it warns of two of them
    text = each.words().lower()
    assert [word for word in sorted(losers()) if re.search(rf"\b{word}s?\b", text)] == []


def test_no_name_in_the_source_uses_a_word_that_lost() -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in SOURCE.rglob("*.py")
        for name in _names(path)
        if losers() & set(name.lower().strip("_").split("_"))
    }
    assert found == set()


def _names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name)
        elif isinstance(node, ast.arg):
            yield node.arg


def test_each_word_is_used_beside_the_glossary() -> None:
    text = "\n".join(each.prose().lower() for each in pages() if each.name != GLOSSARY.name)
    text += "\n".join(path.read_text(encoding="utf-8").lower() for path in SOURCE.rglob("*.py"))
    text = text.replace("_", " ")
    to_come = GLOSSARY.prose().partition("## What is to come")[2]
    unused = []
    for word, _ in entries():
        if f"| {word} |" in to_come:
            continue
        plain = re.sub(r" \(.*?\)", "", word)
        unused += [each for each in re.split(r", | and ", plain) if each.lower() not in text]
    assert unused == []
