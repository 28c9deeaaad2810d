"""Every error code that the program can give, found in its source, with its meaning, which is written here.

A code that is in the source and not here turns the test of the pages red, and one that is here and nowhere else too.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from gnomon.domain.invocation import Failing
from gnomon.domain.occurrence import Reason
from support.reference.markdown import table

SOURCE = Path(__file__).parents[3] / "src" / "gnomon"

# Built from a status or a reason where they are raised.
COMPUTED = {
    "schedule_completed",
    "schedule_exhausted",
    "target_invalid",
    "busy",
    "disk_full",
    "database_failed",
    "credentials",
    "schema_gone",
    "timed_out",
    "too_many_connections",
}
# Of the tree alone: whatever is raised has a code of its own.
_ABSTRACT = {"error"}
# Told by the web framework's own refusals (edges/http/problems.py), not by an error of ours.
_FRAMEWORK = {"bad_request", "method_not_allowed", "internal"}

MEANINGS = {
    "already_ended": "the trigger has ended otherwise before; that stands",
    "ambiguous_name": "several schedules of one target have the name that a document uses; rename one",
    "bad_cursor": "the cursor is none that a list of this kind gave",
    "bad_header": "a header such as If-Match can't be read",
    "bad_origin": "the request comes from a web page that may not speak to this server",
    "bad_request": "the request can't be read",
    "body_too_large": "the body is larger than is read",
    "busy": "another process holds the database's write lock; try again",
    "calendar_in_use": "schedules use the calendar; detail names them",
    "commit_unknown": "the answer of the database to a commit was lost; whether it was written is read back",
    "conflict": "the world moved; read again, then decide",
    "credentials": "the database refuses the user or the password",
    "database_differs": "the database was migrated by another text than this program has",
    "database_failed": "the database can't be read, written or opened",
    "database_incomplete": "a table of ours is missing from the schema",
    "database_migrating": "another process is migrating the database; wait for it",
    "database_newer": "the database was written by a newer Gnomon",
    "dedup_key_reused": "the dedup key has made another task already; task_id names it",
    "dependency_cycle": "the prerequisites would close a cycle; cycle names it",
    "disk_full": "the disk of the database is full; nothing was lost",
    "fence_stale": "the run, task or trigger is over, or was given to somebody else; nothing was changed",
    "forbidden": "this is not allowed",
    "gone": "the database can't be reached; nothing was lost, and a server tries again by itself",
    "hello_first": "the first frame of a connection is hello",
    "hello_twice": "the connection has said hello already",
    "idempotency_key_in_use": "the first request with this Idempotency-Key is still going on; try again",
    "idempotency_key_reused": "this Idempotency-Key came with another body before",
    "internal": "something went wrong here; the log has it under the request id",
    "invalid": "fields are wrong; errors lists every one",
    "instance_offline": "the instance is not there",
    "invalid_frame": "fields of the frame are wrong; errors lists every one",
    "key_ambiguous": "more than one key was sent",
    "key_bound": "the key is bound to a target and does nothing else",
    "key_bound_to_role": "the key serves one role, and this is another; role names it",
    "key_expired": "the key has expired",
    "key_in_query": "a key belongs into the Authorization header, never into an address",
    "key_malformed": "this is no key of Gnomon, or it was copied wrongly",
    "key_missing": "no key was sent",
    "key_revoked": "the key was revoked",
    "key_unknown": "the key opens nothing here",
    "malformed_body": "the body is no JSON, or holds a name twice",
    "malformed_frame": "the frame is no JSON, or holds a name twice",
    "method_not_allowed": "this address does not have this method; Allow lists those that it has",
    "network_file_system": "the database lies on a network file system, where locks can't be trusted",
    "not_a_frame": "the message is JSON, but no object with a type",
    "not_acceptable": "there is no answer in a form that Accept allows",
    "not_found": "nothing is there under this id or slug",
    "not_our_database": "the file is a database of another program, or none; it was not touched",
    "not_pushed": "nothing of the kind was pushed to this instance; nothing was changed",
    "not_text": "frames are text messages, not bytes",
    "port_in_use": "the server can't listen on its port",
    "read_only": "the database or its folder can't be written to",
    "revision_stale": "the record has changed since it was read; read it again, then edit",
    "run_in_flight": "a run of the schedule is unfinished; run_id names it",
    "run_over": "the run is over already",
    "schedule_completed": "the schedule ran out of slots; edit it so that it has some",
    "schedule_disabled": "the schedule's target was deleted",
    "schedule_exhausted": "the schedule can't be resumed: no slot is left; edit it",
    "schema_gone": "the schema or a table of it is gone from the database",
    "scope_exceeds_caller": "nobody hands out scopes that they do not have",
    "scope_missing": "the key's scopes do not cover this; scope names the one that is needed",
    "settings_invalid": "settings are unknown, out of range or at odds; errors lists every one",
    "slug_taken": "another record has this slug",
    "stopping": "the program is stopping",
    "target_gone": "the target was deleted",
    "target_invalid": "the target is switched off, or its definition can't be invoked",
    "task_held": "an instance holds the task; holder names it",
    "task_needed": "other tasks need the task; tasks names them",
    "task_not_held": "nobody holds the task",
    "timed_out": "the database did not answer in time; it is tried again",
    "too_many_connections": "the database takes no more connections",
    "unauthenticated": "no key, or one that opens nothing",
    "unavailable": "try again later; nothing was lost",
    "unknown_type": "there is no frame of this type, or none that an instance says",
    "unsupported_media_type": "the body must be JSON",
    "upgrade_required": "a plain request to the address of a WebSocket",
    "unusable_database": "the database can't be used; detail says why and what to do",
}

# Codes of a run's error and of an attempt's: why it failed.
OF_RUNS = {
    "exit_status": "the command ended with a status other than 0; 75 is tried again",
    "no_instance": "nobody of the role took the run while there was time for it",
    "not_started": "the command, callable or model could not be started at all",
    "http_status": "the target answered with a status that is no success",
    "unreachable": "no connection to the target, or it broke, or the instance is gone with it; tried again",
    "address_refused": "a private address, or a redirect to one",
    "redirected": "too many redirects, or one that is not followed",
    "nonsense": "the target's answer can't be read",
    "output_too_large": "the output is past its limit",
    "model_calls_exceeded": "more model calls than the limit allows",
    "cost_exceeded": "more cost than the limit allows",
    "exception": "the callable raised",
    "model_error": "the model's provider refused or failed",
    "node_failed": "a node of the team failed",
    "target_invalid": "the target's definition can't be invoked",
    "target_gone": "the target was deleted while the run was queued",
    "timeout": "the hard timeout; tried again where the policy has an attempt left",
    "reported": "the target itself reported failure",
    "cancelled": "somebody asked the run to stop",
    "lost": "the process that held the run is gone, or its lease ended",
    "internal": "an error inside Gnomon; the log has it",
    "close_failed": "the run ended, but its record could not be written in full",
}

OF_SLOTS = {
    Reason.ALREADY_RUNNING: "a run of the schedule was unfinished",
    Reason.MISSED: "the slot was later than its grace",
    Reason.OUTSIDE_WINDOW: "the slot lay behind the window's end",
    Reason.TARGET_GONE: "the target was deleted; the schedule is disabled",
    Reason.TARGET_INVALID: "the target is switched off, or a team's graph has faults",
    Reason.PAUSED: "the slot had come due, unclaimed, when the schedule was paused",
}


def found_in_source() -> set[str]:
    """Every code that is written as one in the source: `code="…"` of a call, `code = "…"` of an error's class."""
    found: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                found |= {
                    str(keyword.value.value)
                    for keyword in node.keywords
                    if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
                }
            elif isinstance(node, ast.ClassDef):
                found |= {str(value) for value in _class_codes(node)}
    return found - _ABSTRACT


