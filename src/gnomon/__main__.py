"""The program: ``gnomon`` and ``python -m gnomon``."""

from gnomon.cli.app import build


def main() -> None:
    """Run one command and exit with its code."""
    build()(prog_name="gnomon")


if __name__ == "__main__":
    main()
