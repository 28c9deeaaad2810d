"""What every noun of the API can: list, get, create, patch, delete. What a noun is made of stands in its own module."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from gnomon.cli.command import Failed, Talk, asking
from gnomon.cli.terminal import Column

File = Annotated[
    str | None, typer.Option("--file", "-f", help="A file with it, as YAML or JSON; - is standard input.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="One field: name=value, with dots into objects. Repeatable.")
]
Ref = Annotated[str, typer.Argument(metavar="ID", help="Its id, or its slug.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Its id.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="At most so many.")]
Cursor = Annotated[str | None, typer.Option(help="Go on where an earlier list ended.")]
OnceKey = Annotated[
    str | None,
    typer.Option("--idempotency-key", help="Make it once under this name, however often it is asked for."),
]

NO_MATCH = "There is none of that kind."


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun of the API: its path under ``/v1``, what one of it is called, what a list of it shows.

    ``handle`` tells what one may be called by; ``meant`` turns that into an id or a slug, where it is neither. ``in_full``
    gives one of it as people read it.
    """

    path: str
    one: str
    columns: Sequence[Column]
    empty: str
    handle: str = "Its id, or its slug."
    meant: Callable[[Talk, str], str] | None = None
    in_full: Callable[[Talk, Mapping[str, Any]], Mapping[str, Any]] | None = None

    def of(self, ref: str, *rest: str) -> str:
        """The path of one of it, or of something below."""
        return "/" + "/".join((self.path, quoted(ref), *rest))

    def named(self, talk: Talk, ref: str, *rest: str) -> str:
        """The same for what somebody typed."""
        return self.of(ref if self.meant is None else self.meant(talk, ref), *rest)


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


@contextmanager
def flagged(talk: Talk, **flags: str) -> Iterator[None]:
    """Beside a field that the API misses, tell people the flag that says it."""
    try:
        yield
    except Failed as refused:
        if not talk.out.as_json:
            for fault in refused.problem.get("errors") or []:
                field, message = fault["field"], fault["message"]
                if field in flags and message.startswith("is required"):
                    fault["message"] = f"{message} ({flags[field]})"
                    told = str(refused.problem.get("detail"))
                    refused.problem["detail"] = told.replace(
                        f"{field}: {message}", f"{field}: {fault['message']}"
                    )
        raise


def again(command: str, **filters: str | None) -> str:
    """How a list is asked for once more, with the filters that it had."""
    import shlex

    given = (f" --{name} {shlex.quote(value)}" for name, value in filters.items() if value is not None)
    return command + "".join(given)


def add_list(group: typer.Typer, noun: Noun) -> None:
    """Add ``list``."""

    @asking(group, "list", help=f"List the {noun.path}.")
    def _list(talk: Talk, *, limit: Limit = 50, cursor: Cursor = None) -> None:
        answer = talk.api.get(f"/{noun.path}", {"limit": limit, "cursor": cursor})
        talk.out.listing(answer, noun.columns, empty=noun.empty, more=f"gnomon {noun.path} list")


def add_get(group: typer.Typer, noun: Noun, name: str = "get") -> None:
    """Add ``get``, or ``show``; the other one of them is the same and is not listed."""

    def _get(talk: Talk, ref: str) -> None:
        found = talk.api.get(noun.named(talk, ref))
        talk.out.record(found if noun.in_full is None or talk.out.as_json else noun.in_full(talk, found))

    _called(noun, _get)
    for each in ("get", "show"):
        asking(group, each, help=f"Show one {noun.one} in full.", hidden=each != name)(_get)


def add_patch(group: typer.Typer, noun: Noun) -> None:
    """Add ``patch``."""

    def _patch(talk: Talk, ref: str, *, file: File = None, pairs: Set = None) -> None:
        from gnomon.cli.documents import written

        changed = talk.api.patch(noun.named(talk, ref), written(file, pairs or []))
        talk.out.done(f"Changed {noun.one} {named(changed)}.", changed)

    _called(noun, _patch)
    asking(group, "patch", help=f"Change fields of one {noun.one}; what is not named stays.")(_patch)


def add_delete(
    group: typer.Typer,
    noun: Noun,
    *,
    verb: str = "delete",
    help_text: str | None = None,
    left: Callable[[Talk, str], str | None] | None = None,
) -> None:
    """Add ``delete``; ``left`` tells, before it is gone, what will be left without it."""

    def _delete(talk: Talk, ref: str) -> None:
        behind = left(talk, ref) if left is not None and not talk.out.as_json else None
        talk.api.delete(noun.named(talk, ref))
        talk.out.done(f"{verb.capitalize()}d {noun.one} {ref}.", {"deleted": ref})
        if behind is not None:
            talk.out.note(behind)

    _called(noun, _delete)
    asking(group, verb, help=help_text or f"Delete one {noun.one}.")(_delete)


def _called(noun: Noun, work: Callable[..., None]) -> None:
    """Let the help of a command say what one of this noun is called by."""
    work.__annotations__["ref"] = Annotated[str, typer.Argument(metavar="ID", help=noun.handle)]