def _class_codes(node: ast.ClassDef) -> Iterator[object]:
    for line in node.body:
        if not isinstance(line, ast.Assign) or not isinstance(line.value, ast.Constant):
            continue
        if any(isinstance(name, ast.Name) and name.id == "code" for name in line.targets):
            yield line.value.value


def expected() -> set[str]:
    """What the page has to list."""
    return found_in_source() | COMPUTED | _FRAMEWORK


def runs_expected() -> set[str]:
    """What the page has to list of runs."""
    return {failing.value for failing in Failing} | {
        "cancelled",
        "lost",
        "internal",
        "close_failed",
        "target_gone",
    }


def codes_table() -> Iterator[str]:
    """The three tables."""
    yield "The `code` is stable. What an error knows besides stands beside it in the document, under its own name."
    yield ""
    yield from table(("code", "meaning"), ((f"`{code}`", text) for code, text in sorted(MEANINGS.items())))
    yield ""
    yield "### Codes of a run"
    yield ""
    yield "In `error.code` of a run and of its attempts."
    yield ""
    yield from table(("code", "meaning"), ((f"`{code}`", text) for code, text in sorted(OF_RUNS.items())))
    yield ""
    yield "### Reasons of a slot"
    yield ""
    yield "In `reason` of an occurrence that did not fire. The other reasons of the list belong to parts to come."
    yield ""
    yield from table(("reason", "meaning"), ((f"`{reason}`", text) for reason, text in OF_SLOTS.items()))
