"""Who is let in at ``/mcp``, and what becomes of what nobody should send (SEC-1, SEC-3, OPS-8)."""

import json
from typing import Any

import httpx2
import pytest

from gnomon.edges.json_input import BODY_BYTES
from support.api import AGENT, Api

MODERN = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "list_tasks",
}
LEGACY = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
both = pytest.mark.parametrize("headers", [MODERN, LEGACY], ids=["2026-07-28", "2025-11-25"])


def call(arguments: str, tool: str = "list_tasks") -> str:
    """A call whose arguments are written out, since no honest client sends some of them."""
    params = f'{{"name": "{tool}", "_meta": {json.dumps(META)}, "arguments": {arguments}}}'
    return f'{{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {params}}}'


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (None, "key_missing"),
        ("Basic YTpi", "key_missing"),
        ("Bearer not-a-key", "key_malformed"),
        ("Bearer gnk_master_key_fppkv483f0395jqc08cj9xhgejref98f_2qrh0yk", "key_unknown"),
    ],
)
async def test_without_a_good_key_the_door_stays_shut(api: Api, authorization: str | None, code: str) -> None:
    """SEC-3: told as everywhere, with the challenge that clients look for."""
    headers = {} if authorization is None else {"Authorization": authorization}
    async with api.client() as client:
        answer = await client.post("/mcp", json=PING, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, code)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_key_in_the_address_is_refused(api: Api) -> None:
    """Casebook sec-05."""
    text = await api.key()
    async with api.client(text) as client:
        answer = await client.post("/mcp", params={"api_key": text}, json=PING)
    assert (answer.status_code, answer.json()["code"]) == (401, "key_in_query")


async def test_a_key_that_is_bound_to_a_target_has_no_tools(api: Api) -> None:
    """SEC-3."""
    async with api.client(await api.key()) as admin:
        await admin.post("/v1/agents", json=AGENT)
    async with api.client(await api.key(target={"kind": "agent", "id": "writer"})) as client:
        answer = await client.post("/mcp", json=PING)
    assert (answer.status_code, answer.json()["code"]) == (403, "key_bound")


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        (None, "gnomon.example", 200),  # no browser
        ("http://localhost:6274", "127.0.0.1:8420", 200),
        ("http://127.0.0.1:8420", "localhost:8420", 200),
        ("http://[::1]:1", "[::1]:8420", 200),
        ("https://evil.example", "127.0.0.1:8420", 403),
        ("http://evil.example:8420", "evil.example:8420", 403),  # its name leads here: DNS rebinding
        ("http://localhost.evil.example", "localhost:8420", 403),
        ("http://localhost:1", "gnomon.example", 403),
        ("null", "localhost:8420", 403),
        ("http://[", "localhost:8420", 403),
        ("", "localhost:8420", 403),
    ],
)
async def test_pages_of_other_sites_are_turned_away(
    api: Api, origin: str | None, host: str, status: int
) -> None:
    headers = {**LEGACY, "Host": host} | ({} if origin is None else {"Origin": origin})
    async with api.client(await api.key()) as client:
        answer = await client.post("/mcp", json=PING, headers=headers)
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["code"] == "bad_origin"


async def test_there_is_no_session_to_open_or_to_end(api: Api) -> None:
    async with api.client(await api.key()) as client:
        for method in ("GET", "DELETE", "PUT"):
            answer = await client.request(method, "/mcp", headers=LEGACY)
            assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
            assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("version", HANDSHAKES)
async def test_every_revision_with_a_handshake_is_answered(api: Api, version: str) -> None:
    """UI-5: clients of earlier years say which one they speak, and get it."""
    asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "0"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    calling = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "whoami", "arguments": {}},
    }
    headers = {**LEGACY, "MCP-Protocol-Version": version}
    async with api.client(await api.key("tasks:*")) as client:
        greeting = await client.post("/mcp", json=hello, headers=LEGACY)
        assert greeting.json()["result"]["protocolVersion"] == version
        assert "next_task" in greeting.json()["result"]["instructions"]
        assert "mcp-session-id" not in greeting.headers
        assert (await client.post("/mcp", json=ready, headers=headers)).status_code == 202
        tools = (await client.post("/mcp", json=listing, headers=headers)).json()["result"]["tools"]
        told = (await client.post("/mcp", json=calling, headers=headers)).json()["result"]
    assert tools[0]["name"] == "whoami"
    assert json.loads(told["content"][0]["text"])["scopes"] == ["tasks:*"]


async def test_a_revision_to_come_is_told_which_there_are(api: Api) -> None:
    version = "2099-01-01"
    meta = {**META, "io.modelcontextprotocol/protocolVersion": version}
    headers = {**LEGACY, "MCP-Protocol-Version": version, "Mcp-Method": "tools/list"}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    async with api.client(await api.key()) as client:
        answer = await client.post("/mcp", json=listing, headers=headers)
    assert answer.status_code == 400
    assert "2026-07-28" in answer.text


