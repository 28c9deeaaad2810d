"""Health, figures and the API's own description: what it says is what it does (OPS-5a, OPS-6, OPS-8)."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from prometheus_client import CollectorRegistry
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks

from gnomon.edges.http.app import build_app
from gnomon.edges.http.services import Check, Services
from gnomon.edges.server import listen
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.api import AGENT, Api, api_over
from support.databases import START, open_database

CHECKS: list[Any] = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_schema_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.unsupported_method,
]


async def test_health_and_readiness_need_no_key(api: Api) -> None:
    """OPS-5a."""
    async with api.client() as client:
        health = (await client.get("/healthz")).json()
        assert (health["status"], health["version"]) == ("ok", "test")
        assert health["zone_data"].startswith("20")
        assert (await client.get("/readyz")).json()["status"] == "ready"
        api.checks.append(Check("ticks", ok=False, detail="the last one was 70 s ago"))
        stalled = await client.get("/readyz")
    assert (stalled.status_code, stalled.json()["status"]) == (503, "not_ready")
    assert stalled.json()["checks"][1] == {
        "name": "ticks",
        "ok": False,
        "detail": "the last one was 70 s ago",
    }


async def test_figures_name_routes_and_no_id(api: Api, admin: httpx2.AsyncClient) -> None:
    """OPS-6, SEC-5: a label is a template, so that neither a tenant nor an id is told."""
    agent = (await admin.post("/v1/agents", json=AGENT)).json()
    await admin.get(f"/v1/agents/{agent['id']}")
    await admin.get("/nowhere/at/all")
    await admin.request("BREW", "/v1/agents")
    async with api.client() as client:
        text = (await client.get("/metrics")).text
    assert 'gnomon_http_requests_total{method="GET",route="/v1/agents/{agent}",status="200"} 1.0' in text
    assert 'route="none",status="404"' in text
    assert 'method="other"' in text
    assert agent["id"] not in text
    assert "nowhere" not in text


async def test_the_page_is_whole_without_a_script_or_an_asset_from_elsewhere(api: Api) -> None:
    """SEC-6's like for the API's page."""
    async with api.client() as client:
        page = await client.get("/docs")
        document = (await client.get("/openapi.json")).json()
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<script" not in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert all(path in page.text for path in document["paths"])


async def test_the_description_names_every_scope_body_and_problem(api: Api) -> None:
    document = api.app.openapi()
    text = repr(document)
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if path.startswith("/v1"):
                assert operation["x-scope"], path
                assert {"401", "403", "503"} <= operation["responses"].keys(), path
            if "requestBody" in operation:
                (form,) = operation["requestBody"]["content"].values()
                assert form["schema"]["$ref"].rpartition("/")[2] in schemas, f"{method} {path}"
    assert "HTTPValidationError" not in text


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Api, str]]:
    """The application behind a real socket, in a thread of its own: its address, itself, and a key to all of it."""
    folder: Path = tmp_path_factory.mktemp("served")
    ready, stop = threading.Event(), asyncio.Event()
    given: list[tuple[str, Api, str]] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        database = await open_database(folder, FrozenClock(START))
        api = api_over(database, FrozenClock(START))
        sockets = listen("127.0.0.1", 0)
        server = uvicorn.Server(uvicorn.Config(api.app, log_level="critical", lifespan="off"))
        task = asyncio.create_task(server.serve(sockets))
        given.append((f"http://127.0.0.1:{sockets[0].getsockname()[1]}", api, await api.key()))
        ready.set()
        await stop.wait()
        server.should_exit = True
        await task
        await database.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(20)
    yield given[0]
    loops[0].call_soon_threadsafe(stop.set)
    thread.join(20)


def test_head_over_a_real_socket_leaves_the_connection_whole(served: tuple[str, Api, str]) -> None:
    """The server counts the bytes of a body that is never sent."""
    address, _, key = served
    with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}) as client:
        for path in ("/healthz", "/v1/agents", "/v1/agents/nobody", "/nowhere"):
            head, got = client.head(path), client.get(path)
            assert (head.status_code, head.content) == (got.status_code, b"")
            assert head.headers["content-length"] == str(len(got.content))
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 5) as raw:
        asked = "{} /healthz HTTP/1.1\r\nHost: x\r\nConnection: {}\r\n\r\n"
        raw.sendall((asked.format("HEAD", "keep-alive") + asked.format("GET", "close")).encode())
        answers = b"".join(iter(lambda: raw.recv(65_536), b""))
    assert answers.count(b"HTTP/1.1 200") == 2
    assert answers.count(b'"status":"ok"') == 1


def _operations() -> list[tuple[str, str]]:
    nothing = cast("Services", None)
    clock, entropy = FrozenClock(START), SeededEntropy()
    app = build_app(nothing, clock=clock, entropy=entropy, version="0", registry=CollectorRegistry())
    return [(path, method) for path, methods in app.openapi()["paths"].items() for method in methods]


@pytest.mark.parametrize(("path", "method"), _operations())
def test_no_answer_is_undocumented(path: str, method: str, served: tuple[str, Api, str]) -> None:
    """OPS-8: whatever is sent, the status, the form and the headers are described, and it is never a 500."""
    address, api, key = served
    operation = schemathesis.openapi.from_dict(api.app.openapi())[path][method]

    @given(case=operation.as_strategy())
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    def probe(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(base_url=address, checks=CHECKS, headers={"Authorization": f"Bearer {key}"})

    probe()
