"""Who may call what (SEC-1, SEC-3): every route declares a scope, a key comes in one place, and none is echoed."""

from datetime import timedelta

import httpx2
import pytest
from fastapi.routing import APIRoute
from structlog.testing import capture_logs

from gnomon.domain.api_key import KeyKind, make_text
from gnomon.domain.instants import rfc3339
from gnomon.domain.scopes import Scope
from gnomon.edges.http.app import guard_of
from gnomon.edges.http.auth import Public, accepts
from gnomon.edges.mcp.catalogue import TOOLS
from gnomon.edges.mcp.door import PATH
from support.api import AGENT, Api
from support.databases import START

OPEN_TO_ALL = {"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"}
MARKER = make_text("master", KeyKind.SCOPES, 2**159 + 12345)


def api_routes(api: Api) -> list[APIRoute]:
    return [route for route in api.app.router.routes if isinstance(route, APIRoute)]


async def test_every_route_declares_its_scope(api: Api) -> None:
    """SEC-1: no route without a declared scope, and none open to all but the ones listed here."""
    unguarded = {route.path for route in api_routes(api) if guard_of(route) is None}
    assert unguarded == OPEN_TO_ALL
    for route in api_routes(api):
        calls = [inner.call for inner in route.dependant.dependencies]
        assert (guard_of(route) is None) == any(isinstance(call, Public) for call in calls), route.path


async def test_what_is_no_route_of_http_guards_itself(api: Api) -> None:
    """SEC-1: every tool behind ``/mcp`` declares a scope, but for the one that tells callers who they are."""
    others = {getattr(route, "path", None) for route in api.app.router.routes} - {
        route.path for route in api_routes(api)
    }
    assert others == {PATH}
    assert {tool.name for tool in TOOLS.values() if tool.scope is None} <= {"whoami"}
    async with api.client() as client:
        assert (await client.post(PATH, json={})).json()["code"] == "key_missing"


async def test_the_guard_stands_before_everything_else(api: Api) -> None:
    """Nothing of a request is read before its caller is known."""
    for route in api_routes(api):
        if (guard := guard_of(route)) is not None:
            assert route.dependant.dependencies[0].call is guard, route.path


async def test_reading_needs_a_reading_scope_and_writing_another(api: Api) -> None:
    """SEC-1: reliability 23, a viewer changes nothing."""
    for route in api_routes(api):
        guard = guard_of(route)
        if guard is None:
            continue
        reads = guard.scope.value.endswith(":read")
        asks = route.path in {"/v1/preview", "/v1/teams/{team}/check"}
        assert reads == (route.methods == {"GET"} or asks), f"{route.methods} {route.path}"


async def test_a_route_refuses_every_scope_but_its_own(api: Api) -> None:
    """SEC-1: with all other scopes each route still answers 403, and says which one it wants."""
    for route in api_routes(api):
        guard = guard_of(route)
        if guard is None:
            continue
        others = [scope.value for scope in Scope if scope is not guard.scope]
        async with api.client(await api.key(*others)) as client:
            for method in route.methods or ():
                answer = await client.request(method, route.path.replace("{", "").replace("}", ""), json={})
                assert answer.status_code == 403, f"{method} {route.path}: {answer.text}"
                assert answer.json()["scope"] == guard.scope.value


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ([], "key_missing"),
        ([("authorization", "")], "key_missing"),
        ([("authorization", "Bearer")], "key_missing"),
        ([("authorization", "Bearer ")], "key_missing"),
        ([("authorization", "Basic YTpi")], "key_missing"),
        ([("authorization", "Bearer x"), ("authorization", "Bearer y")], "key_ambiguous"),
        ([("authorization", "Bearer not-a-key")], "key_malformed"),
        ([("authorization", f"Bearer {MARKER[:-1]}")], "key_malformed"),
        ([("authorization", f"Bearer {MARKER}")], "key_unknown"),
        ([("authorization", f"Bearer {make_text('acme', KeyKind.SCOPES, 5)}")], "key_unknown"),
        ([("authorization", f"Bearer {'x' * 20_000}")], "key_malformed"),
    ],
)
async def test_no_key_and_a_bad_key_are_401(api: Api, headers: list[tuple[str, str]], code: str) -> None:
    """Reliability 1 and 3."""
    async with api.client() as client:
        answer = await client.get("/v1/agents", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, code)
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_in_the_address_is_refused_even_a_good_one(api: Api) -> None:
    """Reliability 1, casebook sec-05: and neither the key nor any other word of the query gets into the log."""
    text = await api.key()
    with capture_logs() as lines:
        async with api.client(text) as client:
            for name in ("key", "api_key", "access_token", "Authorization"):
                answer = await client.get("/v1/agents", params={name: text})
                assert (answer.status_code, answer.json()["code"]) == (401, "key_in_query")
                assert text not in answer.text
            await client.get("/v1/agents", params={"other": "a-secret-word"})
    assert [line["path"] for line in lines] == ["/v1/agents"] * 5
    assert text not in repr(lines)
    assert "a-secret-word" not in repr(lines)


