"""Every command that asks the API, read as text and as JSON: over the database itself, and over a server."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.product import gnomon, running, up
from support.shell import Done, Shell

pytestmark = pytest.mark.process

GREET = "gnomon.testing.samples:greet"


@pytest.fixture(scope="module", params=["database", "server"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """The same commands both ways; a server or a worker runs beside, so that runs end."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "database":
        gnomon("migrate", cwd=folder)
        with running("worker", "--json", cwd=folder) as worker:
            worker.wait_for_start()
            yield Shell(folder)
            assert worker.stop() == 0
        return
    with up(folder) as server:
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        yield Shell(elsewhere, GNOMON_URL=server.started["address"], GNOMON_KEY=server.started["key"])
        assert list(elsewhere.iterdir()) == [], "a client of a server makes no database"
        assert server.stop() == 0


def agent(shell: Shell, slug: str) -> Any:
    return shell.data("agents", "create", "--slug", slug, "--python", GREET)


def schedule(shell: Shell, name: str, target: str) -> Any:
    words = ("--name", name, "--agent", target, "--cadence", "0 9 * * 1-5", "--zone", "Europe/Berlin")
    return shell.data("schedules", "create", *words, "--query", "go {{date}}")


def test_agents(shell: Shell) -> None:
    made = agent(shell, "one")
    assert made["runtime"] == {"kind": "python", "path": GREET}
    assert "one" in shell.text("agents", "list")
    assert "one" in {each["slug"] for each in shell.data("agents", "list")["items"]}
    assert shell.data("agents", "get", "one")["id"] == made["id"]
    assert f"path: {GREET}" in shell.text("agents", "get", made["id"])
    changed = shell.data("agents", "patch", "one", "--set", "daily_cap=7", "--set", "name=First one")
    assert (changed["daily_cap"], changed["name"]) == (7, "First one")
    assert 'There is an agent "one" already.' in shell.refused(
        "agents", "create", "--slug", "one", "--python", GREET
    )
    assert "Deleted agent one." in shell.text("agents", "delete", "one")
    assert "There is no agent" in shell.refused("agents", "get", "one")


@pytest.mark.parametrize(
    ("words", "runtime"),
    [
        (("--command", "echo 'a b'"), {"kind": "command", "argv": ["echo", "a b"]}),
        (
            ("--llm", "test", "--instructions", "Be brief."),
            {"kind": "llm", "model": "test", "instructions": "Be brief."},
        ),
        (("--role", "writer"), {"kind": "role", "role": "writer"}),
        (("--http", "https://example.com/x"), {"kind": "http", "url": "https://example.com/x"}),
    ],
)
def test_each_kind_of_agent_has_its_flag(
    shell: Shell, words: tuple[str, ...], runtime: dict[str, Any]
) -> None:
    """TGT-1."""
    made = shell.data("agents", "create", "--slug", f"kind-{runtime['kind']}", *words)
    assert made["runtime"] == runtime


def test_an_agent_from_a_file_or_from_standard_input(shell: Shell) -> None:
    definition = json.dumps({"slug": "piped", "name": "Piped", "runtime": {"kind": "python", "path": GREET}})
    found = shell.run("agents", "create", "-f", "-", "--timeout", "60", "--json", stdin=definition)
    assert json.loads(found.stdout)["timeout_seconds"] == 60


def test_faults_are_told_field_by_field_as_text_and_as_json(shell: Shell) -> None:
    """OPS-8."""
    words = ("agents", "create", "--slug", "Not A Slug", "--python", "nonsense", "--timeout", "0")
    text = shell.refused(*words)
    for field in ("slug", "runtime.path", "timeout_seconds"):
        assert f"  {field}: " in text
    found = shell.run(*words, "--json")
    assert (found.returncode, found.stdout) == (1, "")
    problem = json.loads(found.stderr)
    assert problem["status"] == 422
    assert {error["field"] for error in problem["errors"]} == {"slug", "runtime.path", "timeout_seconds"}


def test_teams(shell: Shell) -> None:
    """TGT-3."""
    agent(shell, "member")
    nodes = '[{"id": "a", "agent": "member", "query": "{{query}}"}]'
    made = shell.data("teams", "create", "--slug", "pair", "--set", f"nodes={nodes}", "--set", "output=a")
    assert made["output"] == "a"
    assert "pair" in shell.text("teams", "list")
    assert shell.text("teams", "check", "pair") == "Team pair can be invoked.\n"
    shell.text("agents", "delete", "member")
    found = shell.run("teams", "check", "pair")
    assert found.returncode == 1
    assert "nodes.0.agent: there is no agent" in found.stdout
    assert "Deleted team pair." in shell.text("teams", "delete", "pair")


