"""The API as the command line calls it: on a server, or in this process over the settings' database.

Both ways are the same requests with the same answers, so a command works with or without a running server; several
processes on one SQLite file are a mode of the product, not a trick. This module must not know any noun.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import httpx2

from gnomon.cli.command import Exit, Failed

if TYPE_CHECKING:
    from gnomon.settings import Settings

LOCAL = "http://gnomon.local"
TIMEOUT = httpx2.Timeout(10, read=60)
Query = Mapping[str, str | int | bool | None]


class Api:
    """Requests under ``/v1``; an answer that is none of success raises ``Failed`` with the problem document."""

    def __init__(
        self,
        runner: asyncio.Runner,
        client: httpx2.AsyncClient,
        close: Callable[[], Awaitable[None]],
        *,
        place: str,
        local: bool,
    ) -> None:
        self._runner = runner
        self._client = client
        self._close = close
        self._place = place
        self.local = local

    def get(self, path: str, query: Query | None = None) -> Any:
        """The body of a GET."""
        return self.answer("GET", path, query=query).json()

    def post(
        self,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The body of the answer to a POST."""
        return _body(self.answer("POST", path, body, query=query, headers=headers))

    def patch(self, path: str, body: Any, *, headers: Mapping[str, str] | None = None) -> Any:
        """The body of the answer to a PATCH."""
        return _body(self.answer("PATCH", path, body, headers=headers))

    def delete(self, path: str) -> None:
        """DELETE."""
        self.answer("DELETE", path)

    def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """One request; its answer with everything in it.

        Raises:
            Failed: with the problem document, or with exit code 3 where nobody answers.
        """
        chosen = {name: value for name, value in (query or {}).items() if value is not None}
        request = self._client.build_request(
            method,
            "/v1" + path,
            params=chosen or None,
            headers=dict(headers or {}),
            json=body if body is not None else None,
        )
        try:
            answer = self._runner.run(self._client.send(request))
        except httpx2.TransportError as error:
            raise unreachable(self._place, error) from error
        if answer.is_success:
            return answer
        raise Failed(self._problem(answer))

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """An event stream of a server, as (event, data) pairs, until it ends."""
        stream = self._lines(path)
        name, data = "message", ""
        try:
            while (line := self._runner.run(anext(stream, None))) is not None:
                if line.startswith("event:"):
                    name = line[6:].strip()
                elif line.startswith("data:"):
                    data += line[5:].strip()
                elif not line and data:
                    yield name, json.loads(data)
                    name, data = "message", ""
        except httpx2.TransportError as error:
            raise unreachable(self._place, error) from error
        finally:
            self._runner.run(stream.aclose())

    def close(self) -> None:
        """Let go of the connection, or of the database."""
        try:
            self._runner.run(self._client.aclose())
            self._runner.run(_awaited(self._close))
        finally:
            self._runner.close()

    async def _lines(self, path: str) -> Any:
        timeout = httpx2.Timeout(10, read=None)
        headers = {"Accept": "text/event-stream"}
        async with self._client.stream("GET", "/v1" + path, headers=headers, timeout=timeout) as answer:
            if not answer.is_success:
                await answer.aread()
                raise Failed(self._problem(answer))
            async for line in answer.aiter_lines():
                yield line

    def _problem(self, answer: httpx2.Response) -> dict[str, Any]:
        return problem_of(answer, self._place, local=self.local)


def problem_of(answer: httpx2.Response, place: str, *, local: bool = False) -> dict[str, Any]:
    """The problem document of an answer that is none of success, or what can be said where it has none."""
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "detail" not in problem | {"detail": problem.get("title")}:
        return {"detail": f"{place} answered {answer.status_code}, and not as Gnomon does."}
    if answer.status_code == 401 and not local:
        problem["detail"] = f"{problem.get('detail')} Name a key with GNOMON_API_KEY or --key."
    return problem


def unreachable(place: str, error: Exception) -> Failed:
    """Nobody answers there: exit code 3."""
    detail = f"{place} can't be reached: {str(error) or type(error).__name__}."
    return Failed({"detail": detail, "code": "unreachable"}, Exit.UNREACHABLE)


def open_api(url: str | None, key: str | None, *, create: bool = False) -> Api:
    """The API of the server at ``url``; without one, of the database of the settings, which ``create`` may make.

    Raises:
        Failed: there is no database (exit code 3).
        Invalid: the settings can't be used.
        UnusableDatabase: the database can't be.
    """
    return _remote(url, key) if url else _in_process(create=create)


def place_of(url: str) -> str:
    """The address of a server as it was written, without what stands after it.

    Raises:
        Failed: it is none.
    """
    place = url.rstrip("/").removesuffix("/v1")
    if not place.startswith(("http://", "https://")):
        raise Failed(f'"{url}" is no address of a server. Write it as http://127.0.0.1:8420.', Exit.USAGE)
    return place


def _remote(url: str, key: str | None) -> Api:
    place = place_of(url)
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def nothing() -> None:
        return

    # Certificates are read where there is one to judge; to read them takes as long as the answer of a server.
    client = httpx2.AsyncClient(
        base_url=place, headers=headers, timeout=TIMEOUT, verify=place.startswith("https://")
    )
    return Api(asyncio.Runner(), client, nothing, place=place, local=False)


def _in_process(*, create: bool) -> Api:
    from gnomon.adapters import logs
    from gnomon.settings import load

    settings = load()
    logs.configure(level="error", as_json=False)
    if not create:
        require_database(settings)
    return in_process(settings)


def require_database(settings: "Settings") -> None:
    """Go on where there is a database.

    Raises:
        Failed: there is none (exit code 3).
    """
    if not _is_made(settings):
        detail = (
            f"There is no database at {settings.database_place}. `gnomon up` starts one, `gnomon migrate` makes one; "
            "a server elsewhere is named with --url or GNOMON_URL."
        )
        raise Failed({"detail": detail, "code": "no_database"}, Exit.UNREACHABLE)


def _is_made(settings: "Settings") -> bool:
    if not settings.is_postgres:
        return settings.database_path.exists()
    from gnomon.wiring import is_made

    return asyncio.run(is_made(settings))


def in_process(settings: "Settings") -> Api:
    """The API over the database of these settings, which is made where it is missing; nothing is fired or worked on."""
    from gnomon.wiring import open_center

    token = operator_token(settings)
    runner = asyncio.Runner()
    try:
        center = runner.run(
            open_center(settings, dispatch=False, work=False, operator_token=token, whole=False)
        )
    except BaseException:
        runner.close()
        raise
    client = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(center.app),
        base_url=LOCAL,
        headers={"Authorization": f"Bearer {token}"},
        timeout=TIMEOUT,
        trust_env=False,
    )
    return Api(runner, client, center.stop, place=settings.database_place, local=True)


def operator_token(settings: "Settings") -> str:
    """What the app in this process takes for the operator; no server ever accepts it.

    The same for each command on one database, because a request's Idempotency-Key holds for one bearer (IDM-2).
    """
    place = settings.database_place if settings.is_postgres else str(settings.database_path.resolve())
    return hashlib.blake2b(place.encode(), person=b"gnomon-operator").hexdigest()


async def _awaited(step: Callable[[], Awaitable[None]]) -> None:
    await step()


def _body(answer: httpx2.Response) -> Any:
    return answer.json() if answer.content else {}
