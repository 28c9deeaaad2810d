"""Reading the settings: the environment over ``gnomon.toml`` over defaults, and everything wrong told at once (OPS-5)."""

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource

from gnomon.domain.errors import Fault, Invalid
from gnomon.settings.inventory import type_and_range
from gnomon.settings.record import PREFIX, Settings, variable

FILE = "gnomon.toml"
BEATS_IN_A_TIMEOUT = 3

# Not settings: the command line's and the client's own variables, and what a `command` target or a worker's command
# finds in its environment, so that it can call `gnomon` itself.
OTHER_VARIABLES = frozenset(
    PREFIX + name
    for name in [
        "URL",
        "KEY",
        "API_KEY",
        "CONFIG",
        "RUN_ID",
        "ATTEMPT",
        "FENCE",
        "IDEMPOTENCY_KEY",
        "DEDUP_KEY",
        "NOMINAL_FIRE_AT",
        "DEADLINE",
        "TENANT",
        "RESULT_FILE",
        "TASK_ID",
        "TRIGGER_ID",
        "ROLE",
        "INSTANCE",
        "JOB",
        "REDELIVERED",
        "VERIFY_FIRST",
        "LAST_REPORT",
    ]
)


def load(**flags: object) -> Settings:
    """Read the environment and the settings file; ``flags`` (by field name, ``None`` is not given) win over both.

    Raises:
        Invalid: ``settings_invalid``, with everything unknown, wrong or at odds at once, each at the name that its
            reader can change: a variable, a key of the file, a flag (OPS-5).
    """
    file = config_file()
    in_file = _file_values(file)
    in_environment = EnvSettingsSource(Settings)()
    given = {name: value for name, value in flags.items() if value is not None}
    places = {
        **{name: f"{file}: {name}" for name in in_file},
        **{name: variable(name) for name in in_environment},
        **{name: f"--{name.replace('_', '-')}" for name in given},
    }
    settings, wrong = _validated({**in_file, **in_environment, **given})
    wrong += [
        (names[0], text) for names, text in _at_odds(settings) if not {name for name, _ in wrong} & set(names)
    ]
    faults = [Fault(places.get(name, variable(name)), text) for name, text in wrong]
    faults += _unknown_variables()
    if faults:
        raise Invalid(faults, code="settings_invalid")
    return settings.came_from(places)


def config_file() -> Path:
    """The settings file: what ``GNOMON_CONFIG`` names, or ``gnomon.toml`` in the working directory."""
    return Path(os.environ.get(f"{PREFIX}CONFIG") or FILE)


def _file_values(file: Path) -> dict[str, Any]:
    if not file.is_file():
        if os.environ.get(f"{PREFIX}CONFIG"):
            raise Invalid([Fault(f"{PREFIX}CONFIG", f"There is no file {file}.")], code="settings_invalid")
        return {}
    try:
        return TomlConfigSettingsSource(Settings, toml_file=file)()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise Invalid(
            [Fault(str(file), f"The file can't be read: {error}.")], code="settings_invalid"
        ) from error


def _unknown_variables() -> Iterator[Fault]:
    known = OTHER_VARIABLES | {variable(name) for name in Settings.model_fields}
    for name in sorted(os.environ):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            yield Fault(name, _unknown(name.upper(), known))


def _unknown(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"Did you mean {near[0]}?" if near else "`gnomon settings` lists those there are."
    return f"There is no such setting. {hint}"


def _validated(values: Mapping[str, Any]) -> tuple[Settings, list[tuple[str, str]]]:
    """The settings, with the default for each value that is wrong; and what is wrong, by name."""
    try:
        return Settings(**values), []
    except ValidationError as error:
        wrong = [(str(item["loc"][0]), _sentence(item)) for item in error.errors(include_url=False)]
    bad = {name for name, _ in wrong}
    return Settings(**{name: value for name, value in values.items() if name not in bad}), wrong


def _sentence(item: ErrorDetails) -> str:
    name = str(item["loc"][0])
    if item["type"] == "extra_forbidden":
        return _unknown(name, Settings.model_fields)
    if (
        item["type"] == "value_error"
    ):  # one of our own: it may be about a password, so the input is not echoed
        return str(item["ctx"]["error"])
    kind, bounds = type_and_range(Settings.model_fields[name])
    wanted = f"a {kind} from {bounds}" if " to " in bounds else f"one of {bounds}" if bounds else f"a {kind}"
    return f"{ascii(item['input'])[:60]} can't be used: it must be {wanted}."


def _at_odds(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong between settings: the names concerned, the one to change first, and a sentence with the values."""
    beat, timeout = settings.heartbeat_seconds, settings.heartbeat_timeout_seconds
    if timeout < BEATS_IN_A_TIMEOUT * beat:
        text = (
            f"{timeout:g} is less than three times heartbeat_seconds ({beat:g}), so one slow heartbeat would look "
            f"like a death. Use {BEATS_IN_A_TIMEOUT * beat:g} or more."
        )
        yield ("heartbeat_timeout_seconds", "heartbeat_seconds"), text
    if settings.ledger_days < settings.history_days:
        text = (
            f"{settings.ledger_days} is less than history_days ({settings.history_days}): the ledger answers for a slot "
            f"at least as long as its run is kept. Use {settings.history_days} or more."
        )
        yield ("ledger_days", "history_days"), text
    if settings.production and settings.failpoints:
        yield (
            ("failpoints", "production"),
            "Failpoints break this process on purpose; production mode takes none.",
        )
    if settings.production and not settings.is_postgres:
        text = "Production mode needs PostgreSQL: name one with GNOMON_DATABASE_URL, or unset this and run on SQLite."
        yield ("production", "database_url"), text
