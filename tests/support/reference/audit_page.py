"""`docs/reference/audit.md`: every action of the audit log, with what it says and what its detail holds."""

from collections.abc import Iterator

from gnomon.domain.audit import Action
from support.reference.markdown import table

HEAD = """
# The audit log

An entry has `seq` (it grows), `at`, `actor`, `action`, `subject` (`{"kind", "id"}`), `fence` where there is one, and
`detail`. It is written in the transaction of what it tells, so that neither is there without the other. The database
itself refuses an update, and a deletion above the retention floor. On SQLite `seq` leaves out no
number, on PostgreSQL it does.

The actor is a key's id for what came over HTTP, `operator` for the command line that opens the database itself, a
process's id for claims and releases of runs, and `dispatcher` or `watchdog` for what those two decide. Instants in a
detail are microseconds since 1970 where one of the two wrote it, RFC 3339 where a person asked.

`GET /v1/audit?after=SEQ&action=&subject=` and `gnomon audit` read it forward: whoever gives back the last `seq` that they
had gets each entry once, in order, also beside writers. On PostgreSQL the answer ends before a transaction that is still
writing entries, and goes on behind it later. Whoever reads the database by hand reads the
view `audit_entries`: what happened to many subjects at once is one row of the table `audit`. On PostgreSQL a query of theirs may see a greater
number before a smaller one.

Each `CLAIM` is ended by one `RELEASE` or one `EXPIRE` with the same subject and fence.

## Actions
"""

ACTIONS = {
    Action.CLAIM: (
        "run, task",
        "a process has taken a run, an instance a task",
        "of a run `attempt`, or the slot, where it was born claimed; of a task `instance`, `role`",
    ),
    Action.RELEASE: (
        "run, task",
        "the claim was ended by its holder; of a task by its report, or by a person's force",
        "`status`; `queued` is another attempt to come; of a task `instance`, `role`, `by_force`, `reason`",
    ),
    Action.EXPIRE: (
        "run, task",
        "the claim was ended by the sweep",
        "`owner`, or of a task `instance`; `why` (`lease`, `heartbeat`), `outcome`",
    ),
    Action.RENEW: ("task", "its holder renewed its claim", "`instance`"),
    Action.FENCED: (
        "run, task, trigger",
        "a write came with an old fence, or from another than the holder, and changed nothing",
        "`refused` says which write",
    ),
    Action.FIRE: ("schedule", "a slot fired, its run went into the queue", "`nominal_fire_at`, `run_id`"),
    Action.SKIP: (
        "schedule, job",
        "a slot was skipped or missed",
        "`nominal_fire_at`, `reason`, `coalesced`; of a job `trigger_id`",
    ),
    Action.CREATE: ("any record", "it was made", ""),
    Action.UPDATE: ("any record", "it was edited", "of a schedule `revision`, `fields`, `next_fire_at`"),
    Action.DELETE: ("any record", "it was deleted", ""),
    Action.PAUSE: ("schedule", "a person paused it", "`reason`, `until`"),
    Action.RESUME: (
        "schedule",
        "it goes on, by a person or because its pause is over",
        "`from`, `next_fire_at`",
    ),
    Action.COMPLETE: ("schedule", "it ran out of slots", "`reason`"),
    Action.FAIL_OUT: ("schedule", "failures in a row stopped it", "`run_id`, `failures`, `limit`, `error`"),
    Action.WARN: ("schedule", "half of its failure limit is reached", "as `FAIL_OUT`"),
    Action.DISABLE: ("schedule", "its target was deleted", "`reason`"),
    Action.SET_ASIDE: ("schedule, job", "its next slot can't be computed", "`error`, `next_fire_at`"),
    Action.REALIGN: ("schedule, job", "its next slot was computed anew", "`from`, `to`, `reason`"),
    Action.RUN_NOW: ("schedule", "a person ran it", "`run_id`"),
    Action.CANCEL: ("run", "it was asked to stop", "`reason`"),
    Action.ERASE: ("session", "it was erased", ""),
    Action.REVOKE: ("key", "it was revoked", ""),
    Action.CONNECT: (
        "instance",
        "it connected; the fence is the epoch of its connection",
        "`role`, `instance`, `server`",
    ),
    Action.DISCONNECT: ("instance", "that connection is over", "`server`; `goodbye`, or `why` (`server`)"),
    Action.DRAIN: ("instance", "it gets nothing new", "`asked`: by a person, or by itself"),
    Action.OFFLINE: ("instance", "it was silent for the heartbeat's timeout", ""),
    Action.TRIGGER: (
        "job",
        "a slot got its trigger",
        "`nominal_fire_at`, `trigger_id`, `instance_id` (null: it waits for one), `coalesced`",
    ),
    Action.GIVE: ("trigger", "it waited, and has an instance now", "`job_id`, `instance_id`"),
    Action.PUSH: (
        "trigger",
        "it is sent to its instance; the fence is the epoch of the connection",
        "`job_id`, `instance_id`, `redelivered`",
    ),
    Action.TAKE_BACK: (
        "trigger",
        "another instance is to get it",
        "`job_id`, `instance_id`, `why` (`instance_gone`, `not_acknowledged`, `not_sent`, `not_in_flight`)",
    ),
    Action.ACKNOWLEDGE: ("trigger", "its instance has it", "`by` (`hello`, where a reconnect said so)"),
    Action.FINISH: (
        "trigger",
        "it ended, as its instance said, or with it",
        "`status`; `reason`, `instance_id` where it was lost",
    ),
    Action.CLOCK_JUMP: (
        "process",
        "it saw the wall clock jump, or stood still: nothing that looks expired is taken for a lease's length",
        "`seconds`, `stalled`",
    ),
}
NOT_WRITTEN: dict[Action, str] = {}


def audit_page() -> str:
    """The whole page."""
    return "\n".join([HEAD.strip(), "", *_rows()]) + "\n"


def _rows() -> Iterator[str]:
    rows = [(f"`{action}`", subject, says, detail) for action, (subject, says, detail) in ACTIONS.items()]
    rows += [(f"`{action}`", "", says, "") for action, says in NOT_WRITTEN.items()]
    yield from table(("action", "about", "says", "detail"), rows)
