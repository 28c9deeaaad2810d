"""A conversation that runs add turns to, and its messages as people read them (CONTRACT, "/sessions")."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gnomon.domain.ids import Kind, sibling
from gnomon.domain.instants import maybe_instant, rfc3339


@dataclass(frozen=True, slots=True)
class Session:
    """One session: how many turns it has, and when the last message came."""

    id: str
    created_at: datetime
    turn_count: int
    last_message_at: datetime | None


@dataclass(frozen=True, slots=True)
class Turn:
    """What one run asked and was answered; ``created_at`` and ``answered_at`` are microseconds."""

    run_id: str
    query: str
    output: str | None
    created_at: int
    answered_at: int | None


def to_json(session: Session) -> dict[str, Any]:
    """The read form."""
    last = session.last_message_at
    return {
        "id": session.id,
        "created_at": rfc3339(session.created_at),
        "turn_count": session.turn_count,
        "last_message_at": None if last is None else rfc3339(last),
    }


def messages(turn: Turn) -> list[dict[str, Any]]:
    """The one or two messages of a turn. The answer's id is the ``message_id`` of its run."""
    message_id = sibling(Kind.MESSAGE, turn.run_id)
    found = [_message(f"{message_id}.query", turn, "user", turn.query, turn.created_at)]
    if turn.output is not None:
        found.append(
            _message(message_id, turn, "assistant", turn.output, turn.answered_at or turn.created_at)
        )
    return found


def _message(message_id: str, turn: Turn, role: str, content: str, at: int) -> dict[str, Any]:
    instant = maybe_instant(at)
    assert instant is not None
    return {
        "id": message_id,
        "run_id": turn.run_id,
        "role": role,
        "content": content,
        "created_at": rfc3339(instant),
    }
