"""The routes of each noun come when they are asked for: what comes then is what would have been there (ADR 0017)."""

from dataclasses import replace
from importlib import import_module

import pytest
from prometheus_client import CollectorRegistry

from gnomon.edges.http.app import build_app
from gnomon.edges.http.nouns import NOUNS, PREFIX
from gnomon.testing.clock import SeededEntropy
from support.api import Api

ASKED = [
    ("GET", "/v1/schedules"),
    ("GET", "/v1/schedules?limit=0&zone=x"),
    ("GET", "/v1/agents/nobody"),
    ("POST", "/v1/agents"),
    ("DELETE", "/v1/preview"),
    ("PUT", "/v1/runs/nobody/cancel"),
    ("GET", "/v1/connect/schema"),
    ("GET", "/v1/nowhere"),
    ("GET", "/v1/"),
    ("GET", "/nowhere"),
    ("GET", "/healthz"),
]


@pytest.fixture
def in_parts(api: Api) -> Api:
    """The application over the same services, its routes still to come."""
    app = build_app(
        api.services,
        clock=api.clock,
        entropy=SeededEntropy(8),
        version="test",
        registry=CollectorRegistry(),
        whole=False,
    )
    return replace(api, app=app)


@pytest.mark.parametrize("noun", NOUNS)
def test_a_noun_is_found_at_each_of_its_addresses(noun: str) -> None:
    """A route at an address that is not its noun's would be there in a server, and not in a command."""
    paths = [route.path for route in import_module(f"gnomon.edges.http.{noun}").router.routes]
    assert all(path.startswith(PREFIX) for path in paths)
    assert {path.removeprefix(PREFIX).partition("/")[0] for path in paths} == set(NOUNS[noun])


def test_no_two_nouns_answer_at_one_address() -> None:
    words = [word for each in NOUNS.values() for word in each]
    assert len(words) == len(set(words))


async def test_an_application_in_parts_answers_as_the_whole(api: Api, in_parts: Api) -> None:
    key = await api.key()
    given = {"X-Request-Id": "same"}
    async with api.client(key, **given) as whole, in_parts.client(key, **given) as parts:
        for method, path in ASKED:
            one, other = await whole.request(method, path), await parts.request(method, path)
            assert (other.status_code, other.text) == (one.status_code, one.text), (method, path)
            assert dict(other.headers) == dict(one.headers), (method, path)


async def test_each_application_in_parts_has_its_own(in_parts: Api) -> None:
    """What came for one request stays for the next, once."""
    async with in_parts.client(await in_parts.key()) as client:
        before = len(in_parts.app.router.routes)
        assert (await client.get("/v1/doctor")).status_code == 200
        assert (await client.get("/v1/doctor")).status_code == 200
    assert len(in_parts.app.router.routes) == before + 1


async def test_the_description_is_whole_either_way(api: Api, in_parts: Api) -> None:
    assert in_parts.app.openapi() == api.app.openapi()
