"""The reference pages say what the program says; `python -m gnomon.cli.reference` writes them anew."""

from pathlib import Path

from gnomon.cli.reference import cli_page, settings_page

PAGES = Path(__file__).parents[2] / "docs" / "reference"


def test_the_page_of_the_command_line_is_the_program_s() -> None:
    assert (PAGES / "cli.md").read_text(encoding="utf-8") == cli_page()


def test_the_page_of_the_settings_is_the_program_s() -> None:
    """OPS-5: one inventory."""
    assert (PAGES / "settings.md").read_text(encoding="utf-8") == settings_page()
