"""``invoke``, the same for agents and teams: ask, and print the answer (INV-4)."""

from typing import Annotated

import typer

from gnomon.cli.command import Exit, Talk, asking
from gnomon.cli.nouns import Noun, OnceKey, Ref, once


def add_invoke(group: typer.Typer, noun: Noun) -> None:
    """Add ``invoke``."""

    @asking(group, "invoke", help=f"Ask one {noun.one} something now, and wait for the answer.")
    def _invoke(
        talk: Talk,
        ref: Ref,
        query: Annotated[str, typer.Argument(help="What to ask; @FILE reads it, @- from standard input.")],
        *,
        email: Annotated[str | None, typer.Option(help="The person it is done for.")] = None,
        session: Annotated[str | None, typer.Option(help="The session it belongs to.")] = None,
        detach: Annotated[bool, typer.Option("--detach", help="Don't wait: print the run and go.")] = False,
        idempotency_key: OnceKey = None,
    ) -> None:
        from gnomon.cli.preview import read_text

        body = {"query": read_text(query), "email": email, "session_id": session}
        given = {name: value for name, value in body.items() if value is not None}
        headers = {**once(idempotency_key), **({"Prefer": "respond-async"} if detach else {})}
        run = talk.api.post(noun.of(ref, "invoke"), given, headers=headers)
        if detach:
            talk.out.done(f"Started run {run['id']}. `gnomon runs tail {run['id']}` follows it.", run)
            return
        if talk.out.as_json:
            talk.out.data(run)
        elif run.get("status") == "succeeded":
            talk.out.line(run.get("output") or "")
        else:
            talk.out.record(run)
        if run.get("status") != "succeeded":
            raise typer.Exit(Exit.FAILED)
