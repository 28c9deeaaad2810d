"""Where the http runtime connects and where it follows: the address checked is the address used (TGT-4)."""

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import httpcore2
import pytest

from gnomon.domain.agent import HttpRuntime
from gnomon.domain.invocation import Deferred, Failing, Result, TargetFailure
from gnomon.runtimes import addresses, connecting
from gnomon.runtimes.http import HttpTargets
from gnomon.testing.clock import FrozenClock
from support.targets import Heard, an_invocation, says, serving

NOW = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


class Names:
    """A resolver that answers from a table; a list of lists gives another answer each time (rebinding)."""

    def __init__(self, **table: Sequence[Sequence[str]]) -> None:
        self.table = {
            name.replace("_", "."): [list(answer) for answer in answers] for name, answers in table.items()
        }
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.table.get(host)
        if answers is None:
            raise OSError(-2, "Name or service not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]


async def ask(
    url: str,
    names: Callable[[str, int], Awaitable[Sequence[str]]],
    *,
    allow: bool = False,
    headers: dict[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    connect_seconds: float = 5.0,
) -> Result | Deferred:
    targets = HttpTargets(
        FrozenClock(NOW), allow_private=allow, resolve=names, tls=tls, connect_seconds=connect_seconds
    )
    try:
        return await targets.invoke(HttpRuntime(url, headers or {}), None, an_invocation(), Heard())
    finally:
        await targets.close()


async def refused(
    url: str, names: Callable[[str, int], Awaitable[Sequence[str]]], *, allow: bool = False
) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        await ask(url, names, allow=allow)
    assert not caught.value.retryable
    return caught.value


def test_a_public_name_with_a_private_address_is_refused_and_nothing_is_sent_tgt_4() -> None:
    async def scenario() -> None:
        async with serving(says("200 OK")) as server:
            names = Names(hook_example=[["127.0.0.1"]])
            failure = await refused(f"http://hook.example:{server.port}/", names)
            assert failure.code is Failing.ADDRESS_REFUSED
            assert "hook.example leads to 127.0.0.1, a loopback address" in failure.message
            assert server.connections == 0

    asyncio.run(scenario())


def test_one_private_address_among_public_ones_is_enough_tgt_4() -> None:
    async def scenario() -> None:
        for other in ("10.0.0.1", "::1", "::ffff:169.254.169.254", "64:ff9b::7f00:1"):
            failure = await refused("http://hook.example/", Names(hook_example=[["1.1.1.1", other]]))
            assert failure.code is Failing.ADDRESS_REFUSED
            assert other in failure.message

    asyncio.run(scenario())


def test_the_address_checked_is_the_address_used_tgt_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """Casebook ssr-02, rebinding: a name is resolved once for each connection, and what was judged is what is dialled."""
    dialled: list[str] = []

    class Dialled:
        async def connect_tcp(self, host: str, port: int, *_: object) -> object:
            dialled.append(host)
            raise httpcore2.ConnectError("refused")

    monkeypatch.setattr(httpcore2, "AnyIOBackend", Dialled)

    async def scenario() -> None:
        names = Names(hook_example=[["1.1.1.1", "1.0.0.1"], ["127.0.0.1"]])
        with pytest.raises(TargetFailure) as caught:
            await ask("http://hook.example/", names)
        assert caught.value.code is Failing.UNREACHABLE
        assert dialled == ["1.1.1.1", "1.0.0.1"]
        assert names.asked == ["hook.example"]
        failure = await refused("http://hook.example/", names)
        assert failure.code is Failing.ADDRESS_REFUSED
        assert len(dialled) == 2

    asyncio.run(scenario())


def test_the_next_address_is_tried_and_the_host_header_keeps_the_name_tgt_4() -> None:
    async def scenario() -> None:
        async with serving(says("200 OK", b"yes")) as server:
            names = Names(hook_example=[["127.0.0.2", "127.0.0.1"]])
            url = f"http://hook.example:{server.port}/"
            assert await ask(url, names, allow=True) == Result("yes")
            assert server.requests[0].headers["host"] == f"hook.example:{server.port}"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:80/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "http://user@example.com/",
        "http://2130706433/",
    ],
)
def test_a_saved_url_is_judged_again_at_every_send_tgt_4(url: str) -> None:
    failure = asyncio.run(refused(url, Names()))
    assert failure.code is Failing.ADDRESS_REFUSED
    assert "is refused" in failure.message


