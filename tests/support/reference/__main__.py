"""Write the generated reference pages anew: `make docs`."""

from pathlib import Path

from support.reference.pages import PAGES

FOLDER = Path(__file__).parents[3] / "docs" / "reference"

for name, make in PAGES.items():
    (FOLDER / name).write_text(make(), encoding="utf-8")
