"""The settings: where they come from, what stops the start, and the inventory (OPS-5)."""

import os
from pathlib import Path

import pytest

from gnomon.domain.errors import Invalid
from gnomon.settings import LogLevel, Settings, inventory, load, variable


@pytest.fixture(autouse=True)
def _bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.upper().startswith("GNOMON_")]:
        monkeypatch.delenv(name)


def faults() -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        load()
    assert caught.value.code == "settings_invalid"
    return {fault.field: fault.message for fault in caught.value.faults}


def test_the_defaults_are_the_contract_s() -> None:
    settings = load()
    assert settings.database_url == "sqlite:///gnomon.db"
    assert (settings.host, settings.port) == ("127.0.0.1", 8420)
    assert (settings.tick_seconds, settings.sweep_seconds) == (30, 60)
    assert settings.task_lock_seconds == 120
    assert (settings.heartbeat_seconds, settings.heartbeat_timeout_seconds) == (10, 120)
    assert (settings.dispatches, settings.works, settings.production) == (True, True, False)
    assert settings.task_lock_seconds + settings.sweep_seconds <= 180, (
        "BRD-5: claimable again in three minutes"
    )


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("gnomon.toml").write_text("port = 1001\nhost = '0.0.0.0'\nconcurrency = 3\n")
    monkeypatch.setenv("GNOMON_PORT", "1002")
    monkeypatch.setenv("GNOMON_HOST", "::1")
    settings = load(port=1003, host=None)
    assert (settings.port, settings.host, settings.concurrency) == (1003, "::1", 3)
    origins = {entry.name: entry.origin for entry in inventory(settings)}
    assert origins["port"] == "--port"
    assert origins["host"] == "GNOMON_HOST"
    assert origins["concurrency"] == "gnomon.toml: concurrency"
    assert origins["sweep_seconds"] == "default"


def test_the_record_itself_reads_nothing_but_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("gnomon.toml").write_text("port = 1001\n")
    monkeypatch.setenv("GNOMON_HOST", "::1")
    assert Settings() == Settings(port=8420, host="127.0.0.1")


def test_everything_wrong_is_told_at_once_each_at_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-5: unknown, out of range and at odds, in one answer, with a suggestion."""
    Path("gnomon.toml").write_text("prot = 1\nconcurrency = 0\n[http]\nx = 1\n")
    monkeypatch.setenv("GNOMON_TICK_SECOND", "1")
    monkeypatch.setenv("GNOMON_PORT", "99999")
    monkeypatch.setenv("GNOMON_LOG_LEVEL", "loud")
    monkeypatch.setenv("GNOMON_DISPATCH", "perhaps")
    monkeypatch.setenv("GNOMON_HEARTBEAT_SECONDS", "50")
    found = faults()
    assert set(found) == {
        "gnomon.toml: prot",
        "gnomon.toml: concurrency",
        "gnomon.toml: http",
        "GNOMON_TICK_SECOND",
        "GNOMON_PORT",
        "GNOMON_LOG_LEVEL",
        "GNOMON_DISPATCH",
        "GNOMON_HEARTBEAT_TIMEOUT_SECONDS",
    }
    assert "Did you mean port?" in found["gnomon.toml: prot"]
    assert "Did you mean GNOMON_TICK_SECONDS?" in found["GNOMON_TICK_SECOND"]
    assert found["GNOMON_PORT"] == "'99999' can't be used: it must be a whole number from 0 to 65,535."
    assert "debug | info | warning | error" in found["GNOMON_LOG_LEVEL"]


def test_a_heartbeat_timeout_below_three_heartbeats_is_refused_with_both_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Casebook dbl-08, lea-06."""
    monkeypatch.setenv("GNOMON_HEARTBEAT_SECONDS", "10")
    monkeypatch.setenv("GNOMON_HEARTBEAT_TIMEOUT_SECONDS", "29.9")
    text = faults()["GNOMON_HEARTBEAT_TIMEOUT_SECONDS"]
    assert "29.9" in text
    assert "(10)" in text
    assert "Use 30 or more" in text
    monkeypatch.setenv("GNOMON_HEARTBEAT_TIMEOUT_SECONDS", "30")
    assert load().heartbeat_timeout_seconds == 30


