"""What every command has: ``--json``, where to talk to, errors as sentences, exit codes 0, 1, 2 and 3.

A command is a function whose first argument is its ``Terminal`` (where it only prints) or its ``Talk`` (where it also
asks the API); this module adds the options that belong to that, and must not know any noun.
"""

import inspect
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, NoReturn, ParamSpec

import typer

from gnomon.cli.terminal import Terminal
from gnomon.domain.errors import GnomonError, Invalid, Unavailable, UnusableDatabase

if TYPE_CHECKING:
    from gnomon.cli.api import Api

P = ParamSpec("P")
PANEL = "Every command"


class Exit(IntEnum):
    """The exit codes of the command line (CONTRACT, CLI)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


class Failed(Exception):  # noqa: N818 - it is how a command ends, not an error in it
    """A command could not do what it was asked to: a problem document, or a sentence, and an exit code."""

    def __init__(self, problem: dict[str, Any] | str, code: Exit = Exit.FAILED) -> None:
        self.problem: dict[str, Any] = {"detail": problem} if isinstance(problem, str) else problem
        self.code = code
        super().__init__(self.problem.get("detail"))


class Usage(Failed):
    """The command line itself is wrong."""

    def __init__(self, detail: str) -> None:
        super().__init__({"detail": detail, "code": "usage"}, Exit.USAGE)


class Talk:
    """What a command that asks the API works with. The API is opened at its first use."""

    def __init__(self, out: Terminal, url: str | None, key: str | None, *, creates: bool = False) -> None:
        self.out = out
        self._url = url
        self._key = key
        self._creates = creates
        self._api: Api | None = None

    @property
    def api(self) -> "Api":
        """The API of the server that was named, or of the settings' database in this process."""
        if self._api is None:
            from gnomon.cli.api import open_api

            self._api = open_api(self._url, self._key, create=self._creates)
        return self._api

    def close(self) -> None:
        """Let go of the API."""
        if self._api is not None:
            self._api.close()


Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", rich_help_panel=PANEL)]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="GNOMON_URL",
        help="Ask this server instead of opening the database of the settings.",
        rich_help_panel=PANEL,
    ),
]
KEY_NAMES = ["GNOMON_API_KEY", "GNOMON_KEY"]  # the first that is there, as in the client
Key = Annotated[
    str | None,
    typer.Option("--key", envvar=KEY_NAMES, help="The API key for that server.", rich_help_panel=PANEL),
]


def local(
    group: typer.Typer, name: str, **options: Any
) -> Callable[[Callable[Concatenate[Terminal, P], None]], Callable[..., None]]:
    """Add a command that asks no API."""

    def register(work: Callable[Concatenate[Terminal, P], None]) -> Callable[..., None]:
        @wraps(work)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            out = Terminal(as_json=bool(kwargs.pop("json")))
            _guarded(out, lambda: work(out, *args, **kwargs))

        return _registered(group, name, run, work, added={"json": (Json, False)}, options=options)

    return register


def asking(
    group: typer.Typer, name: str, *, creates: bool = False, **options: Any
) -> Callable[[Callable[Concatenate[Talk, P], None]], Callable[..., None]]:
    """Add a command that asks the API; one that ``creates`` makes the database where there is none."""

    def register(work: Callable[Concatenate[Talk, P], None]) -> Callable[..., None]:
        @wraps(work)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            out = Terminal(as_json=bool(kwargs.pop("json")))
            url, key = (kwargs.pop(each) for each in ("url", "key"))
            talk = Talk(out, *(None if each is None else str(each) for each in (url, key)), creates=creates)
            try:
                _guarded(out, lambda: work(talk, *args, **kwargs))
            finally:
                talk.close()

        added = {"json": (Json, False), "url": (Url, None), "key": (Key, None)}
        return _registered(group, name, run, work, added=added, options=options)

    return register


def _registered(
    group: typer.Typer,
    name: str,
    run: Callable[..., None],
    work: Callable[..., None],
    *,
    added: dict[str, tuple[Any, Any]],
    options: dict[str, Any],
) -> Callable[..., None]:
    """Give ``run`` the signature of ``work``, without its first parameter and with the added ones: what typer reads."""
    signature = inspect.signature(work, eval_str=True)
    own = list(signature.parameters.values())[1:]
    extra = [
        inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for each, (kind, default) in added.items()
    ]
    run.__signature__ = signature.replace(parameters=[*own, *extra])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (*own, *extra)}
    group.command(name, **options)(run)
    return run


def _guarded(out: Terminal, work: Callable[[], None]) -> None:
    try:
        work()
    except Failed as error:
        _end(out, error.problem, error.code)
    except GnomonError as error:
        gone = isinstance(error, Unavailable) and not isinstance(error, UnusableDatabase)
        _end(out, as_problem(error), Exit.UNREACHABLE if gone else Exit.FAILED)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read us has seen enough (`| head`). Python would complain once more while it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(Exit.FAILED) from None


def as_problem(error: GnomonError) -> dict[str, Any]:
    """An error of ours in the form in which the API tells it."""
    problem: dict[str, Any] = {"detail": error.message, "code": error.code, **error.data}
    if isinstance(error, Invalid) and error.faults:
        problem["errors"] = [{"field": fault.field, "message": fault.message} for fault in error.faults]
        problem["detail"] = (
            "The settings can't be used." if error.code == "settings_invalid" else error.message
        )
    return problem


def _end(out: Terminal, problem: dict[str, Any], code: Exit) -> NoReturn:
    out.problem(problem)
    raise typer.Exit(code)