async def test_no_answer_echoes_a_key(api: Api) -> None:
    """Casebook sec-03, sec-04: a marker key in every place where a caller could put it by mistake."""
    async with api.client(await api.key()) as client:
        answers = [
            await client.get(f"/v1/keys/{MARKER}"),
            await client.post("/v1/keys", json={"name": [MARKER], "scopes": [MARKER], "expires_at": MARKER}),
            await client.post(
                "/v1/agents", json={"slug": MARKER.upper(), "runtime": MARKER, "limits": MARKER}
            ),
            await client.get("/v1/agents", params={"limit": MARKER}),
            await client.get("/v1/agents", params={"cursor": MARKER}),
            await client.post("/v1/agents", content=f'{{"key": "{MARKER}", "key": 1}}'),
            await client.post("/v1/agents", json={MARKER: 1, "slug": "x", "runtime": {MARKER: 1}}),
            await client.post("/v1/preview", json={"cadence": {"unit": MARKER, "zone": MARKER, MARKER: 1}}),
            await client.post(
                "/v1/preview", json={"cadence": {"unit": "day", "at": MARKER, "days": [MARKER]}}
            ),
            await client.post("/v1/preview", json={"cadence": {"cron": MARKER}}),
            await client.post("/v1/preview", json={"cadence": {"rrule": MARKER, "calendar": MARKER}}),
            await client.post("/v1/preview", json={"cadence": MARKER}),
        ]
    async with api.client(MARKER) as client:
        answers.append(await client.get("/v1/agents"))
    for answer in answers:
        assert answer.status_code in {400, 401, 404, 422}
        assert MARKER.split("_")[3] not in answer.text


async def test_no_log_line_holds_a_key_or_a_line_break(api: Api) -> None:
    """Casebook sec-06, reliability 75: the path as it came, cut, and with keys made useless."""
    text = await api.key()
    with capture_logs() as lines:
        async with api.client(text) as client:
            await client.get(f"/v1/keys/{MARKER}")
            await client.get("/v1/agents/a%0d%0ab%1b[31m")
            await client.get("/v1/agents/" + "x" * 5_000)
            await client.post("/v1/keys", json={"name": MARKER, "scopes": ["*"]})
    told = repr(lines)
    assert len(lines) == 4
    assert MARKER not in told
    assert text not in told
    assert lines[0]["path"] == "/v1/keys/gnk_***"
    assert lines[1]["path"] == "/v1/agents/a%0d%0ab%1b[31m"
    assert all(len(line["path"]) <= 300 for line in lines)


async def test_a_revoked_and_an_expired_key_open_nothing(api: Api) -> None:
    """Reliability 9: from the next call on."""
    made = await api.services.api_keys.create(
        (await _admin(api)), {"scopes": ["*"], "expires_at": rfc3339(START + timedelta(hours=1))}
    )
    text, key_id = made.text, made.key.id  # type: ignore[union-attr]
    async with api.client(text) as client:
        assert (await client.get("/v1/agents")).status_code == 200
        api.clock.advance(3_599)
        assert (await client.get("/v1/agents")).status_code == 200
        api.clock.advance(1)
        assert (await client.get("/v1/agents")).json()["code"] == "key_expired"
        await api.services.api_keys.revoke(await _admin(api), key_id)
        answer = await client.get("/v1/agents")
    assert (answer.status_code, answer.json()["code"]) == (401, "key_revoked")


async def test_a_key_bound_to_a_target_does_nothing_else(api: Api) -> None:
    """SEC-3, reliability 7."""
    async with api.client(await api.key()) as admin:
        await admin.post("/v1/agents", json=AGENT)
    text = await api.key(target={"kind": "agent", "id": "writer"})
    async with api.client(text) as client:
        for address in ("/v1/agents", "/v1/agents/writer", "/v1/keys", "/v1/audit"):
            answer = await client.get(address)
            assert (answer.status_code, answer.json()["code"]) == (403, "key_bound")


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (None, True),
        ("", True),
        ("*/*", True),
        ("application/json", True),
        ("application/problem+json", True),
        ("application/*;q=0.1", True),
        ("text/html, */*;q=0.8", True),
        ("text/html", False),
        ("text/html, application/json;q=0", False),
        ("*/*, application/json;q=0", True),
        ("image/*", False),
    ],
)
def test_accept_is_read_as_it_is_meant(header: str | None, accepted: bool) -> None:
    offers = ("application/json", "application/problem+json")
    assert accepts(header, offers) is accepted


async def test_a_form_that_nobody_can_read_is_406(admin: httpx2.AsyncClient) -> None:
    answer = await admin.get("/v1/agents", headers={"accept": "text/html"})
    assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")


async def _admin(api: Api):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a caller
    return await api.services.api_keys.authenticate(await api.key())
