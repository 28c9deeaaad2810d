"""Definitions in files: read as they stand, without YAML's guesses."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.cli.command import Usage
from gnomon.cli.documents import read_file, read_mapping, to_yaml, written


def saved(folder: Path, text: str) -> str:
    file = folder / "definition.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10:30", "10:30"),  # YAML 1.1 says 630
        ("2026-12-24", "2026-12-24"),
        ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z"),
        ("no", "no"),
        ("on", "on"),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("true", True),
        ("null", None),
        ("", None),
        ("-5", -5),
        ("2.5", 2.5),
        ("1e3", 1000.0),
        ("fri", "fri"),
    ],
)
def test_a_scalar_means_what_it_would_in_json_or_else_is_text(tmp_path: Path, text: str, value: Any) -> None:
    assert read_mapping(saved(tmp_path, f"a: {text}\n")) == {"a": value}


def test_json_is_read_as_well(tmp_path: Path) -> None:
    assert read_file(saved(tmp_path, '{"at": ["09:00"], "every": 1}')) == {"at": ["09:00"], "every": 1}


@pytest.mark.parametrize("text", ["a: [", "a: !!python/object:os.system {}", "- 1", "just text", ""])
def test_what_is_no_object_is_bad_usage(tmp_path: Path, text: str) -> None:
    with pytest.raises(Usage):
        read_mapping(saved(tmp_path, text))


def test_a_file_that_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="can't be read"):
        read_mapping(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]",
        "a: " + "[" * 3_000,
        "a: " + "9" * 5_000,
        "a: 1e999",
        'a: "\\ud800"',
        "a: !!int x",
        "a: !!bool x",
        "a: !!timestamp x",
        "a: !!timestamp 2026-12-24",
        "a: !!binary aGk=",
        "a: !!set {x, y}",
    ],
    ids=lambda text: text[:24],
)
def test_what_json_cannot_say_is_bad_usage(tmp_path: Path, text: str) -> None:
    with pytest.raises(Usage):
        read_file(saved(tmp_path, text))


def test_an_alias_repeats_what_it_names(tmp_path: Path) -> None:
    assert read_file(saved(tmp_path, "a: &x [1]\nb: *x\n")) == {"a": [1], "b": [1]}


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20) | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(document=st.dictionaries(st.text(min_size=1, max_size=8), _VALUES, max_size=4))
def test_what_is_exported_is_read_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    """SCH-13: export gives the form that apply takes."""
    file = tmp_path_factory.getbasetemp() / "round.yaml"
    file.write_text(to_yaml(document), encoding="utf-8")
    assert read_file(str(file)) == document


def test_flags_win_over_pairs_over_the_file(tmp_path: Path) -> None:
    file = saved(tmp_path, "name: a\nslug: a\nretry:\n  max_attempts: 1\n")
    body = written(
        file, ["name=b", "slug=b", "retry.backoff_seconds=5", "limits.cost=0.5"], name="c", query=None
    )
    assert body == {
        "name": "c",
        "slug": "b",
        "retry": {"max_attempts": 1, "backoff_seconds": 5},
        "limits": {"cost": 0.5},
    }


@pytest.mark.parametrize("pairs", [[], ["name"], ["=x"], ["a=1", "a.b=2"]])
def test_what_says_nothing_or_is_no_pair_is_bad_usage(pairs: list[str]) -> None:
    with pytest.raises(Usage):
        written(None, pairs)