@both
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "malformed_body"),
        (b"{", "malformed_body"),
        (b"\xff\xfe", "malformed_body"),
        (call('{"limit": NaN}').encode(), "malformed_body"),
        (call('{"limit": 1e999}').encode(), "invalid"),
        (call('{"limit": ' + "9" * 400 + "}").encode(), "invalid"),
        (call('{"limit": 1, "limit": 2}').encode(), "malformed_body"),
        (call('{"role": ' + "[" * 5_000 + "]" * 5_000 + "}").encode(), "malformed_body"),
        (call('{"role": "\\ud800"}').encode(), "invalid"),
        (call('{"role": "a\\u0000b"}').encode(), "invalid"),
        (call('{"\\udfff": 1}').encode(), "invalid"),
        (call('{"role": "' + "x" * BODY_BYTES + '"}').encode(), "body_too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_readers_of_json_disagree_about_is_refused(
    api: Api, headers: dict[str, str], body: bytes, code: str
) -> None:
    """OPS-8: before the protocol sees it, in the form of every other address."""
    async with api.client(await api.key()) as client:
        answer = await client.post("/mcp", content=body, headers=headers)
    assert answer.status_code in {400, 413, 422}
    assert answer.json()["code"] == code


@both
@pytest.mark.parametrize(
    "body",
    [
        [],
        [PING],
        "x",
        7,
        None,
        {},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": {}, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        {"jsonrpc": "2.0", "id": 1, "method": "x" * 100_000},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 7, "_meta": META}},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "whoami", "arguments": [], "_meta": META},
        },
        {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": META}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
async def test_a_message_that_is_none_is_told_so(api: Api, headers: dict[str, str], body: Any) -> None:
    """OPS-8: an error of the protocol, and never one of ours."""
    async with api.client(await api.key()) as client:
        answer = await client.post("/mcp", content=json.dumps(body), headers=headers)
    assert answer.status_code < 500
    assert "Traceback" not in answer.text
    if answer.content:
        assert answer.status_code == 406 or "error" in answer.json(), answer.text


@both
async def test_a_wrong_argument_is_told_at_its_name(api: Api, headers: dict[str, str]) -> None:
    """OPS-8: every fault at once, in words a model can act on, and nothing of what it sent."""
    arguments = '{"role": 7, "status": "finished", "limit": "20", "hodler": "secret-of-mine"}'
    async with api.client(await api.key()) as client:
        answer = await client.post("/mcp", content=call(arguments), headers=headers)
    result = answer.json()["result"]
    words = result["content"][0]["text"]
    assert (answer.status_code, result["isError"]) == (200, True)
    assert [line.split(":")[0] for line in words.splitlines()[1:5]] == [
        "- role",
        "- status",
        "- limit",
        "- hodler",
    ]
    assert "Correct what is named above" in words
    assert "secret-of-mine" not in words


@both
async def test_what_nobody_expected_tells_no_internals(
    api: Api, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-8."""

    async def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(type(api.services.tasks), "page", breaks)
    async with api.client(await api.key()) as client:
        answer = await client.post("/mcp", content=call("{}"), headers=headers)
    words = answer.json()["result"]["content"][0]["text"]
    assert "hunter2" not in answer.text
    assert answer.headers["x-request-id"] in words
    assert "not known" in words


async def test_the_door_opens_after_the_sdk_could_not_be_had(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first agent that met an error leaves nothing shut for the next one."""
    from gnomon.edges.mcp import door

    def gone() -> None:
        raise ImportError("no such file")

    async with api.client(await api.key()) as client:
        with monkeypatch.context() as patch:
            patch.setattr(door, "_imported", gone)
            answers = [await client.post("/mcp", json=PING, headers=LEGACY) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [500, 500]
        assert (await client.post("/mcp", json=PING, headers=LEGACY)).json()["result"] == {}


async def test_many_come_at_once_and_one_door_opens(api: Api) -> None:
    import asyncio

    async with api.client(await api.key()) as client:
        answers = await asyncio.gather(*(client.post("/mcp", json=PING, headers=LEGACY) for _ in range(20)))
    assert all(answer.json()["result"] == {} for answer in answers)


async def test_a_call_is_logged_and_counted_like_every_request(api: Api) -> None:
    """OPS-6."""
    async with api.client(await api.key()) as client:
        await client.post("/mcp", content=call("{}"), headers=LEGACY)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(api.app), base_url="http://t") as client:
        text = (await client.get("/metrics")).text
    assert 'gnomon_http_requests_total{method="POST",route="/mcp",status="200"} 1.0' in text