def test_what_is_wrong_with_one_value_is_not_told_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_HEARTBEAT_SECONDS", "soon")
    monkeypatch.setenv("GNOMON_HEARTBEAT_TIMEOUT_SECONDS", "1")
    assert set(faults()) == {"GNOMON_HEARTBEAT_SECONDS"}


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "31", "1e400", "x"])
def test_a_number_that_is_none_or_out_of_range_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("GNOMON_TICK_SECONDS", value)
    assert set(faults()) == {"GNOMON_TICK_SECONDS"}


def test_a_switch_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-5: ``history_days = true`` would keep one day."""
    Path("gnomon.toml").write_text("history_days = true\ntick_seconds = true\ndispatch = true\n")
    monkeypatch.setenv("GNOMON_PRODUCTION", "0")
    assert faults() == {
        "gnomon.toml: history_days": "True can't be used: it must be a whole number from 1 to 3,650.",
        "gnomon.toml: tick_seconds": "True can't be used: it must be a number from 0.05 to 30.",
    }


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_PORT", "")
    assert load().port == 8420


def test_what_a_command_target_finds_in_its_environment_is_no_unknown_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A target may call `gnomon`: the environment that it was given must not stop it."""
    from datetime import UTC, datetime

    from gnomon.domain.agent import CommandRuntime
    from gnomon.domain.invocation import Invocation
    from gnomon.runtimes.command import environment

    invocation = Invocation("run_1", 1, 1, "run_1", "q", datetime(2026, 1, 1, tzinfo=UTC))
    for name, value in environment(CommandRuntime(("true",)), invocation, Path("result")).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GNOMON_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GNOMON_KEY", "k")
    assert load() == Settings()


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///gnomon.db", "gnomon.db"),
        ("sqlite:///data/a%20b.db", "data/a b.db"),
        ("sqlite:////var/lib/gnomon.db", "/var/lib/gnomon.db"),
    ],
)
def test_a_database_url_names_a_file(url: str, path: str) -> None:
    assert Settings(database_url=url).database_path == Path(path)


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("postgresql://me:secret@db", "Name one database"),
        ("postgresql://me:secret@db/", "Name one database"),
        ("postgresql://me:secret@db/x/y", "Name one database"),
        ("postgresql:me:secret@db/x", "Write it as"),
        ("postgresql://me:sec@ret@db/x", "%40"),
        ("postgresql://me:secret#1@db/x", "%23"),
        ("postgresql://me:secret@db:port/x", "from 1 to 65535"),
        ("postgresql://me:secret@db:0/x", "from 1 to 65535"),
        ("postgresql://me:secret@a:1,b:70000/x", "from 1 to 65535"),
        ("postgresql://me:secret@:5432/x", "before its port"),
        ("postgresql:///x", "Name the host"),
        ("postgresql://me@db/x?password=secret", "no option 'password'"),
        ("postgresql://me:secret@db/x?shcema=a", "Did you mean schema?"),
        ("postgresql://me:secret@db/x?schema=", "a to z"),
        ("postgresql://me:secret@db/x?schema=A", "a to z"),
        ("postgresql://me:secret@db/x?schema=a;drop", "a to z"),
        ("postgresql://me:secret@db/x?schema=pg_temp", "a to z"),
        ("postgresql://me:secret@db/x?schema=information_schema", "a to z"),
        ("postgresql://me:secret@db/x?schema=" + "a" * 64, "63 letters"),
        ("postgresql://me:secret@db/x?target_session_attrs=standby", "Gnomon writes"),
        ("postgresql://me:secret@db/x?sslmode=maybe", "verify-full"),
        ("postgresql://me:secret@db/x?statement_cache_size=-1", "whole number"),
        ("mysql://me:secret@db/x", "sqlite:///gnomon.db"),
        ("gnomon.db", "sqlite:///gnomon.db"),
        ("sqlite://gnomon.db", "Three slashes"),
        ("sqlite:///", "Name a file"),
        ("sqlite:///:memory:", "Name a file"),
        ("sqlite:///x.db?mode=ro", "no options"),
    ],
)
def test_a_database_that_can_not_be_is_refused_without_showing_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str, hint: str
) -> None:
    monkeypatch.setenv("GNOMON_DATABASE_URL", url)
    text = faults()["GNOMON_DATABASE_URL"]
    assert hint in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://me:s3cr%40t@db:5432/x", "postgresql://me@db:5432/x"),
        ("postgres://me@db/x?schema=a_1", "postgres://me@db/x?schema=a_1"),
        (
            "postgresql://me:s3cret@a:1,[::1]:2,c/x?target_session_attrs=primary&sslpassword=s3cret",
            "postgresql://me@a:1,[::1]:2,c/x?target_session_attrs=primary",
        ),
        ("postgresql:///x?host=/run/postgresql&statement_cache_size=0", None),
        ("postgresql://me@db/x?passfile=/home/me/pass&sslmode=verify-full", None),
    ],
)
def test_a_postgresql_url_is_shown_without_its_password(url: str, place: str | None) -> None:
    """OPS-5, OPS-6: neither the inventory nor a printed record has it."""
    settings = Settings(database_url=url)
    assert settings.is_postgres
    assert settings.database_url == url
    assert settings.database_place == place or url
    told = f"{settings!r} {settings} {[entry for entry in inventory(settings) if 'database' in entry.name]}"
    assert "s3cr" not in told
    assert settings.database_place in told