def test_schedules(shell: Shell) -> None:
    agent(shell, "digest")
    made = schedule(shell, "Digest", "digest")
    ref = made["id"]
    listed = shell.text("schedules", "list")
    assert all(word in listed for word in (ref, "Digest", "digest", "NEXT SLOT")), listed
    assert shell.data("schedules", "get", ref)["cadence"]["zone"] == "Europe/Berlin"
    assert shell.text("schedules", "next", ref, "--count", "2").count("09:00:00") == 2
    assert len(shell.data("schedules", "next", ref)["items"]) == 5
    paused = shell.data("schedules", "pause", ref, "--reason", "holiday", "--until", "2099-01-01T00:00Z")
    assert (paused["status"], paused["status_detail"]["reason"]) == ("paused", "holiday")
    assert ref in shell.text("schedules", "list", "--status", "paused")
    assert "Its next slot: " in shell.text("schedules", "resume", ref)
    changed = shell.data(
        "schedules", "patch", ref, "--set", "retry.max_attempts=3", "--set", "name=Daily digest"
    )
    assert (changed["revision"], changed["retry"]["max_attempts"]) == (2, 3)
    assert [each["revision"] for each in shell.data("schedules", "revisions", ref)["items"]] == [2, 1]
    assert "REVISION" in shell.text("schedules", "revisions", ref)
    assert shell.data("schedules", "occurrences", ref)["items"] == []
    assert f"Deleted schedule {ref}." in shell.text("schedules", "delete", ref)


def test_running_by_hand_waits_for_the_end(shell: Shell) -> None:
    """SCH-11."""
    agent(shell, "hand")
    ref = schedule(shell, "By hand", "hand")["id"]
    found = shell.run("schedules", "run", ref, "--wait")
    assert found.returncode == 0, found.stderr
    assert "Hello from run_" in found.stdout
    assert found.stderr.splitlines()[-1] == "succeeded", "what happens on the way is told beside the answer"
    (run,) = shell.data("schedules", "runs", ref)["items"]
    assert run["status"] == "succeeded"
    assert run["id"] in shell.text("schedules", "runs", ref)
    listed = shell.text("runs", "list", "--status", "succeeded")
    assert all(word in listed for word in (run["id"], "hand", "SECONDS")), listed
    wide = shell.run("runs", "list", COLUMNS="160").stdout
    assert "By hand" in wide
    shown = shell.data("runs", "get", run["id"])
    assert "Hello from" in shown["output"]
    assert "attempts:" in shell.text("runs", "get", run["id"])
    events = [json.loads(line) for line in shell.run("runs", "tail", run["id"], "--json").stdout.splitlines()]
    assert events[-1]["event"] == "end"
    assert events[-1]["data"]["status"] == "succeeded"
    assert "is over: it succeeded." in shell.refused("runs", "cancel", run["id"])


def test_a_cancel_says_whether_the_run_is_over(shell: Shell) -> None:
    """RUN-10: asked first, stopped then; asking again asks nobody."""
    shell.data("agents", "create", "--slug", "unhurried", "--command", "sleep 600")
    run = shell.data("schedules", "run", schedule(shell, "Unhurried", "unhurried")["id"])["id"]
    assert f"run {run}" in shell.text("runs", "cancel", run)
    assert shell.run("runs", "tail", run).returncode == 1, "which waits for its end"
    assert shell.text("runs", "cancel", run).strip() == f"Cancelled run {run}."


def test_a_schedule_is_called_by_its_name_too(shell: Shell) -> None:
    agent(shell, "called")
    ref = schedule(shell, "The daily call", "called")["id"]
    assert shell.data("schedules", "get", "The daily call")["id"] == ref
    assert shell.data("explain", "The daily call", "2019-01-01T00:00:00Z")["schedule_id"] == ref
    changed = shell.data(
        "schedules", "patch", "The daily call", "--cadence", "0 7 * * *", "--query", "now {{date}}"
    )
    assert (changed["cadence"]["cron"], changed["query"]) == ("0 7 * * *", "now {{date}}")
    assert 'There is no schedule "Nobody".' in shell.refused("schedules", "run", "Nobody")
    second = schedule(shell, "The daily call", "called")["id"]
    told = shell.refused("schedules", "pause", "The daily call")
    assert ref in told
    assert second in told
    assert "Deleted schedule" in shell.text("schedules", "delete", second)
    assert "Deleted schedule The daily call." in shell.text("schedules", "delete", "The daily call")


