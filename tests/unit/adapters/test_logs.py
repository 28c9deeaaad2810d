"""Events: one line each, in one form, and no secret in any (OPS-6)."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from gnomon.adapters.logs import configure


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before, level
    structlog.reset_defaults()


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_ours_and_a_library_s_events_leave_in_the_same_form() -> None:
    out = io.StringIO()
    configure(level="info", as_json=True, stream=out)
    structlog.get_logger("ours").info("slot_fired", schedule_id="sch_1")
    logging.getLogger("theirs").warning("careful: %s", "x", extra={"run_id": "run_1"})
    ours, theirs = lines(out)
    assert (ours["event"], ours["level"], ours["schedule_id"]) == ("slot_fired", "info", "sch_1")
    assert (theirs["event"], theirs["level"], theirs["run_id"]) == ("careful: x", "warning", "run_1")
    assert ours["logger"] == "ours"
    assert str(ours["at"]).endswith("Z")


def test_an_exception_is_one_line_with_its_traceback() -> None:
    out = io.StringIO()
    configure(as_json=True, stream=out)
    try:
        int("boom")
    except ValueError:
        structlog.get_logger().exception("tick_failed")
    (event,) = lines(out)
    assert "ValueError: invalid literal" in str(event["exception"])


@pytest.mark.parametrize("as_json", [True, False])
def test_no_secret_leaves_in_an_event(as_json: bool) -> None:
    out = io.StringIO()
    configure(as_json=as_json, stream=out)
    structlog.get_logger().info(
        "request", api_key="S3cret-1", detail="Authorization: Bearer S3cret-2 was sent", dedup_key="weekly-7"
    )
    logging.getLogger("theirs").warning("signed with whsec_S3cret-3")
    assert "S3cret" not in out.getvalue()
    assert "weekly-7" in out.getvalue()


def test_what_is_below_the_level_is_not_written() -> None:
    out = io.StringIO()
    configure(level="warning", as_json=True, stream=out)
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    assert [line["event"] for line in lines(out)] == ["loud"]


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("kind", "as_json"), [(io.StringIO, True), (_Tty, True), (io.StringIO, False)])
def test_what_no_person_looks_at_has_every_field(kind: type[io.StringIO], as_json: bool) -> None:
    out = kind()
    configure(as_json=as_json, stream=out)
    structlog.get_logger("ours").info("request", in_short="GET / 200 1 ms", request_id="req_1", status=200)
    assert "req_1" in out.getvalue()
    assert "GET" not in out.getvalue()
    assert "in_short" not in out.getvalue()


def test_a_terminal_shows_what_is_said_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """And in full where nothing is."""
    monkeypatch.setenv("NO_COLOR", "1")
    out = _Tty()
    configure(as_json=False, stream=out)
    log = structlog.get_logger("ours")
    log.info("request", in_short="GET /v1/schedules/sch_06h2g5j9k7jzqf1avj9k 200 12 ms", request_id="req_1")
    log.info("request", in_short=None, request_id="req_2", status=503)
    short, full = out.getvalue().splitlines()
    assert short.endswith("GET /v1/schedules/sch_06h2g5j9k7jzqf1avj9k 200 12 ms")
    assert len(short) < 100
    assert "req_2" in full
    assert "in_short" not in full


def test_no_color_is_honoured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        out = _Tty()
        configure(as_json=False, stream=out)
        structlog.get_logger().warning("loud")
        assert ("\x1b[" in out.getvalue()) is coloured
        structlog.reset_defaults()
