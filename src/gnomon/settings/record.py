"""The settings themselves: each with type, range, default and meaning. Where they come from is ``loading``'s affair."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gnomon.domain.failpoint import parse
from gnomon.settings import database

PREFIX = "GNOMON_"


class LogLevel(StrEnum):
    """From how grave an event on it is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """``auto`` is text on a terminal and JSON lines elsewhere."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class Settings(BaseSettings):
    """The settings of one process. The class reads nothing but its arguments; ``load`` reads the machine."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    database_url: str = Field(
        default="sqlite:///gnomon.db",
        repr=False,
        description="The database: sqlite:///file.db from the working directory, sqlite:////var/lib/gnomon.db absolute, "
        "or postgresql://user:password@host:port/name, with ?schema= for a schema of its own.",
    )
    host: str = Field(default="127.0.0.1", min_length=1, description="The address that HTTP listens on.")
    port: int = Field(
        default=8420, ge=0, le=65_535, description="The port that HTTP listens on; 0 takes a free one."
    )
    tick_seconds: float = Field(
        default=30,
        ge=0.05,
        le=30,
        description="The longest wait of the dispatcher between two looks for due slots.",
    )
    sweep_seconds: float = Field(
        default=60, ge=0.05, le=3_600, description="Between two sweeps for expired locks and lost runs."
    )
    task_lock_seconds: float = Field(
        default=120, ge=1, le=86_400, description="How long a claimed task is held without being renewed."
    )
    heartbeat_seconds: float = Field(
        default=10,
        ge=0.05,
        le=3_600,
        description="Between two heartbeats of an instance, and of a process that holds a run; one that holds none waits "
        "up to three times as long.",
    )
    heartbeat_timeout_seconds: float = Field(
        default=120,
        ge=0.15,
        le=86_400,
        description="After that long without a heartbeat its holder counts as gone; at least three heartbeats.",
    )
    dispatch: bool | None = Field(
        default=None, description="Whether this process fires schedules. Unset: yes; in production mode no."
    )
    work: bool | None = Field(
        default=None, description="Whether this process works on runs. Unset: yes; in production mode no."
    )
    concurrency: int = Field(
        default=100, ge=1, le=1_000, description="How many runs a process works on at once."
    )
    shutdown_grace_seconds: float = Field(
        default=30,
        ge=0,
        le=3_600,
        description="How long a stop waits for runs in flight before it leaves them to their leases.",
    )
    history_days: int = Field(
        default=90, ge=1, le=3_650, description="How long finished runs and their sessions are kept."
    )
    ledger_days: int = Field(
        default=400,
        ge=1,
        le=36_500,
        description="How long the slot ledger is kept; at least as long as the runs.",
    )
    audit_days: int = Field(default=400, ge=1, le=36_500, description="How long the audit log is kept.")
    allow_private_targets: bool = Field(
        default=False, description="Whether http targets may have private, loopback or link-local addresses."
    )
    production: bool = Field(
        default=False, description="Production mode: refuses to start while anything it needs is missing."
    )
    failpoints: str = Field(
        default="",
        description="For tests of the program alone: where this process is killed, stopped, held up or failed. "
        "Production mode refuses it.",
    )
    log_level: LogLevel = Field(default=LogLevel.INFO, description="The least grave event that is logged.")
    log_format: LogFormat = Field(
        default=LogFormat.AUTO,
        description="How events are logged: text, json, or auto (text on a terminal, else json).",
    )

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is the library's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments alone: ``load`` asks the other sources itself, to know where each value came from."""
        return (init_settings,)

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_switch(cls, value: object, info: ValidationInfo) -> object:
        """A file's ``history_days = true`` is not one day."""
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation in (int, float):
            raise PydanticCustomError("not_a_number", "not a number")
        return value

    @field_validator("database_url")
    @classmethod
    def _is_a_database(cls, url: str) -> str:
        fault = database.fault_of(url)
        if fault is not None:
            raise ValueError(fault)
        return url

    @field_validator("failpoints")
    @classmethod
    def _are_failpoints(cls, text: str) -> str:
        parse(text)
        return text

    @property
    def database_path(self) -> Path:
        """The SQLite file, relative to the working directory or absolute."""
        return Path(database.file_of(self.database_url))

    @property
    def is_postgres(self) -> bool:
        """Whether the database is on a PostgreSQL server."""
        return database.is_postgres(self.database_url)

    @property
    def database_place(self) -> str:
        """Where the database is, for people and for the log: a file, or an address without its password."""
        return database.shown(self.database_url) if self.is_postgres else database.file_of(self.database_url)

    def over(self, database_url: str, *, origin: str) -> "Settings":
        """The same settings over another database."""
        changed = self.model_copy(update={"database_url": database_url})
        return changed.came_from({**self._origins, "database_url": origin})

    @property
    def dispatches(self) -> bool:
        """Whether schedules are fired here: in production only while both switches are on (OPS-4)."""
        return self._on(self.dispatch)

    @property
    def works(self) -> bool:
        """Whether runs are worked on here: likewise."""
        return self._on(self.work)

    def _on(self, switch: bool | None) -> bool:
        if self.production:
            return bool(self.dispatch and self.work)
        return switch is not False

    def origin(self, name: str) -> str:
        """Where a value came from: a variable, the settings file, a flag, or ``default``."""
        return self._origins.get(name, "default")

    def came_from(self, origins: Mapping[str, str]) -> "Settings":
        """Remember where the values came from; called once, by whoever read them."""
        self._origins.update(origins)
        return self


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()
