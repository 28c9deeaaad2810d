"""A crontab read as cron reads it; what can't be expressed is refused with its line (CONTRACT, CLI)."""

from typing import Any

import pytest

from gnomon.domain import dedup
from gnomon.domain.agent_form import read as read_agent
from gnomon.domain.crontab import Crontab, Entry, document, read
from gnomon.domain.definition import parse
from gnomon.domain.form import Form

EVERYTHING = """\
# what a machine does

SHELL=/bin/bash
MAILTO=ops@example.org
PATH = "/usr/local/bin:/bin"
  'EMPTY'=
0 3 * * * /opt/backup.sh --full 2>&1
@hourly\techo  done
CRON_TZ=Europe/Berlin
HOME=/srv
30 9 * * mon-fri  A=1 B=2 /usr/bin/python3 -m digest\r
"""


def the(text: str, **given: Any) -> Crontab:
    return read(text, zone="UTC", home="/home/ana", **given)


def one(text: str) -> Entry:
    found = the(text)
    assert found.refused == ()
    (entry,) = found.entries
    return entry


def test_settings_hold_for_the_lines_below_them() -> None:
    """crontab(5): shell, directory, zone and variables; the rest of a line is the command, as it is."""
    found = the(EVERYTHING)
    assert found.refused == ()
    assert found.left_out == (
        (4, "MAILTO is left out: nothing is mailed: what a command prints is kept with its run"),
    )
    env = {"PATH": "/usr/local/bin:/bin", "EMPTY": ""}
    assert found.entries == (
        Entry(7, "0 3 * * *", "UTC", "/opt/backup.sh --full 2>&1", "", "/bin/bash", "/home/ana", env),
        Entry(8, "@hourly", "UTC", "echo  done", "", "/bin/bash", "/home/ana", env),
        Entry(
            11,
            "30 9 * * mon-fri",
            "Europe/Berlin",
            "A=1 B=2 /usr/bin/python3 -m digest",
            "",
            "/bin/bash",
            "/srv",
            env,
        ),
    )


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("echo 100\\% done", "echo 100% done", ""),
        ("cat%one%two", "cat", "one\ntwo\n"),
        ("cat%one%", "cat", "one\n"),
        ("cat%", "cat", ""),
        ("date +\\%F % x\\%y", "date +%F", " x%y\n"),
    ],
)
def test_a_percent_sign_begins_the_input_unless_it_is_escaped(text: str, command: str, stdin: str) -> None:
    """crontab(5)."""
    entry = one(f"0 0 * * * {text}")
    assert (entry.command, entry.stdin) == (command, stdin)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("* * * * * x", "the floor is 300"),
        ("0 25 * * * x", "hour"),
        ("0 9 * * *", "it has no command"),
        ("0 9 * *", "it has no command"),
        ("@daily", "it has no command"),
        ("@daily %x", "it has no command"),
        ("@reboot x", "a start of the machine is no slot"),
        ("@noon x", '"@noon" is no nickname of a time; there are @yearly'),
        ("what is this", "it has no command"),
        ("this is no line of a crontab", "cron can't read it"),
        ("0 9 * * * cat%{{date}}", "its input holds {{"),
        ("0 9 * * * a\0b", "U+0000"),
        ("CRON_TZ=Mars/Base", 'CRON_TZ names no IANA zone: "Mars/Base"'),
        ("RANDOM_DELAY", "it has no command"),
    ],
)
def test_what_can_not_be_expressed_is_refused_with_its_line(line: str, says: str) -> None:
    """CAD-9: with the reason, and never bent; the other lines are read."""
    found = the(f"# first\n{line}\n@daily y\n")
    (refusal,) = found.refused
    assert refusal.line == 2
    assert says in refusal.reason
    assert [entry.command for entry in found.entries] == ["y"]


def test_the_same_line_twice_would_fire_one_slot_twice() -> None:
    """DSP-6: refused, where cron runs it twice."""
    found = the("0 9 * * * x\n0 9 * * * y\n0 9 * * * x\nA=1\n0 9 * * * x\n")
    assert [(refusal.line, refusal.reason) for refusal in found.refused] == [
        (3, "it says the same as line 1: a schedule fires a slot once")
    ]
    assert [entry.line for entry in found.entries] == [1, 2, 5]


def test_a_system_crontab_names_whom_each_line_runs_as() -> None:
    """crontab(5): Gnomon becomes nobody else."""
    found = the("0 9 * * * ana  x --all\n@daily root\ty\n", user="ana")
    assert [entry.command for entry in found.entries] == ["x --all"]
    assert [(refusal.line, refusal.reason) for refusal in found.refused] == [
        (2, 'it runs as "root", and Gnomon runs as "ana": import it there')
    ]


def test_what_comes_of_it_is_accepted_by_the_forms_of_agents_and_schedules() -> None:
    """SCH-13, IDM-1: one agent for each command, one schedule for each line, each with a key over its slot."""
    made = document(the(EVERYTHING + "0 4 * * * A=1 B=2 /usr/bin/python3 -m digest\n").entries, 600)
    assert [agent["slug"].rpartition("-")[0] for agent in made["agents"]] == [
        "cron-backup-sh",
        "cron-echo",
        "cron-python3",
    ]
    for agent in made["agents"]:
        form = Form(agent)
        read_agent(form)
        form.finish()
        assert agent["runtime"]["argv"][:2] == ["/bin/bash", "-c"]
    assert len(made["schedules"]) == 4
    for schedule in made["schedules"]:
        definition = parse(schedule)
        assert dedup.names_slot(definition.dedup_key or "")
        assert definition.timeout_seconds == 600
    assert made["schedules"][1]["cadence"] == {"cron": "0 * * * *", "zone": "UTC"}
    assert made["schedules"][2]["cadence"]["zone"] == "Europe/Berlin"


def test_a_command_has_the_same_slug_wherever_it_stands() -> None:
    """SCH-13: safe to repeat, in another order too."""
    first, second = "0 9 * * * x --all", "0 10 * * * y"
    slugs = {entry.slug for entry in the(f"{first}\n{second}").entries}
    assert {entry.slug for entry in the(f"{second}\n\n{first}").entries} == slugs
    assert one(f"A=1\n{first}").slug != one(first).slug
    assert one("@daily A=1").slug.startswith("cron-command-")
    assert one("@daily ../-/ü").slug.startswith("cron-command-")


def test_schedules_of_one_agent_have_names_of_their_own() -> None:
    """SCH-13: a schedule is known by its target and its name."""
    lines = "0 9 * * * cat%one\n0 9 * * * cat%two\n0 9 * * * cat%three\n@daily " + "long " * 99
    names = [schedule["name"] for schedule in document(the(lines).entries)["schedules"]]
    assert names[:3] == ["0 9 * * * cat", "0 9 * * * cat #2", "0 9 * * * cat #3"]
    assert len(names[3]) == 190
    assert names[3].endswith("…")
