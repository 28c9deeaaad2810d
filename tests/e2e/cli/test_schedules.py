"""Schedules from the command line: one slot with --at, times by the schedule's own clock, and what is told of them."""

from typing import Any

import pytest

from support.product import gnomon
from support.shell import Shell

pytestmark = pytest.mark.process
BERLIN = ("--zone", "Europe/Berlin")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A database with an agent; nobody fires or works."""
    folder = tmp_path_factory.mktemp("database")
    gnomon("migrate", cwd=folder)
    shell = Shell(folder)
    shell.data("agents", "create", "--slug", "one", "--command", "true")
    return shell


def made(shell: Shell, name: str, *words: str) -> Any:
    return shell.data("schedules", "create", "--name", name, "--agent", "one", "--query", "x", *words)


def test_one_slot_needs_no_json(shell: Shell) -> None:
    """CAD-1, CAD-3."""
    once = {"unit": "once", "every": 1, "at": "2097-01-07T09:00:00", "zone": "Europe/Berlin"}
    assert made(shell, "Once", "--at", "2097-01-07T09:00", *BERLIN)["cadence"] == once
    moved = shell.data("schedules", "patch", "Once", "--at", "2098-01-07 09:00")
    assert (moved["cadence"]["zone"], moved["next_fire_at"]) == ("UTC", "2098-01-07T09:00:00Z")


def test_the_first_slot_is_told_by_the_schedules_own_clock_too(shell: Shell) -> None:
    words = ("schedules", "create", "--name", "Told", "--agent", "one", "--query", "x")
    told = shell.text(*words, "--at", "2097-01-07T09:00", *BERLIN)
    assert "2097-01-07 08:00:00Z (2097-01-07 09:00:00 in Europe/Berlin)." in " ".join(told.split())
    told = shell.text(*words, "--at", "2027-03-28T02:30", *BERLIN)
    assert "02:30:00 does not exist on 2027-03-28" in told


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        (("--at", "2097-01-07T09:00", "--cadence", "0 9 * * *"), "--at is one slot and --cadence a rule", 2),
        (("--at", "2097-01-07T09:00+01:00", *BERLIN), "has an offset already", 2),
        (("--at", "09:00"), "is no date with a time", 2),
        (BERLIN, "--zone goes with --cadence or --at", 2),
        (("--at", "2020-01-07T09:00"), "cadence.at: lies in the past", 1),
        (("--at", "2097-01-07T09:00", "--zone", "Berlin"), "did you mean Europe/Berlin?", 1),
    ],
)
def test_what_contradicts_itself_is_refused_in_a_sentence(
    shell: Shell, words: tuple[str, ...], says: str, code: int
) -> None:
    """SCH-14."""
    found = shell.run("schedules", "create", "--name", "No", "--agent", "one", "--query", "x", *words)
    assert (found.returncode, found.stdout) == (code, "")
    assert says in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_explain_reads_a_time_without_an_offset_by_the_schedules_own_clock(shell: Shell) -> None:
    """DSP-9."""
    made(shell, "Daily", "--cadence", "30 2 * * *", *BERLIN)
    found = shell.data("explain", "Daily", "2097-01-07T02:30")
    assert (found["at"], found["verdict"]) == ("2097-01-07T01:30:00Z", "future")
    assert found["read_as"] == {"local_time": "2097-01-07T02:30:00", "zone": "Europe/Berlin", "note": None}
    told = shell.text("explain", "Daily", "2097-01-07 02:30").splitlines()
    assert told[0] == "2097-01-07 02:30:00 in Europe/Berlin is 2097-01-07 01:30:00Z."
    assert "local_time: 2097-01-07 02:30:00" in told, "every instant is told in one form"
    assert "read_as" not in shell.data("explain", "Daily", "2097-01-07T01:30:00Z")


@pytest.mark.parametrize(
    ("local", "at", "says"),
    [
        ("2027-03-28 02:30", "2027-03-28T01:00:00Z", "does not exist on 2027-03-28"),
        ("2027-10-31 02:30", "2027-10-31T00:30:00Z", "the later one is 2027-10-31 01:30:00Z"),
    ],
)
def test_explain_tells_what_a_clock_change_makes_of_a_time(
    shell: Shell, local: str, at: str, says: str
) -> None:
    """CAD-4: the slot of that time is meant, and it is said so."""
    name = f"Change {at}"
    made(shell, name, "--cadence", "30 2 * * *", *BERLIN)
    found = shell.data("explain", name, local)
    assert (found["at"], found["verdict"]) == (at, "future")
    assert says in found["read_as"]["note"]
    assert says in " ".join(shell.text("explain", name, local).split())


def test_explain_says_what_it_takes(shell: Shell) -> None:
    made(shell, "Asked", "--at", "2097-01-07T09:00")
    assert "or by the schedule's own clock, as 2026" in shell.run("explain", "Asked", "soon").stderr


def test_a_pause_ends_at_a_time_of_the_schedules_own_clock(shell: Shell) -> None:
    made(shell, "Paused", "--cadence", "30 2 * * *", *BERLIN)
    told = shell.text("schedules", "pause", "Paused", "--until", "2097-01-07T09:00")
    assert "2097-01-07 09:00:00 in Europe/Berlin is 2097-01-07 08:00:00Z." in told
    assert shell.data("schedules", "get", "Paused")["status_detail"]["until"] == "2097-01-07T08:00:00Z"
    assert "It has no next slot: it is paused." in shell.text(
        "schedules", "patch", "Paused", "--timeout", "9"
    )


def test_a_schedule_and_a_run_are_shown_alike(shell: Shell) -> None:
    """UI-4: how it stands first, names beside ids, slots by the schedule's own clock too; what has no value is left out."""
    ref = made(shell, "Alike", "--cadence", "30 2 * * *", *BERLIN)["id"]
    run = shell.data("schedules", "run", "Alike")["id"]
    schedule = shell.text("schedules", "get", "Alike").splitlines()
    assert [line.partition(":")[0] for line in schedule[:3]] == ["id", "name", "status"]
    [target] = [line for line in schedule if line.startswith("target:")]
    [slot] = [line for line in schedule if line.startswith("next_fire_at:")]
    assert slot.endswith(" 02:30:00 in Europe/Berlin)")
    told = shell.text("runs", "get", run).splitlines()
    assert [line.partition(":")[0] for line in told[:2]] == ["id", "status"]
    words = [line.split(maxsplit=1)[1] for line in told if line.startswith(("target:", "schedule:"))]
    assert words == [target.split(maxsplit=1)[1], f"Alike ({ref})"]
    assert words[0].startswith("agent one (agt_")
    assert not any(line.endswith(": -") for line in (*schedule, *told))
    assert shell.data("runs", "get", run)["schedule_id"] == ref, "programs get what the API gives"


