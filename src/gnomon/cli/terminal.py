"""What a command prints: records, lists and problems, for people or as JSON. It must not know what a record is about.

People get text that reads in 80 columns and in fewer: a list drops its least important columns, and where even that is
too wide each record becomes a block. What goes into a pipe or a file has no width, and all of it. Colour only on a terminal, and never with ``NO_COLOR``. Results go to standard
output, everything else to standard error.
"""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

# Only where it is a word of its own: within a dedup key it is a part of a name, which somebody may copy.
INSTANT = re.compile(r"(?<![\w/:.=@-])(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z(?![\w/:=@-])")
LOCAL = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)")
FRACTION = re.compile(r"(T\d\d:\d\d:\d\d)\.\d+Z")
# What is one word where a line is broken: an instant, and a command that somebody may copy.
UNBROKEN = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|`gnomon [^`]+`")
GAP = 2
COLOURS = {"red": 31, "green": 32, "yellow": 33}
READABLE = 20
SHORTEST = 9
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list: its title, and how to find its text: a dotted path, or a function of the record.

    The columns of a list stand in the order of their importance: what does not fit is dropped from the right. A text
    that may be ``cut`` is shortened first, so that more columns fit; an id never is. For a column to ``keep`` the texts
    before it are shortened further than for others.
    """

    title: str
    source: str | Callable[[Mapping[str, Any]], Any]
    cut: bool = False
    keep: bool = False

    def text(self, record: Mapping[str, Any]) -> str:
        """What stands in this column for one record."""
        value: Any = record
        if not isinstance(self.source, str):
            return shown(self.source(record))
        for part in self.source.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return shown(value)


class Terminal:
    """Prints for one command."""

    def __init__(self, *, as_json: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.as_json = as_json
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err

    @property
    def width(self) -> int:
        """Columns there are: as ``COLUMNS`` says, or the terminal; without either there is no end to a line."""
        if not (os.environ.get("COLUMNS", "").isdigit() or self._out.isatty()):
            return sys.maxsize
        return max(20, shutil.get_terminal_size((80, 24)).columns)

    def data(self, value: Any) -> None:
        """Print JSON: one document."""
        print(json.dumps(value, indent=2, ensure_ascii=False, default=str), file=self._out, flush=True)

    def event(self, value: Any) -> None:
        """Print JSON: one line of a stream."""
        print(json.dumps(value, ensure_ascii=False, default=str), file=self._out, flush=True)

    def line(self, text: str = "", colour: str | None = None) -> None:
        """Print a line for people, in full; with ``--json`` nothing."""
        if not self.as_json:
            colour = colour if self.coloured(self._out) else None
            print(paint(CONTROL.sub("�", text), colour), file=self._out, flush=True)

    def note(self, text: str) -> None:
        """Print a line beside the result, to standard error; with ``--json`` nothing."""
        if not self.as_json:
            print(CONTROL.sub("�", text), file=self._err, flush=True)

    def record(self, record: Mapping[str, Any]) -> None:
        """Print one record: every field that has a value."""
        if self.as_json:
            self.data(record)
            return
        for text in fields(record):
            for part in hung(text, self.width):
                self.line(part)

    def listing(
        self, answer: Mapping[str, Any], columns: Sequence[Column], *, empty: str, more: str | None = None
    ) -> None:
        """Print a list as the API gave it (``items``, ``next_cursor``); ``empty`` says what to do where it is none."""
        if self.as_json:
            self.data(answer)
            return
        items = answer["items"]
        if not items:
            self.note(empty)
            return
        for text in table(items, columns, self.width):
            self.line(text)
        if more and answer.get("next_cursor"):
            self.note(f"There are more: {more} --cursor {answer['next_cursor']}")

    def done(self, sentence: str, data: Any) -> None:
        """Say that it is done."""
        if self.as_json:
            self.data(data)
        else:
            self.sentence(sentence)

    def sentence(self, text: str) -> None:
        """Print a sentence for people, broken between words; with ``--json`` nothing."""
        for part in hung(text, self.width):
            self.line(part)

    def problem(self, problem: Mapping[str, Any]) -> None:
        """Print what went wrong, field by field, to standard error."""
        if self.as_json:
            print(json.dumps(problem, indent=2, ensure_ascii=False, default=str), file=self._err, flush=True)
            return
        faults = problem.get("errors") or []
        detail = str(problem.get("detail") or problem.get("title") or problem.get("code") or "It failed.")
        one = f"{faults[0].get('field')}: {faults[0].get('message')}" if len(faults) == 1 else ""
        lines = [f"Error: {detail.replace('; errors lists them.', ':')}"]
        if detail != one:
            lines += [f"  {fault.get('field') or 'request'}: {fault.get('message')}" for fault in faults]
        if (
            problem.get("request_id") and problem.get("status", 0) >= 500
        ):  # the server's log has more under it
            lines.append(f"  (request {problem['request_id']})")
        head = paint("Error:", "red" if self.coloured(self._err) else None)
        for line in (FRACTION.sub(r"\1Z", each) for each in lines):
            for part in hung(line, self.width) if self._err.isatty() else [line]:
                print(CONTROL.sub("�", part).replace("Error:", head, 1), file=self._err, flush=True)

    @staticmethod
    def coloured(stream: TextIO) -> bool:
        """Whether this stream gets colour."""
        return stream.isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, colour: str | None) -> str:
    """``text`` in a colour of the terminal, or as it is."""
    return text if colour is None else f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


def shown(value: Any) -> str:
    """A value on one line, as people read it: instants without their fraction, nothing as a dash."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(each)}" for name, each in value.items() if each is not None) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(shown(each) for each in value)
    local = LOCAL.fullmatch(str(value))
    return f"{local[1]} {local[2]}" if local else INSTANT.sub(r"\1 \2Z", str(value).replace("\n", " "))


def to_the_minute(instant: str | None) -> str | None:
    """An instant without seconds where there are none, as most slots have none: for lists that are short of room."""
    return instant and shown(instant).replace(":00Z", "Z")


def hung(text: str, width: int) -> list[str]:
    """A ``name: value`` line broken between words at ``width``, the rest under its value; what is one word stays so.

    An instant is one word, and so is a command between backticks: it stands on a line of its own where it is longer.
    """
    if len(text) <= width:
        return [text]
    label = re.match(r"\s*(?:- )?(?:\w+: +)?", text)
    indent = min(label.end() if label else 0, width // 3)
    broken = textwrap.wrap(
        UNBROKEN.sub(lambda found: found[0].replace(" ", "\0"), text),
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )
    return [part.replace("\0", " ") for part in broken]


def _says_something(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_says_something(each) for each in value.values())
    return value not in (None, "", [])


def fields(record: Mapping[str, Any], indent: str = "") -> list[str]:
    """A record as ``name: value`` lines; what has no value is left out, what has parts is indented."""
    names = [name for name, value in record.items() if _says_something(value)]
    width = max((len(name) for name in names), default=0) + 1
    lines = []
    for name in names:
        value = record[name]
        label = f"{indent}{name}:".ljust(len(indent) + width)
        if isinstance(value, Mapping):
            lines += [f"{indent}{name}:", *fields(value, indent + "  ")]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            lines += [f"{indent}{name}:"]
            for each in value:
                first, *rest = fields(each, "") or ["-"]
                lines += [f"{indent}  - {first}", *(f"{indent}    {text}" for text in rest)]
        elif isinstance(value, str) and "\n" in value:
            lines += [f"{indent}{name}:", *(f"{indent}  {text}" for text in value.splitlines())]
        else:
            lines.append(f"{label} {shown(value)}")
    return lines


def table(records: Sequence[Mapping[str, Any]], columns: Sequence[Column], width: int) -> list[str]:
    """A list as lines of at most ``width``; as blocks where not even its three first columns fit."""
    texts = [[column.text(record) for column in columns] for record in records]
    widths = [max(len(column.title), *(len(row[at]) for row in texts)) for at, column in enumerate(columns)]
    kept = max((at + 1 for at, column in enumerate(columns) if column.keep), default=0)
    for count in range(len(columns), min(2, len(columns) - 1), -1):
        shortest = SHORTEST if count == kept else READABLE
        fitted = _fitted(widths[:count], columns, width, shortest)
        if fitted is not None:
            rows = [[column.title.upper() for column in columns], *texts]
            return [_row(row, fitted) for row in rows]
    return _blocks(texts, columns)


def _fitted(widths: Sequence[int], columns: Sequence[Column], width: int, shortest: int) -> list[int] | None:
    """The widths with which these columns fit, the longest of those that may be cut shortened first; or ``None``."""
    fitted = list(widths)
    over = sum(fitted) + GAP * (len(fitted) - 1) - width
    while over > 0:
        size, at = max(((size, at) for at, size in enumerate(fitted) if columns[at].cut), default=(0, 0))
        if size <= shortest:
            return None
        step = min(over, size - shortest)
        fitted[at] -= step
        over -= step
    return fitted


def _row(texts: Sequence[str], widths: Sequence[int]) -> str:
    cells = (
        text if len(text) <= size else text[: size - 1] + "…"
        for text, size in zip(texts, widths, strict=False)
    )
    return (" " * GAP).join(cell.ljust(size) for cell, size in zip(cells, widths, strict=False)).rstrip()


def _blocks(texts: Sequence[Sequence[str]], columns: Sequence[Column]) -> list[str]:
    width = max(len(column.title) for column in columns) + 1
    lines: list[str] = []
    for row in texts:
        if lines:
            lines.append("")
        lines += [
            f"{column.title}:".ljust(width) + f" {text}"
            for column, text in zip(columns, row, strict=True)
            if text != "-"
        ]
    return lines
