"""Hostile bodies: refused by name, never a 500, and nothing written (OPS-8; reliability 17, 41, 67, 69)."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from support.api import Api

JSON = {"content-type": "application/json"}
PYTHON = {"kind": "python", "path": "m:f"}


def nested(depth: int) -> bytes:
    return b'{"slug":"a","runtime":' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed_body"),
        (b"{", 400, "malformed_body"),
        (b"\xff\xfe", 400, "malformed_body"),
        (b"\xef\xbb\xbf{}", 400, "malformed_body"),
        (b'{"slug":"\xed\xa0\x80"}', 400, "malformed_body"),
        (b'{"timeout_seconds":1e400}', 422, "invalid"),
        (b'{"timeout_seconds":-1e400}', 422, "invalid"),
        (b'{"timeout_seconds":NaN}', 400, "malformed_body"),
        (b'{"timeout_seconds":Infinity}', 400, "malformed_body"),
        (b'{"timeout_seconds":' + b"9" * 5_000 + b"}", 422, "invalid"),
        (b'{"timeout_seconds":9223372036854775808}', 422, "invalid"),
        (b'{"timeout_seconds":-9223372036854775808}', 422, "invalid"),
        (b'{"slug":"a","slug":"b"}', 400, "malformed_body"),
        (b'{"limits":{"cost":1,"cost":2}}', 400, "malformed_body"),
        (nested(33), 400, "malformed_body"),
        (nested(100_000), 400, "malformed_body"),
        (b"[" * 1_000_000, 400, "malformed_body"),
        (b'{"name":"' + b"x" * 1_048_576 + b'"}', 413, "body_too_large"),
        (b"[]", 422, "invalid"),
        (b'"text"', 422, "invalid"),
        (b"null", 422, "invalid"),
        (b'{"slug":"\\ud800"}', 422, "invalid"),
        (b'{"slug":"a\\u0000"}', 422, "invalid"),
        (b'{"\\ud800":1}', 422, "invalid"),
        (nested(20), 422, "invalid"),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else None,
)
async def test_a_hostile_body_is_refused_by_name(
    api: Api, admin: httpx2.AsyncClient, body: bytes, status: int, code: str
) -> None:
    """Reliability 69."""
    answer = await admin.post("/v1/agents", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert await api.services.agents.page("", 9) == []


@pytest.mark.parametrize("number", ["1" + "0" * 30, "-" + "9" * 400, "1e999"])
async def test_a_number_that_is_too_large_is_refused_at_its_place(
    admin: httpx2.AsyncClient, number: str
) -> None:
    """CAD-1: out of range is a field's fault, however far out."""
    body = '{"cadence":{"unit":"minute","every":' + number + "}}"
    answer = await admin.post("/v1/preview", content=body.encode(), headers=JSON)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == ["cadence.every"]


async def test_a_body_without_an_end_is_cut_off(admin: httpx2.AsyncClient) -> None:
    """A stream that never says how long it is costs no more memory than the limit."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 50_000_000:
            sent += 65_536
            yield b"x" * 65_536

    answer = await admin.post("/v1/agents", content=endless(), headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("given", "accepted"),
    [
        ("application/json", True),
        ("application/json; charset=utf-8", True),
        ("APPLICATION/JSON; charset=UTF-8", True),
        ("application/merge-patch+json", True),
        ("text/plain", False),
        ("application/x-www-form-urlencoded", False),
        ("multipart/form-data; boundary=x", False),
        ("application/json; charset=utf-16", False),
        ("application/jsonp", False),
    ],
)
async def test_only_json_is_read(admin: httpx2.AsyncClient, given: str, accepted: bool) -> None:
    """Reliability 57: a form that a browser can send across sites is no request of ours."""
    body = json.dumps({"slug": "a", "runtime": PYTHON})
    answer = await admin.post("/v1/agents", content=body, headers={"content-type": given})
    assert answer.status_code == (201 if accepted else 415), answer.text


async def test_all_faults_come_in_one_answer(admin: httpx2.AsyncClient) -> None:
    """Shape, range, unknown field, runtime and address: one answer lists them all."""
    written = {
        "slug": "No Slug",
        "name": ["x"],
        "timeout_seconds": "5",
        "daily_cap": True,
        "enabled": 1,
        "limits": {"cost": "x", "output": 1},
        "colour": "red",
        "version": 3,
        "runtime": {"kind": "http", "url": "http://127.0.0.1/"},
    }
    answer = await admin.post("/v1/agents", json=written)
    assert answer.status_code == 422
    assert {error["field"] for error in answer.json()["errors"]} == {
        "slug",
        "name",
        "timeout_seconds",
        "daily_cap",
        "enabled",
        "limits.cost",
        "limits.output",
        "colour",
        "version",
        "runtime.url",
    }


@pytest.mark.parametrize("value", [[], {}, "5", 5.5, True, -1, 0, 10**18])
async def test_a_patch_with_a_wrong_type_changes_nothing(admin: httpx2.AsyncClient, value: Any) -> None:
    """Reliability 17."""
    await admin.post("/v1/agents", json={"slug": "a", "runtime": PYTHON})
    answer = await admin.patch("/v1/agents/a", json={"timeout_seconds": value})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "timeout_seconds"
    assert (await admin.get("/v1/agents/a")).json()["version"] == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://user@127.0.0.1:80@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://127.0.0.1#@example.com/",
        "http://exa\tmple.com/",
        "http://example.com/\r\nX: y",
        "file:///etc/passwd",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest",
        "http://0x7f000001/",
    ],
)
async def test_a_target_that_leads_inside_is_refused_when_it_is_saved(
    admin: httpx2.AsyncClient, url: str
) -> None:
    """TGT-4; reliability 41."""
    answer = await admin.post("/v1/agents", json={"slug": "a", "runtime": {"kind": "http", "url": url}})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith("runtime.url")


@pytest.mark.parametrize(
    "zone",
    ["../../etc/passwd", "localtime", "posixrules", "Factory", "europe/berlin", "x" * 5_000, "", "UTC\0"],
)
async def test_a_zone_comes_from_the_list_alone(admin: httpx2.AsyncClient, zone: str) -> None:
    """CAD-11; reliability 67."""
    rule = {"unit": "day", "at": "09:00", "zone": zone}
    answer = await admin.post("/v1/preview", json={"cadence": rule})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "cadence.zone"
