"""The program: ``gnomon`` and ``python -m gnomon``."""

import sys

from gnomon.adapters.interpreter import spare_interpreter


def main() -> None:
    """Run one command and exit with its code."""
    spare_interpreter()
    from gnomon.cli.app import build  # noqa: PLC0415 - after Python was told what is coming

    build(*sys.argv[1:2])(prog_name="gnomon")


if __name__ == "__main__":
    main()
