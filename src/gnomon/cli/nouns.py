"""What every noun of the API can: list, get, create, patch, delete. What a noun is made of stands in its own module."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from gnomon.cli.command import Talk, asking
from gnomon.cli.terminal import Column

File = Annotated[
    str | None, typer.Option("--file", "-f", help="A file with it, as YAML or JSON; - is standard input.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="One field: name=value, with dots into objects. Repeatable.")
]
Ref = Annotated[str, typer.Argument(metavar="ID", help="Its id, or its slug.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="At most so many.")]
Cursor = Annotated[str | None, typer.Option(help="Go on where an earlier list ended.")]
OnceKey = Annotated[
    str | None,
    typer.Option("--idempotency-key", help="Make it once under this name, however often it is asked for."),
]


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun of the API: its path under ``/v1``, what one of it is called, what a list of it shows."""

    path: str
    one: str
    columns: Sequence[Column]
    empty: str

    def of(self, ref: str, *rest: str) -> str:
        """The path of one of it, or of something below."""
        return "/" + "/".join((self.path, quoted(ref), *rest))


def quoted(ref: str) -> str:
    """An id or a slug as a part of a path."""
    from urllib.parse import quote

    return quote(ref, safe="")


def named(record: Mapping[str, Any]) -> str:
    """How a record is called in a sentence: its slug or its name, and its id."""
    name = record.get("slug") or record.get("name")
    return f"{name} ({record.get('id')})" if name else str(record.get("id"))


def once(key: str | None) -> dict[str, str]:
    """The header that makes a request safe to repeat (IDM-2)."""
    return {"Idempotency-Key": key} if key else {}


def add_list(group: typer.Typer, noun: Noun) -> None:
    """Add ``list``."""

    @asking(group, "list", help=f"List the {noun.path}.")
    def _list(talk: Talk, *, limit: Limit = 50, cursor: Cursor = None) -> None:
        answer = talk.api.get(f"/{noun.path}", {"limit": limit, "cursor": cursor})
        talk.out.listing(answer, noun.columns, empty=noun.empty, more=f"gnomon {noun.path} list")


def add_get(group: typer.Typer, noun: Noun, name: str = "get") -> None:
    """Add ``get``."""

    @asking(group, name, help=f"Show one {noun.one} in full.")
    def _get(talk: Talk, ref: Ref) -> None:
        talk.out.record(talk.api.get(noun.of(ref)))


def add_patch(group: typer.Typer, noun: Noun) -> None:
    """Add ``patch``."""

    @asking(group, "patch", help=f"Change fields of one {noun.one}; what is not named stays.")
    def _patch(talk: Talk, ref: Ref, *, file: File = None, pairs: Set = None) -> None:
        from gnomon.cli.documents import written

        changed = talk.api.patch(noun.of(ref), written(file, pairs or []))
        talk.out.done(f"Changed {noun.one} {named(changed)}.", changed)


def add_delete(group: typer.Typer, noun: Noun, *, verb: str = "delete", help_text: str | None = None) -> None:
    """Add ``delete``."""

    @asking(group, verb, help=help_text or f"Delete one {noun.one}.")
    def _delete(talk: Talk, ref: Ref) -> None:
        talk.api.delete(noun.of(ref))
        talk.out.done(f"{verb.capitalize()}d {noun.one} {ref}.", {"deleted": ref})