def test_metadata_is_refused_even_where_private_targets_are_allowed_tgt_4() -> None:
    failure = asyncio.run(
        refused("http://hook.example/", Names(hook_example=[["169.254.169.254"]]), allow=True)
    )
    assert failure.code is Failing.ADDRESS_REFUSED
    assert "metadata" in failure.message


def test_names_that_can_not_be_resolved_are_tried_again() -> None:
    async def endless(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async def empty(host: str, port: int) -> Sequence[str]:
        return []

    async def scenario() -> None:
        for names, said in (
            (Names(), "can't be resolved"),
            (endless, "not resolved in"),
            (empty, "no address"),
        ):
            with pytest.raises(TargetFailure) as caught:
                await ask("http://hook.example/", names, connect_seconds=0.05)
            assert caught.value.code is Failing.UNREACHABLE
            assert caught.value.retryable
            assert said in caught.value.message

    asyncio.run(scenario())


def test_the_machines_own_resolver() -> None:
    async def scenario() -> None:
        resolver = connecting.SystemResolver()
        assert "127.0.0.1" in await resolver("127.0.0.1", 80)
        with pytest.raises(OSError):
            await resolver("no-such-name.invalid", 80)
        resolver.close()

    asyncio.run(scenario())


def moved(status: str, location: str) -> bytes:
    return says(status, Location=location)


def test_307_and_308_are_followed_with_the_body_and_checked_again_tgt_4() -> None:
    async def scenario() -> None:
        async with serving(
            moved("307 Temporary Redirect", "/there"),
            moved("308 Permanent Redirect", "there/again"),
            says("200 OK", b"ok"),
        ) as server:
            names = Names(hook_example=[["127.0.0.1"]])
            url = f"http://hook.example:{server.port}/here"
            assert await ask(url, names, allow=True, headers={"X-A": "b"}) == Result("ok")
            assert [r.line.split()[1] for r in server.requests] == ["/here", "/there", "/there/again"]
            assert len({r.body for r in server.requests}) == 1
            assert all(r.headers["x-a"] == "b" for r in server.requests)
            assert names.asked == ["hook.example"] * 3

    asyncio.run(scenario())


def test_a_users_headers_stay_behind_when_the_origin_changes_tgt_4() -> None:
    async def scenario() -> None:
        async with serving(says("200 OK", b"other")) as other:
            onward = moved("307 Temporary Redirect", f"http://other.example:{other.port}/")
            async with serving(onward) as server:
                names = Names(hook_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
                url = f"http://hook.example:{server.port}/"
                await ask(url, names, allow=True, headers={"Authorization": "Bearer s3cret"})
                assert server.requests[0].headers["authorization"] == "Bearer s3cret"
                assert "authorization" not in other.requests[0].headers
                assert other.requests[0].headers["idempotency-key"] == "idem-1"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("http://10.0.0.1/", Failing.ADDRESS_REFUSED),
        ("http://169.254.169.254/latest/", Failing.ADDRESS_REFUSED),
        ("http://[::1]/", Failing.ADDRESS_REFUSED),
        ("http://localhost/", Failing.ADDRESS_REFUSED),
        ("//127.0.0.1/", Failing.ADDRESS_REFUSED),
        ("http://inside.example/", Failing.ADDRESS_REFUSED),
        ("file:///etc/passwd", Failing.ADDRESS_REFUSED),
        ("gopher://hook.example/", Failing.ADDRESS_REFUSED),
        ("http://user@hook.example/", Failing.ADDRESS_REFUSED),
        ("http://hook.example\\@10.0.0.1/", Failing.ADDRESS_REFUSED),
        ("http://[::g]/", Failing.REDIRECTED),
        ("", Failing.REDIRECTED),
    ],
)
def test_a_redirect_to_where_nothing_may_go_is_not_followed_tgt_4(
    location: str, code: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first address is let through here, so that the second one is judged as any other."""
    real = addresses.refusal

    def lenient(address: str, *, allow_private: bool) -> str | None:
        return None if address == "127.0.0.1" else real(address, allow_private=allow_private)

    monkeypatch.setattr(connecting, "refusal", lenient)

    async def scenario() -> None:
        async with serving(moved("307 Temporary Redirect", location)) as server:
            names = Names(hook_example=[["127.0.0.1"]], inside_example=[["192.168.0.1"]])
            failure = await refused(f"http://hook.example:{server.port}/", names)
            assert failure.code is code, failure.message
            assert len(server.requests) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other"])
def test_a_redirect_that_would_turn_the_post_into_a_get_is_not_followed(status: str) -> None:
    async def scenario() -> None:
        async with serving(moved(status, "/there")) as server:
            failure = await refused(server.url, Names(), allow=True)
            assert failure.code is Failing.REDIRECTED
            assert status[:3] in failure.message

    asyncio.run(scenario())


def test_thirty_hops_are_too_many_tgt_4() -> None:
    async def scenario() -> None:
        async with serving(moved("308 Permanent Redirect", "/again")) as server:
            failure = await refused(server.url, Names(), allow=True)
            assert failure.code is Failing.REDIRECTED
            assert "more than 3 times" in failure.message
            assert len(server.requests) == 4

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for hook.example, signed by itself."""
    place = tmp_path_factory.mktemp("tls")
    cert, key = place / "cert.pem", place / "key.pem"
    options = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=hook.example"
    name = "subjectAltName=DNS:hook.example"
    subprocess.run(
        ["openssl", "req", *options.split(), "-addext", name, "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    return cert, key


def tls_pair(certificate: tuple[Path, Path], heard: list[str]) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    cert, key = certificate
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    server.sni_callback = lambda _, name, __: heard.append(str(name))
    return server, ssl.create_default_context(cafile=str(cert))


def test_over_tls_the_name_is_what_is_asked_for_and_checked_tgt_4(certificate: tuple[Path, Path]) -> None:
    async def scenario() -> None:
        heard: list[str] = []
        server_tls, client_tls = tls_pair(certificate, heard)
        async with serving(says("200 OK", b"safe"), tls=server_tls) as server:
            names = Names(hook_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
            url = f"https://hook.example:{server.port}/"
            assert await ask(url, names, allow=True, tls=client_tls) == Result("safe")
            assert heard == ["hook.example"]
            with pytest.raises(TargetFailure) as caught:
                await ask(f"https://other.example:{server.port}/", names, allow=True, tls=client_tls)
            assert caught.value.code is Failing.UNREACHABLE
            assert "certificate" in caught.value.message.lower()

    asyncio.run(scenario())


def test_a_redirect_from_https_to_http_is_not_followed_tgt_4(certificate: tuple[Path, Path]) -> None:
    async def scenario() -> None:
        server_tls, client_tls = tls_pair(certificate, [])
        async with serving(moved("307 Temporary Redirect", "http://hook.example/"), tls=server_tls) as server:
            names = Names(hook_example=[["127.0.0.1"]])
            with pytest.raises(TargetFailure) as caught:
                await ask(f"https://hook.example:{server.port}/", names, allow=True, tls=client_tls)
            assert caught.value.code is Failing.REDIRECTED
            assert "https to http" in caught.value.message

    asyncio.run(scenario())
