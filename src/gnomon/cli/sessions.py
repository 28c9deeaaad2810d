"""``gnomon sessions``: conversations, and erasing one (RUN-12)."""

import typer

from gnomon.cli.command import Talk, asking
from gnomon.cli.nouns import Cursor, Id, Limit, Noun, add_delete, add_get

NOUN = Noun("sessions", "session", (), "", "Its id.")


def messages(talk: Talk, ref: Id, *, limit: Limit = 50, cursor: Cursor = None) -> None:
    """Print the messages of a session, in order."""
    answer = talk.api.get(NOUN.of(ref, "messages"), {"limit": limit, "cursor": cursor})
    if talk.out.as_json:
        talk.out.data(answer)
        return
    for message in answer["items"]:
        talk.out.line(f"{message.get('created_at', '')} {message['role']}:")
        for text in str(message["content"]).splitlines():
            talk.out.line(f"  {text}")
    if answer.get("next_cursor"):
        talk.out.note(f"There are more: gnomon sessions messages {ref} --cursor {answer['next_cursor']}")


def register(app: typer.Typer, panel: str) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="sessions", help="Sessions: read, erase.", rich_help_panel=panel)
    add_get(group, NOUN)
    asking(group, "messages")(messages)
    add_delete(
        group, NOUN, verb="erase", help_text="Erase one session: its messages and the links to it are gone."
    )
