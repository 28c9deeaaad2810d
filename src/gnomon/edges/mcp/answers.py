"""Errors as words for an agent: what was wrong, field by field, and what to do now. Knows no protocol.

Every sentence is read by a model that acts on it, so it names the tool to call, and says when to stop.
"""

from gnomon.domain.errors import Conflict, FenceStale, GnomonError, Invalid, Missing, Refused, Unavailable

NOT_YOURS = (
    "This claim is not yours any more: it ran out and was taken back, or somebody else holds the task. Stop working on "
    "it now, change nothing more for it, do not report it, and call next_task."
)
_BY_CODE = {
    "key_bound_to_role": "Call whoami: it names the role of your key.",
    "dedup_key_reused": "If it is the same work, do not create it again; get_task shows what is there. If it is other work, "
    "use another dedup_key.",
    "scope_missing": "Do not try again with this key. Ask whoever gave it to you for one that has this scope.",
    "run_in_flight": "Do not start another. get_run shows how that run stands; call again once it is over.",
    "idempotency_key_in_use": "Wait a few seconds, then call again with the same idempotency_key.",
    "idempotency_key_reused": "Use another idempotency_key for another request.",
    "bad_cursor": "Call again without a cursor to begin at the first page.",
    "key_bound": "Do not try again with this key.",
}
_BY_BRANCH: tuple[tuple[type[GnomonError], str], ...] = (
    (Invalid, "Correct what is named above and call again."),
    (Missing, "Check the id; the tools whose names begin with list_ show what there is."),
    (Conflict, "Nothing was changed. Look at how it stands now before you decide what to do."),
    (Refused, "Nothing was changed. Do not repeat the call as it is."),
    (Unavailable, "Nothing was lost. Wait a few seconds, then make the same call again."),
)
UNEXPECTED = (
    "Something went wrong inside Gnomon. Whether the call had an effect is not known: look at how things stand before you "
    "repeat it."
)


def way_out(error: GnomonError) -> str:
    """What the agent should do now."""
    found = _BY_CODE.get(error.code)
    return found or next((words for kind, words in _BY_BRANCH if isinstance(error, kind)), UNEXPECTED)


def in_words(error: GnomonError) -> str:
    """An error of ours as an agent reads it."""
    if isinstance(error, FenceStale):
        return f"{NOT_YOURS} {_as_it_stands(error)}(code: {error.code})"
    faults = error.faults if isinstance(error, Invalid) else ()
    said = [f"- {fault.field or 'arguments'}: {fault.message}" for fault in faults]
    told = "These arguments are wrong:" if said else error.message
    return "\n".join([told, *said, way_out(error), f"(code: {error.code})"])


def unreachable(place: str) -> str:
    """What an agent is told while the server that it works with is gone."""
    return (
        f"Gnomon at {place} can't be reached. Whether the call had an effect is not known. Wait half a minute, then make "
        "the same call again; a task that you hold may be taken back meanwhile."
    )


def _as_it_stands(error: FenceStale) -> str:
    status, holder = error.data.get("task_status"), error.data.get("holder")
    if holder is not None:
        return f"The instance {holder} works on it now. "
    return "" if status is None else f"The task is {status} now. "


def unexpected(request_id: str | None) -> str:
    """What an agent is told of an error that nobody expected; the log has the rest."""
    return UNEXPECTED if request_id is None else f"{UNEXPECTED} The log has it under {request_id}."