def test_a_settings_file_that_can_not_be_read_is_one_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("gnomon.toml").write_text("port =")
    assert "can't be read" in faults()["gnomon.toml"]
    monkeypatch.setenv("GNOMON_CONFIG", "elsewhere.toml")
    assert faults() == {"GNOMON_CONFIG": "There is no file elsewhere.toml."}
    Path("elsewhere.toml").write_text("log_level = 'debug'\n")
    assert load().log_level is LogLevel.DEBUG


def test_in_production_scheduling_is_off_until_both_switches_are_on() -> None:
    """OPS-4."""
    states = {
        (dispatch, work): (settings.dispatches, settings.works)
        for dispatch in (None, False, True)
        for work in (None, False, True)
        for settings in [Settings(production=True, dispatch=dispatch, work=work)]
    }
    assert {switches for switches, state in states.items() if state == (True, True)} == {(True, True)}
    assert set(states.values()) == {(True, True), (False, False)}
    assert (Settings(work=False).dispatches, Settings(work=False).works) == (True, False)


def test_production_mode_refuses_to_start_without_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-4."""
    monkeypatch.setenv("GNOMON_PRODUCTION", "true")
    assert "PostgreSQL" in faults()["GNOMON_PRODUCTION"]
    monkeypatch.setenv("GNOMON_DATABASE_URL", "postgresql://me@db/x")
    assert load().production


def test_the_inventory_has_type_range_default_and_meaning_for_each_setting() -> None:
    """OPS-5."""
    entries = {entry.name: entry for entry in inventory(Settings())}
    assert set(entries) == set(Settings.model_fields)
    for name, entry in entries.items():
        assert entry.variable == variable(name)
        assert entry.meaning.endswith("."), name
        assert entry.type in {"text", "whole number", "number", "switch"}, name
        assert entry.range or entry.type == "text", name
        assert entry.default == entry.value


def test_a_default_lies_in_its_own_range() -> None:
    Settings(**{name: field.default for name, field in Settings.model_fields.items()})


def test_failpoints_are_read_and_a_wrong_one_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """PRF-1: off unless they are named."""
    assert load().failpoints == ""
    monkeypatch.setenv("GNOMON_FAILPOINTS", "close.sent=kill@2")
    assert load().failpoints == "close.sent=kill@2"
    monkeypatch.setenv("GNOMON_FAILPOINTS", "close.nowhere=kill")
    assert "There is no point close.nowhere" in faults()["GNOMON_FAILPOINTS"]


def test_production_takes_no_failpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """PRF-1: off in production."""
    monkeypatch.setenv("GNOMON_FAILPOINTS", "close.sent=kill")
    monkeypatch.setenv("GNOMON_PRODUCTION", "true")
    assert "production mode takes none" in faults()["GNOMON_FAILPOINTS"]
