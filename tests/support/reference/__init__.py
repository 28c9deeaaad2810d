"""The generated reference pages: what the program says of itself, as Markdown. Compared with `docs/reference` by a test."""
