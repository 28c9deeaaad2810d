"""Where events are written, and how: one line each, to standard error, as text or as JSON (OPS-6).

Ours come through structlog, those of libraries through ``logging``; both leave by the same door, in the same form.
What an event is about is the caller's affair; that no secret leaves in one is this module's too. An event may say itself
``in_short``: a person's terminal shows that instead of its fields.
"""

import logging
import os
import re
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

_SECRET_NAMES = re.compile(r"(?i)(^|_)(key|secret|password|token|authorization|pepper)$")
_SECRET_VALUES = re.compile(r"(?i)\b(gnk_|whsec_|bearer\s+)[^\s\"']+")
HIDDEN = "***"


def configure(*, level: str = "info", as_json: bool, stream: TextIO | None = None) -> None:
    """Send every event from ``level`` on to ``stream`` (standard error). Calling it again replaces what was set."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        _hide_secrets,
    ]
    out = stream if stream is not None else sys.stderr
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared[:-1], structlog.stdlib.ExtraAdder(), _hide_secrets],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(out, as_json),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("uvicorn", "uvicorn.error", "uvicorn.access", "httpx2", "httpcore2", "mcp"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # a cached one would outlive the next call of this
    )


def is_terminal() -> bool:
    """Whether events would go to a person's terminal."""
    return sys.stderr.isatty()


def _rendering(out: TextIO, as_json: bool) -> list[Processor]:
    if as_json:
        return [
            _in_full,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
    plain = structlog.dev.plain_traceback
    return [
        _in_short if out.isatty() else _in_full,
        structlog.dev.ConsoleRenderer(colors=_coloured(out), exception_formatter=plain, timestamp_key="at"),
    ]


def _coloured(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR")


def _in_full(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event.pop("in_short", None)
    return event


def _in_short(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    said = event.pop("in_short", None)
    return event if said is None else {"at": event["at"], "level": event["level"], "event": said}


def _hide_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for name, value in event.items():
        if isinstance(value, str):
            if _SECRET_NAMES.search(name) and not name.endswith(("dedup_key", "idempotency_key")):
                event[name] = HIDDEN
            elif _SECRET_VALUES.search(value):
                event[name] = _SECRET_VALUES.sub(rf"\1{HIDDEN}", value)
    return event