def test_what_can_be_got_can_be_shown(shell: Shell) -> None:
    ref = made(shell, "Shown", "--at", "2097-01-07T09:00")["id"]
    for noun, called in (("schedules", ref), ("agents", "one")):
        assert shell.data(noun, "show", called) == shell.data(noun, "get", called)


def test_a_run_of_a_schedule_that_is_gone_names_its_id(shell: Shell) -> None:
    ref = made(shell, "Gone", "--at", "2097-01-07T09:00")["id"]
    run = shell.data("schedules", "run", ref)["id"]
    shell.data("runs", "cancel", run)
    shell.text("schedules", "delete", ref)
    assert ref in shell.text("runs", "get", run)


def test_what_is_so_already_is_said_to_be(shell: Shell) -> None:
    """SCH-2."""
    ref = made(shell, "Twice", "--cadence", "30 2 * * *", *BERLIN)["id"]
    assert "was active already." in shell.text("schedules", "resume", "Twice")
    assert shell.text("schedules", "pause", "Twice").startswith(f"Paused schedule Twice ({ref}).")
    again = " ".join(shell.text("schedules", "pause", "Twice").split())
    assert f"Schedule Twice ({ref}) was paused already, by operator since 20" in again
    assert len(shell.data("audit", "--subject", ref, "--action", "PAUSE")["items"]) == 1
    assert "Paused schedule" in shell.text("schedules", "pause", "Twice", "--reason", "holiday")
    assert "Resumed schedule" in shell.text("schedules", "resume", "Twice")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("schedules", "create", "--name", "x", "--agent", "one"),
            "cadence: is required (--cadence or --at)",
        ),
        (
            ("schedules", "create", "--name", "x", "--at", "2097-01-07T09:00"),
            "target: is required (--agent or --team)",
        ),
        (
            ("agents", "create", "--slug", "x"),
            "runtime: is required (--http, --command, --python, --llm or --role)",
        ),
        (("tasks", "create", "--role", "x"), "title: is required (--title)"),
        (("jobs", "create", "--slug", "x"), "dedup_key: is required: the name under which"),
    ],
)
def test_what_is_missing_is_told_with_its_flag(shell: Shell, words: tuple[str, ...], says: str) -> None:
    """OPS-8: the way out, for whoever types."""
    assert says in shell.refused(*words)
    problem = shell.run(*words, "--json").stderr
    assert "is required (--" not in problem, "programs get what the API says"


def test_an_instant_can_be_typed_as_it_is_printed(shell: Shell) -> None:
    """Date and time are two words where they are printed, and need no quotes."""
    made(shell, "Printed", "--cadence", "30 2 * * *", *BERLIN)
    found = shell.data("explain", "Printed", "2097-01-07", "01:30:00Z")
    assert (found["at"], found["verdict"]) == ("2097-01-07T01:30:00Z", "future")
    assert shell.data("explain", "Printed", "2097-01-07", "02:30:00")["at"] == found["at"]


def test_where_no_slot_is_to_come_it_is_said_why(shell: Shell) -> None:
    made(shell, "Stands", "--cadence", "30 2 * * *", *BERLIN)
    shell.text("schedules", "pause", "Stands")
    assert shell.run("schedules", "next", "Stands").stderr == "No slot is to come: it is paused.\n"


def test_what_goes_on_a_list_can_be_copied(shell: Shell) -> None:
    """With the name in quotes where it has spaces, and with the filters that there were."""
    ref = made(shell, "Two words", "--cadence", "30 2 * * *", *BERLIN)["id"]
    shell.data("schedules", "patch", "Two words", "--timeout", "9")
    told = shell.run("schedules", "revisions", "Two words", "--limit", "1").stderr
    assert "There are more: gnomon schedules revisions 'Two words' --cursor " in told
    told = shell.run("audit", "--subject", ref, "--limit", "1").stderr
    assert f"There are more: gnomon audit --subject {ref} --after " in told
