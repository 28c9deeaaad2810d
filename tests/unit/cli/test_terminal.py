"""What commands print: readable in 80 columns and in fewer, harmless whatever a record holds."""

import io
import json
from typing import Any

import pytest

from gnomon.cli.terminal import Column, Terminal, fields, hung, paint, shown, table, to_the_minute

COLUMNS = (
    Column("id", "id"),
    Column("status", "status"),
    Column("next slot", "next_at"),
    Column("name", "who.name", cut=True),
)
RECORDS: list[dict[str, Any]] = [
    {
        "id": "sch_01hf2k00000000000000",
        "status": "active",
        "next_at": "2026-11-29T12:00:00.5Z",
        "who": {"name": "A"},
    },
    {"id": "sch_01hf2k00000000000001", "status": "paused", "next_at": None, "who": {"name": "B" * 40}},
]


@pytest.mark.parametrize("width", [20, 40, 60, 62, 80, 103, 200])
def test_a_list_never_is_wider_than_the_terminal(width: int) -> None:
    widest = max(len(line) for line in table(RECORDS, COLUMNS, width))
    if width >= 60:
        assert widest <= width
    for record in RECORDS:
        assert any(str(record["id"]) in line for line in table(RECORDS, COLUMNS, width)), "an id is never cut"


def test_what_does_not_fit_is_dropped_from_the_right_and_then_becomes_blocks() -> None:
    assert table(RECORDS, COLUMNS, 200)[0].split("  ")[0] == "ID"
    assert "NAME" in table(RECORDS, COLUMNS, 200)[0]
    assert "NAME" in table(RECORDS, COLUMNS, 80)[0]
    assert table(RECORDS, COLUMNS, 80)[2].endswith("BBB…")
    assert "NAME" not in table(RECORDS, COLUMNS, 65)[0]
    assert "NEXT SLOT" in table(RECORDS, COLUMNS, 65)[0]
    assert table(RECORDS, COLUMNS, 30)[:3] == [
        "id:        sch_01hf2k00000000000000",
        "status:    active",
        "next slot: 2026-11-29 12:00:00Z",
    ]


def test_a_column_to_keep_stays_where_others_are_dropped() -> None:
    columns = (
        Column("name", "who.name", cut=True),
        Column("status", "status"),
        Column("id", "id", keep=True),
        Column("next slot", "next_at"),
    )
    lines = table(RECORDS, columns, 50)
    assert max(map(len, lines)) <= 50
    assert "NEXT SLOT" not in lines[0]
    assert all(str(record["id"]) in line for record, line in zip(RECORDS, lines[1:], strict=True))
    assert lines[2].startswith("BBBBBBBBBBBBBBB…")


def test_a_slot_is_short_where_it_has_no_seconds() -> None:
    assert to_the_minute("2026-11-29T00:00:00Z") == "2026-11-29 00:00Z"
    assert to_the_minute("2026-11-29T00:00:10Z") == "2026-11-29 00:00:10Z"
    assert to_the_minute(None) is None


def test_a_sentence_is_not_broken_within_an_instant() -> None:
    text = "Its first slot: 2026-11-30 09:00:00Z."
    assert hung(text, 30) == ["Its first slot:", "2026-11-30 09:00:00Z."]