def test_a_list_with_names_stands_where_a_target_is_gone(shell: Shell) -> None:
    made = agent(shell, "leaving")
    schedule(shell, "Left behind", "leaving")
    told = shell.run("agents", "delete", "leaving").stderr
    assert told.startswith("Now without a target, and disabled: Left behind. ")
    wide = shell.run("schedules", "list", "--status", "disabled", COLUMNS="160")
    assert made["id"] in wide.stdout
    assert "disabled" in wide.stdout


def test_an_empty_list_that_was_narrowed_does_not_say_that_there_is_nothing(shell: Shell) -> None:
    for noun in ("schedules", "runs"):
        found = shell.run(noun, "list", "--target", "nobody-at-all")
        assert (found.stdout, found.stderr) == ("", "There is none of that kind.\n")


def test_a_narrowed_list_goes_on_with_its_filters(shell: Shell) -> None:
    agent(shell, "long")
    for number in range(2):
        schedule(shell, f"Long {number}", "long")
    found = shell.run("schedules", "list", "--target", "long", "--limit", "1")
    assert "gnomon schedules list --target long --cursor " in found.stderr


def test_a_repeat_under_one_key_is_the_same_run(shell: Shell) -> None:
    """SCH-11, IDM-2."""
    agent(shell, "again")
    ref = schedule(shell, "Again", "again")["id"]
    first, second = (shell.data("schedules", "run", ref, "--idempotency-key", "once") for _ in range(2))
    assert first["id"] == second["id"]


def test_a_run_that_fails_ends_with_1(shell: Shell) -> None:
    shell.data(
        "agents", "create", "--slug", "failing", "--command", f"{sys.executable} -c 'raise SystemExit(3)'"
    )
    ref = schedule(shell, "Failing", "failing")["id"]
    found = shell.run("schedules", "run", ref, "--wait")
    assert found.returncode == 1
    assert "The run failed: " in found.stderr


def test_sessions_are_read_and_erased(shell: Shell) -> None:
    """RUN-12."""
    agent(shell, "talker")
    ref = schedule(shell, "Talk", "talker")["id"]
    assert shell.run("schedules", "run", ref, "--wait").returncode == 0
    session = shell.data("schedules", "runs", ref)["items"][0]["session_id"]
    assert "id:" in shell.text("sessions", "get", session)
    assert [each["role"] for each in shell.data("sessions", "messages", session)["items"]] == [
        "user",
        "assistant",
    ]
    assert "assistant:" in shell.run("sessions", "messages", session).stdout
    assert f"Erased session {session}." in shell.text("sessions", "erase", session)
    assert "There is no" in shell.refused("sessions", "get", session)


def test_explain_says_what_became_of_an_instant(shell: Shell) -> None:
    """DSP-9."""
    agent(shell, "why")
    ref = schedule(shell, "Why", "why")["id"]
    assert shell.data("explain", ref, "2019-01-01T00:00:00Z")["verdict"] == "before_creation"
    assert shell.data("explain", ref, "2099-01-01T09:00:00+01:00")["verdict"] == "future"
    found = shell.run("explain", ref, "2099-01-01 08:30:00Z")
    assert "The cadence has no slot there" in found.stdout
    assert "verdict:" in found.stdout


def test_calendars(shell: Shell) -> None:
    """CAD-9."""
    made = shell.data(
        "calendars", "create", "--slug", "feasts", "--date", "2026-12-25", "--date", "2026-12-26"
    )
    assert made["dates"] == ["2026-12-25", "2026-12-26"]
    assert "feasts" in shell.text("calendars", "list")
    assert "2026-12-25" in shell.text("calendars", "get", "feasts")
    assert shell.data("calendars", "patch", "feasts", "--set", 'dates=["2026-12-24"]')["dates"] == [
        "2026-12-24"
    ]
    assert "Deleted calendar feasts." in shell.text("calendars", "delete", "feasts")


def test_keys_are_shown_once_and_end_when_revoked(shell: Shell) -> None:
    """SEC-3."""
    made = shell.data("keys", "create", "--scope", "agents:read", "--name", "reader")
    assert set(made) >= {"id", "key"}
    text = shell.run("keys", "create", "--scope", "runs:read")
    assert text.stdout.startswith("gnk_")
    assert len(text.stdout.splitlines()) == 1, "`$(gnomon keys create …)` is the key and nothing else"
    assert "reader" in shell.text("keys", "list")
    assert "key" not in shell.data("keys", "get", made["id"])
    assert f"Revoked key {made['id']}." in shell.text("keys", "revoke", made["id"])
    assert made["id"] not in shell.text("keys", "list")


