"""A crontab as definitions: an agent for each command, a schedule for each line (CONTRACT, CLI).

Read as cron reads it: settings hold for the lines below them, ``%`` begins standard input, the shell runs the command.
What can't be expressed here is refused with its line and the reason, never bent.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from gnomon.cadence import Cadence, CadenceError, zone_names

TIMEOUT_SECONDS = 86_400  # cron ends nothing, and this is the longest that a run may take
_SETTING = re.compile(r"""(["']?)([A-Za-z_]\w*)\1\s*=\s*(.*)""", re.ASCII)
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# Settings that say what cron does beside running a command: there is another way here, or no need.
_LEFT_OUT = {
    "MAILTO": "nothing is mailed: what a command prints is kept with its run",
    "MAILFROM": "nothing is mailed",
    "CONTENT_TYPE": "nothing is mailed",
    "CONTENT_TRANSFER_ENCODING": "nothing is mailed",
    "RANDOM_DELAY": "give the schedules jitter_seconds instead",
    "LOGNAME": "commands run as the user that Gnomon runs as",
    "USER": "commands run as the user that Gnomon runs as",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that can't be expressed, by number from 1, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One line that fires: when, in which zone, what, with which input and settings."""

    line: int
    when: str
    zone: str
    command: str
    stdin: str
    shell: str
    home: str
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """The slug of its agent: the same for the same command, whatever else is in the file."""
        words = [word for word in self.command.split() if "=" not in word.partition("/")[0]]
        base = re.sub(r"[^a-z0-9]+", "-", (words[0] if words else "").rpartition("/")[2].lower())[:40].strip(
            "-"
        )
        said = json.dumps([self.command, self.shell, self.home, sorted(self.env.items())])
        return f"cron-{base or 'command'}-{blake2b(said.encode(), digest_size=3).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Crontab:
    """What a file says: entries, refusals, and what was left out of it, as (line, sentence)."""

    entries: tuple[Entry, ...]
    refused: tuple[Refusal, ...]
    left_out: tuple[tuple[int, str], ...]


def read(text: str, *, zone: str, home: str, user: str | None = None) -> Crontab:
    """Read a file. ``zone`` and ``home`` are the machine's; with ``user`` each line names whom it runs as.

    A line for another user than that one is refused: Gnomon becomes nobody else.
    """
    now = Entry(0, "", zone, "", "", "/bin/sh", home)
    entries: list[Entry] = []
    refused: list[Refusal] = []
    left_out: list[tuple[int, str]] = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(" \t\r")
        if not line or line.startswith("#"):
            continue
        setting = _SETTING.fullmatch(line)
        try:
            if setting is not None:
                now, sentence = _set(now, setting.group(2), setting.group(3).strip())
                left_out += [(number, sentence)] if sentence else []
            else:
                entries.append(_entry(replace(now, line=number), line, user, entries))
        except ValueError as error:
            refused.append(Refusal(number, str(error)))
    return Crontab(tuple(entries), tuple(refused), tuple(left_out))


def document(entries: tuple[Entry, ...], timeout_seconds: int = TIMEOUT_SECONDS) -> dict[str, Any]:
    """The definitions of these entries, as ``apply`` takes them; the same file gives the same ones."""
    agents: dict[str, dict[str, Any]] = {}
    schedules: list[dict[str, Any]] = []
    taken: set[tuple[str, str]] = set()
    for entry in entries:
        slug = entry.slug
        runtime: dict[str, Any] = {
            "kind": "command",
            "argv": [entry.shell, "-c", entry.command],
            "cwd": entry.home,
        }
        if entry.env:
            runtime["env"] = dict(entry.env)
        agents.setdefault(
            slug,
            {
                "slug": slug,
                "name": _name(entry.command),
                "runtime": runtime,
                "timeout_seconds": timeout_seconds,
            },
        )
        schedules.append(
            {
                "name": _free(taken, slug, _name(f"{entry.when} {entry.command}")),
                "target": {"kind": "agent", "id": slug},
                "cadence": {"cron": NICKNAMES.get(entry.when, entry.when), "zone": entry.zone},
                "query": entry.stdin,
                "timeout_seconds": timeout_seconds,
                "dedup_key": f"{slug}/{{{{now}}}}",
            }
        )
    return {"agents": list(agents.values()), "schedules": schedules}


def _set(now: Entry, name: str, given: str) -> tuple[Entry, str]:
    """The settings after one more, and what there is to say of it."""
    quoted = len(given) >= 2 and given[0] == given[-1] and given[0] in "\"'"
    value = given[1:-1] if quoted else given
    if name == "CRON_TZ":
        if value not in zone_names():
            raise ValueError(f'CRON_TZ names no IANA zone: "{value[:60]}"')
        return replace(now, zone=value), ""
    if name == "SHELL":
        return replace(now, shell=value), ""
    if name == "HOME":
        return replace(now, home=value), ""
    if name in _LEFT_OUT:
        return now, f"{name} is left out: {_LEFT_OUT[name]}"
    return replace(now, env={**now.env, name: value}), ""


def _entry(now: Entry, line: str, user: str | None, before: list[Entry]) -> Entry:
    when, rest = _when(line)
    if user is not None:
        whom, _, rest = rest.replace("\t", " ").partition(" ")
        if whom != user:
            raise ValueError(f'it runs as "{whom[:60]}", and Gnomon runs as "{user}": import it there')
        rest = rest.lstrip()
    command, stdin = _taken_apart(rest)
    if not command:
        raise ValueError("it has no command")
    if "\0" in line:
        raise ValueError("it holds the character U+0000")
    if "{{" in stdin:
        raise ValueError("its input holds {{, which a query fills in; put the input into the command")
    try:
        Cadence.parse({"cron": NICKNAMES.get(when, when), "zone": now.zone})
    except CadenceError as error:
        raise ValueError("; ".join(fault.message for fault in error.faults)) from None
    found = replace(now, when=when, command=command, stdin=stdin)
    for other in before:
        if replace(other, line=found.line) == found:
            raise ValueError(f"it says the same as line {other.line}: a schedule fires a slot once")
    return found


def _when(line: str) -> tuple[str, str]:
    """When a line fires, as it is written with single spaces, and the rest of it."""
    if not line.startswith("@"):
        parts = line.split(None, 5)
        return " ".join(parts[:5]), parts[5] if len(parts) > 5 else ""
    nickname, _, rest = line.replace("\t", " ").partition(" ")
    if nickname == "@reboot":
        raise ValueError("a start of the machine is no slot: let the machine's own start run it")
    if nickname not in NICKNAMES:
        raise ValueError(f'"{nickname[:60]}" is no nickname of a time; there are {", ".join(NICKNAMES)}')
    return nickname, rest.lstrip()


def _taken_apart(text: str) -> tuple[str, str]:
    """A command and its standard input: the first bare ``%`` divides them, each further one is a new line."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", text)]
    stdin = "\n".join(parts[1:])
    return parts[0].rstrip(), stdin + "\n" if stdin and not stdin.endswith("\n") else stdin


def _name(text: str) -> str:
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if len(plain) <= 190 else plain[:189] + "…"


def _free(taken: set[tuple[str, str]], slug: str, name: str) -> str:
    """A name that no other schedule of the agent has: two of one are told apart by their number."""
    found, number = name, 1
    while (slug, found) in taken:
        number += 1
        found = f"{name} #{number}"
    taken.add((slug, found))
    return found
