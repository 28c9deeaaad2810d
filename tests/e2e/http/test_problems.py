"""Problem documents: one form for every refusal (OPS-8, CONTRACT errors)."""

from collections.abc import Iterator

import httpx2
import pytest

from gnomon.domain import errors
from gnomon.domain.errors import GnomonError
from gnomon.edges.http import problems
from gnomon.stores.sqlite.database import SqliteDatabase
from support.api import Api

MEMBERS = {"type", "title", "status", "detail", "code", "errors", "request_id"}


def tree(root: type[GnomonError]) -> Iterator[type[GnomonError]]:
    for kind in root.__subclasses__():
        yield kind
        yield from tree(kind)


@pytest.mark.parametrize("kind", list(tree(GnomonError)), ids=lambda kind: kind.__name__)
def test_every_error_of_the_tree_has_a_status_of_its_branch(kind: type[GnomonError]) -> None:
    """HOUSE rule 8: whoever must act reads it off the hundred."""
    status = problems.status_of(kind("what happened"))
    assert (500 <= status < 600) == issubclass(kind, errors.Unavailable)
    assert status != 500


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1/agents/", 404, "not_found"),
        ("GET", "/v1/agents/nobody", 404, "not_found"),
        ("GET", "/v1/agents/%00", 404, "not_found"),
        ("GET", "/v1/agents/%ff%fe", 404, "not_found"),
        ("GET", "/v1/agents/" + "x" * 5_000, 404, "not_found"),
        ("PUT", "/v1/agents", 405, "method_not_allowed"),
        ("GET", "/v1/agents?limit=0", 422, "invalid"),
        ("GET", "/v1/agents?limit=201", 422, "invalid"),
        ("GET", "/v1/agents?limit=ten", 422, "invalid"),
        ("GET", "/v1/agents?lmit=5", 422, "invalid"),
        ("GET", "/v1/agents?cursor=abc", 400, "bad_cursor"),
        ("GET", "/v1/audit?action=EXPLODE", 422, "invalid"),
        ("GET", "/v1/audit?after=-1", 422, "invalid"),
        ("GET", "/v1/audit?after=99999999999999999999", 422, "invalid"),
    ],
)
async def test_a_refusal_has_the_one_form(
    admin: httpx2.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await admin.request(method, path)
    body = answer.json()
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(body) >= MEMBERS
    assert body["type"] == f"urn:gnomon:problem:{code}"
    assert body["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("limit=0", "limit: must be at least 1"),
        ("limit=201", "limit: must be at most 200"),
        ("limit=ten", "limit: must be a whole number"),
        ("status=gone", "status: must be one of backlog, in_progress, in_review, blocked, done, cancelled"),
    ],
)
async def test_a_parameter_is_told_in_the_words_of_a_field(
    admin: httpx2.AsyncClient, query: str, words: str
) -> None:
    assert (await admin.get(f"/v1/tasks?{query}")).json()["detail"] == words


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("/v1/agents", "GET, HEAD, POST"),
        ("/v1/agents/x", "DELETE, GET, HEAD, PATCH"),
        ("/v1/teams/x/check", "POST"),
        ("/healthz", "GET, HEAD"),
    ],
)
async def test_allow_lists_every_method_of_the_address(
    admin: httpx2.AsyncClient, path: str, allow: str
) -> None:
    answer = await admin.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)


async def test_head_is_get_without_the_body(admin: httpx2.AsyncClient) -> None:
    got, head = await admin.get("/v1/agents"), await admin.head("/v1/agents")
    assert head.status_code == got.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == got.headers["content-length"]


async def test_what_nobody_expected_is_a_500_that_tells_nothing(
    api: Api, admin: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No stack trace, query, key or path in an answer (reliability, section 6)."""

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret /path SELECT")

    monkeypatch.setattr(type(api.services.agents), "page", broken)
    answer = await admin.get("/v1/agents", headers={"x-request-id": "mine-1"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "mine-1"


@pytest.mark.parametrize("given", ["a b", "x" * 65, "é", "a\tb", ""])
async def test_a_request_id_is_taken_only_where_it_is_harmless(admin: httpx2.AsyncClient, given: str) -> None:
    """Reliability 75: nothing of it can break a log line."""
    answer = await admin.get("/healthz", headers={b"x-request-id": given.encode("latin-1")})
    assert answer.headers["x-request-id"].startswith("req_")


async def test_a_database_that_is_gone_is_503_with_a_time_to_wait(
    api: Api, admin: httpx2.AsyncClient, database: SqliteDatabase
) -> None:
    await database.close()
    answer = await admin.get("/v1/agents")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        ("audit?lmit=5&after=-1&action=NO&limit=0", ["lmit", "after", "action", "limit"]),
        ("usage?sinc=x&since=x&until=y&by=month", ["sinc", "since", "until", "by"]),
        ("usage?since=x&until=y&by=month&limit=many", ["since", "until", "by", "limit"]),
        ("overview?zone=nowhere&more=1&more=2", ["zone", "more"]),
        ("schedules/sch_1/explain?when=x", ["when", "at"]),
        (
            "schedules/sch_1/occurrences?since=2026-11-29T09:00:00&disposition=no&x=",
            ["since", "disposition", "x"],
        ),
    ],
)
async def test_every_fault_of_the_parameters_comes_at_once(
    admin: httpx2.AsyncClient, address: str, wrong: list[str]
) -> None:
    """OPS-8: one that is unknown hides none of the others, whoever reads them; as in a body."""
    answer = await admin.get(f"/v1/{address}")
    assert answer.status_code == 422
    said = {error["field"]: error["message"] for error in answer.json()["errors"]}
    assert sorted(said) == sorted(wrong)
    assert not [message for message in said.values() if "error" in message.lower()]
