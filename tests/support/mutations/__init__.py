"""The guards, one by one, and what the source looks like without them (PRF-4). One file for each part of the program.

A module here has ``MUTANTS``, a tuple of ``Mutant``; ``tests/support/mutants.py`` finds it by itself.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard taken out: in ``file`` (below ``src/gnomon``), ``old`` becomes ``new``, and ``test`` must go red.

    ``old`` must stand there exactly once; ``within`` narrows that to one named query of an SQL file.
    """

    guard: str
    file: str
    old: str
    new: str
    test: str
    within: str | None = None

    @property
    def where(self) -> str:
        """The place as people read it."""
        return self.file if self.within is None else f"{self.file}: {self.within}"


def in_query(name: str, guard: str, old: str, new: str, test: str) -> Mutant:
    """A mutant of one named query: ``name`` is ``noun.words``."""
    noun, _, words = name.partition(".")
    return Mutant(guard, f"stores/sql/{noun}.sql", old, new, test, within=words)


def without(name: str, clause: str, test: str) -> Mutant:
    """A named query without one of its conditions, ``AND …`` at the end of its text."""
    return in_query(name, clause, f" AND {clause}", "", test)
