"""Starts on PostgreSQL that can't be, and those that have to wait: one message, exit 1, nothing changed (OPS-1, OPS-3)."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import asyncpg
import pytest

from support.postgres_life import PASSWORD, QUICK, Life, a_life, ask, product_on, readiness
from support.processes import until
from support.product import gnomon, running

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with a_life(tmp_path_factory.mktemp("postgres")) as made:
        yield made


NEWER = "INSERT INTO gnomon.migrations (number, name, checksum, applied_at) VALUES (9999, 'x', 'x', 0)"
DIFFERS = "UPDATE gnomon.migrations SET checksum = 'x' WHERE number = 1"
OTHERS = "CREATE SCHEMA gnomon; CREATE TABLE gnomon.theirs (x int)"


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("newer", NEWER, "at migration 9999"),
        ("differs", DIFFERS, "with another text"),
        ("half", "DROP TABLE gnomon.audit CASCADE", "incomplete: audit"),
        ("theirs", OTHERS, "belongs to another program"),
    ],
)
def test_a_schema_that_can_not_be_used_is_refused_and_left_alone(
    life: Life, tmp_path: Path, name: str, spoil: str, words: str
) -> None:
    url = life.database(name)
    if name != "theirs":
        assert gnomon("migrate", cwd=tmp_path, GNOMON_DATABASE_URL=url).returncode == 0
    life_sql(url, spoil)
    look = "SELECT relname FROM pg_class WHERE relnamespace = 'gnomon'::regnamespace ORDER BY relname"
    before = ask(url, look)
    for command in (("up", "--port", "0"), ("migrate",)):
        found = gnomon(*command, cwd=tmp_path, GNOMON_DATABASE_URL=url)
        assert (found.returncode, found.stdout) == (1, ""), command
        assert words in found.stderr, command
        assert found.stderr.startswith("Error: ")
        assert PASSWORD not in found.stderr
    assert ask(url, look) == before


def life_sql(url: str, sql: str) -> None:
    async def work() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(sql)
        await connection.close()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("login", "place", "words"),
    [
        ("operator:a-wr0ng-word", None, "refuses the user or the password"),
        (f"operator:{PASSWORD}", "/nothing", "does not exist"),
        (f"operator:{PASSWORD}", "127.0.0.1:1/gnomon", "can't be reached"),
    ],
)
def test_a_server_that_does_not_let_us_in_is_one_message(
    life: Life, tmp_path: Path, login: str, place: str | None, words: str
) -> None:
    host, _, name = life.server.url.rpartition("@")[2].partition("/")
    place = f"{host}/{name}" if place is None else f"{host}{place}" if place[0] == "/" else place
    url = f"postgresql://{login}@{place}"
    for command, codes in ((("up", "--port", "0"), {1}), (("schedules", "list"), {1, 3})):
        found = gnomon(*command, cwd=tmp_path, GNOMON_DATABASE_URL=url)
        assert found.returncode in codes, found
        assert found.stdout == ""
        assert words in found.stderr
        assert found.stderr.count("\n") <= 3
        assert PASSWORD not in found.stderr
        assert "wr0ng" not in found.stderr
        assert "Traceback" not in found.stderr


def test_a_schema_that_another_process_is_migrating_is_waited_for(life: Life, tmp_path: Path) -> None:
    url = life.database("migrating")

    async def hold() -> None:
        other = await asyncpg.connect(url)
        await other.execute("BEGIN")
        await other.execute("SELECT pg_advisory_xact_lock(hashtextextended('gnomon ' || 'gnomon', 0))")
        settings = {**QUICK, "GNOMON_DATABASE_URL": url}
        with running("up", "--port", "0", "--json", cwd=tmp_path, **settings) as product:
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            await asyncio.to_thread(
                until, lambda: ask(life.server.url, waiting) == [(1,)], "it waits for the other"
            )
            assert product.process.poll() is None
            assert product.out == []
            await other.execute("COMMIT")
            await asyncio.to_thread(product.wait_for_start)
            assert readiness(product)[0] == 200
            assert product.stop() == 0
        await other.close()

    asyncio.run(hold())


def test_four_processes_that_start_at_once_on_nothing_make_one_database(life: Life, tmp_path: Path) -> None:
    url = life.database("together")
    settings = {**QUICK, "GNOMON_DATABASE_URL": url}
    with ExitStack() as stack:
        started = [
            stack.enter_context(running("up", "--port", "0", "--json", cwd=tmp_path, **settings))
            for _ in range(4)
        ]
        for product in started:
            product.wait_for_start()
        assert [product.started["key"] for product in started if product.started["key"]]
        assert ask(url, "SELECT count(*) = count(DISTINCT number) FROM gnomon.migrations") == [(True,)]
        assert ask(url, "SELECT count(*) FROM gnomon.processes") == [(4,)]
        for product in started:
            assert product.stop() == 0


def test_commands_work_on_the_schema_that_is_named_and_on_no_other(life: Life, tmp_path: Path) -> None:
    """CONTRACT, CLI: on either engine, with and without a server."""
    url = life.database("commands")
    one, two = f"{url}?schema=one", f"{url}?schema=two"
    missing = gnomon("schedules", "list", cwd=tmp_path, GNOMON_DATABASE_URL=one)
    assert missing.returncode == 3
    assert "There is no database at postgresql://operator@" in missing.stderr
    assert PASSWORD not in missing.stderr
    assert ask(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'one'") == [(0,)], (
        "a look makes nothing"
    )
    key = gnomon("keys", "create", "--scope", "*", "--json", cwd=tmp_path, GNOMON_DATABASE_URL=one)
    assert key.returncode == 0, key.stderr
    again = gnomon("migrate", cwd=tmp_path, GNOMON_DATABASE_URL=one)
    assert "is up to date.\n" in again.stdout
    assert PASSWORD not in again.stdout
    listed = gnomon("keys", "list", "--json", cwd=tmp_path, GNOMON_DATABASE_URL=one)
    assert '"scopes": ["*"]' in " ".join(listed.stdout.split()).replace("[ ", "[").replace(" ]", "]")
    assert gnomon("migrate", cwd=tmp_path, GNOMON_DATABASE_URL=two).returncode == 0
    none = gnomon("keys", "list", cwd=tmp_path, GNOMON_DATABASE_URL=two)
    assert none.stderr.startswith("There are no keys")
    shown = gnomon("settings", cwd=tmp_path, GNOMON_DATABASE_URL=one)
    assert "?schema=one" in shown.stdout
    assert PASSWORD not in shown.stdout


def test_settings_and_errors_over_http_have_no_password(life: Life, tmp_path: Path) -> None:
    with product_on(life.database("shown"), tmp_path) as product:
        status, body = product.ask("/v1/settings")
        assert status == 200
        assert "postgresql://operator@127.0.0.1" in str(body)
        assert PASSWORD not in str(body)
        assert product.stop() == 0
        assert PASSWORD not in "".join(product.out + product.err)
