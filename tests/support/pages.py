"""The pages of the project as tests read them: Markdown files, their fenced blocks, links, headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(`{3,})(.*)$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$")
_CODE = re.compile(r"`[^`\n]+`")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: the words after the fence, its text, the line of its fence."""

    info: tuple[str, ...]
    text: str
    line: int

    @property
    def language(self) -> str:
        return self.info[0] if self.info else ""


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cache  # noqa: B019 - pages are few and live as long as the tests
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def blocks(self) -> list[Block]:
        return [block for block, _ in _parts(self.text()) if block is not None]

    def prose(self) -> str:
        """Everything outside of fenced blocks."""
        return "\n".join(line for block, line in _parts(self.text()) if block is None)

    def words(self) -> str:
        """The prose without inline code."""
        return _CODE.sub(" ", self.prose())

    def links(self) -> list[str]:
        return _LINK.findall(_CODE.sub(" ", self.prose()))

    def anchors(self) -> set[str]:
        """The fragments that its headings can be reached by, as GitHub makes them."""
        found = (_HEADING.match(line) for line in self.prose().splitlines())
        return {_anchor(match.group(1)) for match in found if match}


def pages() -> list[Page]:
    """Every page of the project."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "changelog.d").glob("*.md")]
    return [Page(path) for path in sorted(files)]


def page(name: str) -> Page:
    return Page(ROOT / name)


def _anchor(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def _parts(text: str) -> Iterator[tuple[Block | None, str]]:
    """Each line of prose, and each block whole."""
    fence, info, begun = "", (), 0
    inside: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _FENCE.match(line)
        if fence:
            if line.startswith(fence) and not line.strip("`"):
                yield Block(tuple(info), "\n".join(inside) + "\n", begun), ""
                fence, inside = "", []
            else:
                inside.append(line)
        elif match:
            fence, info, begun = match.group(1), tuple(match.group(2).split()), number
        else:
            yield None, line
