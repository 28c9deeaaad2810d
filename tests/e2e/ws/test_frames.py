"""What is said over ``/v1/connect``, right and wrong, to a real server over a real socket (JOB-5, SEC-3, OPS-8)."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from gnomon.edges.server import MESSAGE_BYTES
from gnomon.edges.ws import conversation
from support.socket_world import ROLE, World, a_world, only

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


async def refused(world: World, key: str = "", path: str = "", **headers: str) -> tuple[int, dict[str, Any]]:
    """How a handshake is refused."""
    given = {**({"Authorization": f"Bearer {key}"} if key else {}), **headers}
    with pytest.raises(InvalidStatus) as caught:
        await connect(world.url + path, additional_headers=given, open_timeout=10)
    response = caught.value.response
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = json.loads(bytes(response.body or b""))
    assert body["status"] == response.status_code
    assert body["request_id"].startswith("req_")
    return response.status_code, body


async def test_only_a_key_that_may_connect_connects(world: World) -> None:
    """SEC-1, SEC-3: refused before a socket is opened, by an ordinary problem document."""
    good = await world.key("instances:connect")
    poor = await world.key("instances:read")
    await world.agent()
    made = await world.http.post("/v1/keys", json={"target": {"kind": "agent", "id": "hand"}})
    assert await _code(refused(world)) == (401, "key_missing")
    assert await _code(refused(world, "gnk_nonsense")) == (401, "key_malformed")
    assert await _code(refused(world, poor)) == (403, "scope_missing")
    assert await _code(refused(world, made.json()["key"])) == (403, "key_bound")
    assert await _code(refused(world, good, f"?key={good}")) == (401, "key_in_query")
    async with world.instance(key=good):
        assert len(await world.instances()) == 1


async def test_a_page_of_another_origin_does_not_connect(world: World) -> None:
    """SEC-6: with the key or without; a page of this host may."""
    good = await world.key("instances:connect")
    for origin in ("http://evil.example", "null", "http://[", "", f"http://127.0.0.1:{world.port + 1}"):
        assert await _code(refused(world, good, Origin=origin)) == (403, "bad_origin")
    async with world.socket(good, origin=f"http://127.0.0.1:{world.port}") as peer:
        await peer.say("hello", role=ROLE, instance="a")
        assert (await peer.frame())["type"] == "welcome"


async def _code(found: Any) -> tuple[int, str]:
    status, body = await found
    return status, body["code"]


async def test_a_key_of_one_role_says_hello_for_no_other(world: World) -> None:
    """SEC-3."""
    key = await world.key("instances:connect", role="dev")
    async with world.socket(key) as peer:
        await peer.say("hello", role=ROLE, instance="a")
        assert (await peer.frame())["code"] == "key_bound_to_role"
        assert await peer.closed() == 1008
    async with world.instance(key=key, role="dev") as peer:
        assert [instance["role"] for instance in await world.instances()] == ["dev"]


WRONG: list[tuple[str | bytes, str]] = [
    ("{", "malformed_frame"),
    ("", "malformed_frame"),
    ('{"type": "heartbeat", "type": "drain"}', "malformed_frame"),
    ("[" * 40 + "]" * 40, "malformed_frame"),
    ("[]", "not_a_frame"),
    ('"heartbeat"', "not_a_frame"),
    ("{}", "not_a_frame"),
    ('{"type": 7}', "not_a_frame"),
    (b'{"type": "heartbeat"}', "not_text"),
    ('{"type": "poll"}', "unknown_type"),
    ('{"type": "job_trigger"}', "unknown_type"),
    ('{"type": "claim", "role": "pm"}', "unknown_type"),
    ('{"type": "list"}', "unknown_type"),
    ('{"type": "schedule", "every": 5}', "unknown_type"),
    ('{"type": "ack"}', "invalid_frame"),
    ('{"type": "ack", "trigger_id": 7}', "invalid_frame"),
    ('{"type": "ack", "trigger_id": "a\\u0000b"}', "invalid"),
    ('{"type": "ack", "\\ud800": "a\\u0000b"}', "invalid"),
    ('{"type": "run_ack", "run_id": "run_1", "fence": "1"}', "invalid_frame"),
    ('{"type": "run_ack", "run_id": "run_1", "fence": -1}', "invalid_frame"),
    ('{"type": "run_ack", "run_id": "run_1", "fence": true}', "invalid_frame"),
    ('{"type": "run_result", "run_id": "run_1", "fence": 1, "status": "well"}', "invalid_frame"),
    ('{"type": "run_ack", "run_id": "run_1", "fence": 1}', "not_pushed"),
    ('{"type": "run_progress", "run_id": "run_1", "fence": 1, "text": "x"}', "not_pushed"),
    ('{"type": "run_result", "run_id": "run_1", "fence": 1, "status": "succeeded"}', "not_pushed"),
]


async def test_what_is_wrong_is_said_and_the_connection_goes_on(world: World) -> None:
    """JOB-1, OPS-8: nothing is changed; no frame polls, lists, claims or sets a schedule."""
    async with world.instance() as peer:
        before = (await world.http.get("/v1/audit")).json()
        for text, code in WRONG:
            await peer.socket.send(text)
            error = await peer.frame()
            assert (error["type"], error["code"]) == ("error", code), text
            assert error["detail"], text
        await peer.say("hello", role=ROLE, instance="a")
        assert (await peer.frame())["code"] == "hello_twice"
        after = (await world.http.get("/v1/audit")).json()
        assert [entry["action"] for entry in after["items"]] == [entry["action"] for entry in before["items"]]
        await peer.say("heartbeat", of="a newer client")
        await peer.say("drain")
        await world.until(lambda items: only(items, status="draining"))


async def test_every_fault_of_a_frame_is_told_at_its_field(world: World) -> None:
    """OPS-8."""
    async with world.socket() as peer:
        await peer.say("hello", role="P M", instance="", max_in_flight=0, in_flight=[{"run_id": ""}])
        error = await peer.frame()
        fields = {fault["field"].partition(".")[0] for fault in error["errors"]}
        assert fields == {"role", "instance", "max_in_flight", "in_flight"}


async def test_nothing_is_taken_before_hello(world: World) -> None:
    """JOB-5: out of order is said, and a hello may still come."""
    async with world.socket() as peer:
        for kind in ("heartbeat", "drain"):
            await peer.say(kind)
            assert (await peer.frame())["code"] == "hello_first"
        assert await world.instances() == []
        await peer.say("hello", role=ROLE, instance="a")
        assert (await peer.frame())["type"] == "welcome"


async def test_who_says_no_hello_is_let_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """JOB-5: an open socket that nobody speaks over is not kept."""
    monkeypatch.setattr(conversation, "HELLO_SECONDS", 0.05)
    async with world.socket() as peer:
        assert await peer.closed() == 1008
    assert await world.instances() == []


async def test_a_message_that_is_too_large_ends_its_connection(world: World) -> None:
    """JOB-5: that one alone, with the code for it."""
    async with world.instance("a") as peer, world.instance("b") as other:
        await peer.say("heartbeat", padding="x" * (MESSAGE_BYTES - 200))
        await peer.say("ack", trigger_id="trg_1")
        assert (await peer.frame())["type"] == "error"
        await peer.say("heartbeat", padding="x" * MESSAGE_BYTES)
        assert await peer.closed() == 1009
        await other.say("poll")
        assert (await other.frame())["code"] == "unknown_type"


async def test_who_says_nothing_but_nonsense_is_cut_off(world: World) -> None:
    """JOB-5."""
    async with world.instance() as peer:
        for _ in range(conversation.MOST_ERRORS):
            await peer.socket.send("{")
        assert await peer.closed() == 1008


async def test_each_frame_has_a_published_schema(world: World) -> None:
    """JOB-5: and it holds for what is said here."""
    document = (await world.http.get("/v1/connect/schema")).json()
    said = {"welcome", "job_trigger", "run_trigger", "cancel", "revoke", "error"}
    assert set(document["from_centre"]) == said
    assert set(document["from_instance"]) == {
        *("hello", "heartbeat", "ack", "result", "drain"),
        *("run_ack", "run_progress", "run_result"),
    }
    for schema in (*document["from_centre"].values(), *document["from_instance"].values()):
        meta.validate(schema)
    await world.agent()
    async with world.instance() as peer:
        await peer.say("poll")
        path = await world.run()
        frames = [await peer.frame(), await peer.frame()]
        assert [frame["type"] for frame in frames] == ["error", "run_trigger"]
        for frame in (*frames, peer.welcome):
            Draft202012Validator(document["from_centre"][frame["type"]]).validate(frame)
        run_id, fence = frames[1]["run_id"], frames[1]["fence"]
        assert run_id == path.rpartition("/")[2]
        # else the server waits for it to its grace
        await peer.say("run_result", run_id=run_id, fence=fence, status="succeeded", output="done")