def test_a_command_that_is_to_be_copied_is_not_broken() -> None:
    command = "`gnomon schedules patch sch_01hf2k00000000000000 --dedup-key 'report-{{date}}'`"
    text = f"  Name what a slot makes, as with {command}, and let the target look."
    assert hung(text, 40) == [
        "  Name what a slot makes, as with",
        f"  {command},",
        "  and let the target look.",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        ([], "-"),
        (True, "yes"),
        (0, "0"),
        (0.25, "0.25"),
        (["a", "b"], "a, b"),
        ({"kind": "agent", "id": None}, "kind agent"),
        ("2026-11-29T12:00:00.123456Z", "2026-11-29 12:00:00Z"),
        ("made at 2026-11-29T12:00:00Z.", "made at 2026-11-29 12:00:00Z."),
        ("sch_1/2026-11-29T12:00:00.123456Z", "sch_1/2026-11-29T12:00:00.123456Z"),
        ("report-2026-11-29T12:00:00Z-de", "report-2026-11-29T12:00:00Z-de"),
        ("2026-11-29T13:00:00", "2026-11-29 13:00:00"),
        ("2026-11-29T13:00", "2026-11-29 13:00"),
        ("report-2026-11-29T13:00:00", "report-2026-11-29T13:00:00"),
        ("a\nb", "a b"),
    ],
)
def test_a_value_is_shown_on_one_line(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_record_shows_its_parts_and_leaves_out_what_is_not_set() -> None:
    record = {
        "id": "x",
        "error": None,
        "retry": {"max_attempts": 3},
        "attempts": [{"number": 1, "outcome": "failed"}],
    }
    assert fields({**record, "query": "one\ntwo"}) == [
        "id:       x",
        "retry:",
        "  max_attempts: 3",
        "attempts:",
        "  - number:  1",
        "    outcome: failed",
        "query:",
        "  one",
        "  two",
    ]


def terminal(*, as_json: bool = False) -> tuple[Terminal, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Terminal(as_json=as_json, out=out, err=err), out, err


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "columns", "cut"),
    [(io.StringIO, None, False), (io.StringIO, "80", True), (_Tty, None, True), (_Tty, "80", True)],
)
def test_what_goes_into_a_pipe_is_not_cut(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], columns: str | None, cut: bool
) -> None:
    """There it is searched; a terminal gets a text that ends in an ellipsis, as does who names a width."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    name, query = "B" * 150, "word " * 40
    out = stream()
    to = Terminal(as_json=False, out=out, err=io.StringIO())
    to.listing({"items": [{**RECORDS[1], "who": {"name": name}}], "next_cursor": None}, COLUMNS, empty="")
    to.record({"query": query.strip()})
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["ID", "STATUS", "NEXT", "SLOT", "NAME"]
    assert lines[1].endswith("…" if cut else name)
    assert (len(lines) > 3) is cut
    assert max(map(len, lines)) <= 80 or not cut


def test_control_characters_of_a_record_never_reach_the_terminal() -> None:
    out, text, _ = terminal()
    out.record({"name": "\x1b[2Jgone\x07\u202e"})
    assert "\x1b" not in text.getvalue()
    assert "\u202e" not in text.getvalue()
    assert "gone" in text.getvalue()


def test_an_empty_list_says_what_to_do_beside_the_result() -> None:
    out, text, err = terminal()
    out.listing({"items": [], "next_cursor": None}, COLUMNS, empty="Make one.")
    assert (text.getvalue(), err.getvalue()) == ("", "Make one.\n")


def test_a_list_that_goes_on_says_how() -> None:
    out, _, err = terminal()
    out.listing({"items": RECORDS, "next_cursor": "abc"}, COLUMNS, empty="", more="gnomon x list")
    assert err.getvalue() == "There are more: gnomon x list --cursor abc\n"


def test_json_is_the_answer_itself_and_nothing_else() -> None:
    out, text, err = terminal(as_json=True)
    answer = {"items": RECORDS, "next_cursor": None}
    out.listing(answer, COLUMNS, empty="Make one.")
    out.line("for people")
    out.note("for people")
    assert json.loads(text.getvalue()) == answer
    assert err.getvalue() == ""


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        ({"detail": "It is busy.", "code": "conflict"}, "Error: It is busy.\n"),
        (
            {"detail": "name: is required", "errors": [{"field": "name", "message": "is required"}]},
            "Error: name: is required\n",
        ),
        (
            {
                "detail": "2 fields are wrong; errors lists them.",
                "errors": [{"field": "a", "message": "no"}, {"field": "b", "message": "neither"}],
                "status": 500,
                "request_id": "req_1",
            },
            "Error: 2 fields are wrong:\n  a: no\n  b: neither\n  (request req_1)\n",
        ),
        (
            {"detail": "The settings can't be used.", "errors": [{"field": "GNOMON_X", "message": "no"}]},
            "Error: The settings can't be used.\n  GNOMON_X: no\n",
        ),
        ({}, "Error: It failed.\n"),
        (
            {"detail": "it is 2026-11-30T15:44:11.046995Z now"},
            "Error: it is 2026-11-30T15:44:11Z now\n",
        ),
    ],
)
def test_a_problem_is_told_field_by_field(problem: dict[str, Any], text: str) -> None:
    out, result, err = terminal()
    out.problem(problem)
    assert err.getvalue() == text
    assert result.getvalue() == ""


def test_a_problem_as_json_goes_to_standard_error() -> None:
    out, result, err = terminal(as_json=True)
    out.problem({"detail": "no", "code": "x"})
    assert json.loads(err.getvalue())["code"] == "x"
    assert result.getvalue() == ""


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert Terminal.coloured(Tty())
    assert not Terminal.coloured(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Terminal.coloured(Tty())
    assert paint("x", None) == "x"
    assert paint("x", "red") == "\x1b[31mx\x1b[0m"


def test_a_line_in_colour_reaches_the_terminal_as_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a record holds is made harmless; the colour around it is ours, and must not be taken for a part of it."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    seen, piped = _Tty(), io.StringIO()
    for out in (seen, piped):
        Terminal(as_json=False, out=out, err=io.StringIO()).line("+ agent \x1b[2Jgone", "green")
    assert seen.getvalue() == "\x1b[32m+ agent �[2Jgone\x1b[0m\n"
    assert piped.getvalue() == "+ agent �[2Jgone\n"


def test_a_long_value_goes_on_under_its_beginning_and_no_id_is_broken() -> None:
    assert hung("short: one two", 20) == ["short: one two"]
    assert hung("output:  one two three four", 20) == ["output:  one two", "      three four"]
    assert hung("key: " + "x" * 40, 20)[-1].strip() == "x" * 40
    assert hung("A sentence that is too long.", 16) == ["A sentence that", "is too long."]
