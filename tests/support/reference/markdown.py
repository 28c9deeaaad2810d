"""Tables and cells of Markdown, and nothing about what stands in them."""

import re
from collections.abc import Iterable, Iterator, Sequence

_RULE_NUMBERS = re.compile(r"\s*\((?:CONTRACT|HOUSE|[A-Z]{3}-\d)[^()]*\)")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table, line by line; nothing where there are no rows."""
    found = list(rows)
    if found:
        yield f"| {' | '.join(head)} |"
        yield f"| {' | '.join('---' for _ in head)} |"
        for row in found:
            yield f"| {' | '.join(row)} |"


def cell(text: str) -> str:
    """A docstring as one line: Markdown's own marks, no bar that would end a cell, no number of a rule."""
    found = _RULE_NUMBERS.sub("", " ".join(text.split())).replace("``", "`")
    return re.sub(r"(?<!\\)\|", r"\\|", found)