def test_audit_tells_who_did_what(shell: Shell) -> None:
    """SEC-7."""
    made = agent(shell, "watched")
    (entry,) = shell.data("audit", "--subject", made["id"])["items"]
    assert entry["action"] == "CREATE"
    text = shell.text("audit", "--action", "CREATE")
    assert "SEQ" in text
    assert "There are more: gnomon audit --after 1" in shell.run("audit", "--limit", "1").stderr


def test_what_is_exported_can_be_applied_and_changes_nothing(shell: Shell) -> None:
    """SCH-13."""
    agent(shell, "as-code")
    schedule(shell, "As code", "as-code")
    text = shell.run("export").stdout
    plan = shell.run("apply", "-f", "-", "--yes", stdin=text)
    assert plan.returncode == 0, plan.stderr
    assert plan.stdout.endswith("Nothing to do: everything is as the file says.\n")


def apply(shell: Shell, document: str, *words: str) -> Done:
    return shell.run("apply", "-f", "-", *words, stdin=document)


def test_apply_shows_a_plan_first_and_changes_nothing_without_a_yes(shell: Shell) -> None:
    """SCH-13."""
    document = f"agents:\n- slug: planned\n  name: Planned\n  runtime: {{kind: python, path: '{GREET}'}}\n"
    for words, code in ((("--dry-run",), 0), ((), 2)):
        found = apply(shell, document, *words)
        assert found.returncode == code
        assert "+ agent planned" in found.stdout
    assert "There is no agent" in shell.refused("agents", "get", "planned")
    assert "Created 1, changed 0." in apply(shell, document, "--yes").stdout
    changed = apply(shell, document.replace("Planned", "Renamed"), "--yes")
    assert "~ agent planned\n    name: Planned -> Renamed\n" in changed.stdout
    data = json.loads(apply(shell, document, "--yes", "--json").stdout)
    assert (data["applied"], data["items"][0]["step"]) == (True, "update")


def test_apply_refuses_a_file_whole_with_every_fault(shell: Shell) -> None:
    """SCH-13, OPS-8."""
    document = "agents:\n- slug: half\n  name: Half\nschedules:\n- name: x\n"
    found = apply(shell, document, "--yes")
    assert (found.returncode, found.stdout) == (1, "")
    for field in ("agents.0.runtime", "schedules.0.target", "schedules.0.cadence"):
        assert f"  {field}: " in found.stderr
    assert "There is no agent" in shell.refused("agents", "get", "half")


def test_a_list_goes_on_where_it_ended(shell: Shell) -> None:
    for number in range(3):
        agent(shell, f"page-{number}")
    first = shell.data("agents", "list", "--limit", "1")
    second = shell.data("agents", "list", "--limit", "1", "--cursor", first["next_cursor"])
    assert first["items"] != second["items"]
    assert "gnomon agents list --cursor " in shell.run("agents", "list", "--limit", "1").stderr


@pytest.mark.parametrize("width", ["40", "60"])
def test_narrow_terminals_get_what_fits(shell: Shell, width: str) -> None:
    agent(shell, f"narrow-{width}")
    found = shell.run("agents", "list", COLUMNS=width)
    assert max(len(line) for line in found.stdout.splitlines()) <= int(width)
    assert f"narrow-{width}" in found.stdout


def test_a_wrong_key_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """SEC-4."""
    with up(tmp_path) as server:
        asked: Callable[..., Any] = lambda **env: gnomon(  # noqa: E731 - one question, two keys
            "agents", "list", cwd=tmp_path, GNOMON_URL=server.started["address"] + "/v1/", **env
        )
        for env in ({}, {"GNOMON_KEY": "nonsense"}):
            found = asked(**env)
            assert found.returncode == 1
            assert "Name a key with GNOMON_API_KEY or --key." in found.stderr
        for name in ("GNOMON_API_KEY", "GNOMON_KEY"):
            assert asked(**{name: server.started["key"]}).returncode == 0
        both = {"GNOMON_API_KEY": server.started["key"], "GNOMON_KEY": "nonsense"}
        assert asked(**both).returncode == 0  # as in the client: the long name stands over the short one
        server.stop()
