"""What ids are called: the names beside them in lists for people, and the schedule that somebody calls by its name.

Names are asked for one by one, each once; an id whose name can't be had (it was deleted, the key may not read it) stands
for itself. With ``--json`` nothing is asked and nothing is added.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gnomon.cli.command import Exit, Failed, Talk
from gnomon.cli.nouns import quoted

if TYPE_CHECKING:
    from gnomon.cli.api import Query

SCHEDULE_ID = "sch_"
MOST_NAMESAKES = 5


def with_names(
    talk: Talk, answer: Mapping[str, Any], **columns: Callable[["Names", Mapping[str, Any]], Any]
) -> Any:
    """A list whose items have these further fields, worked out from the names that they need."""
    if talk.out.as_json:
        return answer
    names = Names(talk)
    items = [
        {**item, **{field: called(names, item) for field, called in columns.items()}}
        for item in answer["items"]
    ]
    return {**answer, "items": items}


class Names:
    """Names by id, looked up at most once each."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._known: dict[str, str] = {}

    def target(self, record: Mapping[str, Any]) -> str:
        """The slug of the agent or team that a schedule or a run fires."""
        target = record["target"]
        return self._of(f"{target['kind']}s", target["id"], "slug")

    def schedule(self, run: Mapping[str, Any]) -> str | None:
        """The name of the schedule that a run belongs to, if to any."""
        found: str | None = run.get("schedule_id")
        return None if found is None else self._of("schedules", found, "name")

    def _of(self, path: str, ref: str, field: str) -> str:
        if ref not in self._known:
            self._known[ref] = self._asked(path, ref, field)
        return self._known[ref]

    def _asked(self, path: str, ref: str, field: str) -> str:
        found = readable(self._talk, f"/{path}/{quoted(ref)}")
        return ref if found is None else str(found[field])


def readable(talk: Talk, path: str, query: "Query | None" = None) -> Any:
    """What the API has there; ``None`` where it refuses: it is gone, or the key may not read it."""
    try:
        return talk.api.get(path, query)
    except Failed as refused:
        if refused.code is not Exit.FAILED:
            raise
        return None


def schedule_called(talk: Talk, ref: str) -> str:
    """The id of the schedule that somebody means: its id, or its name where no other schedule has it.

    Raises:
        Failed: no schedule is called so, or several are; then the ids of those.
    """
    if ref.startswith(SCHEDULE_ID):
        return ref
    found = talk.api.get("/schedules", {"name": ref, "limit": MOST_NAMESAKES})["items"]
    if not found:
        raise Failed({"detail": f'There is no schedule "{ref}".', "code": "not_found"})
    if len(found) > 1:
        ids = [schedule["id"] for schedule in found]
        raise Failed(
            {
                "detail": f'Several schedules are called "{ref}": {", ".join(ids)}. Say which by its id.',
                "code": "ambiguous_name",
                "schedules": ids,
            }
        )
    return str(found[0]["id"])


def schedules_left(talk: Talk, target: str) -> str | None:
    """What to say of the schedules that a target leaves behind when it is deleted, if it does."""
    found = readable(talk, "/schedules", {"target": target, "limit": MOST_NAMESAKES})
    if found is None or not found["items"]:
        return None
    names = ", ".join(schedule["name"] for schedule in found["items"]) + (
        " and more" if found["next_cursor"] else ""
    )
    return f"Now without a target, and disabled: {names}. `gnomon schedules patch` gives one another, `resume` starts it."
