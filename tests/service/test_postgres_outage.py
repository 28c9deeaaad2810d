"""PostgreSQL goes, comes back, refuses, or falls silent: it is said in words, nothing is lost, and work goes on (OPS-1)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

import anyio
import anyio.lowlevel
import asyncpg
import pytest

from gnomon.domain.audit import Action
from gnomon.domain.errors import Unavailable, UnusableDatabase
from gnomon.stores import audit, processes, runs
from gnomon.stores.audit import new_entry
from gnomon.stores.database import Tx
from gnomon.stores.postgres import connection
from gnomon.stores.postgres.address import Address
from gnomon.stores.postgres.failures import CommitUnknown
from gnomon.testing.clock import FrozenClock
from support.chaos_proxy import FaultProxy, Mode
from support.postgres import FrozenPostgres, execute, open_empty
from support.rows import add_run
from support.rows import execute as rows

pytestmark = pytest.mark.anyio
KILL_OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL"


@pytest.fixture
async def store(postgres_address: Address, clock: FrozenClock) -> AsyncIterator[FrozenPostgres]:
    opened = await open_empty(postgres_address, clock)
    yield opened
    await opened.close()


@pytest.fixture
async def root(postgres_address: Address) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    raw = await asyncpg.connect(postgres_address.dsn)
    yield raw
    await raw.close()


@pytest.fixture
def proxy(postgres_address: Address) -> Iterator[FaultProxy]:
    parts = urlsplit(postgres_address.dsn)
    with FaultProxy(parts.hostname or "", parts.port or 0) as standing_between:
        yield standing_between


@pytest.fixture
async def behind(
    store: FrozenPostgres, proxy: FaultProxy, clock: FrozenClock
) -> AsyncIterator[FrozenPostgres]:
    """The same database, over the proxy."""
    parts = urlsplit(store.address.dsn)
    login = parts.netloc.rpartition("@")[0]
    dsn = urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{proxy.port}"))
    opened = FrozenPostgres(replace(store.address, dsn=dsn), clock)
    yield opened
    await opened.close()


async def start(tx: Tx, name: str = "prc_1") -> None:
    await processes.start(tx, name, "host", 1, "0", "zone")


async def started(store: FrozenPostgres) -> list[str]:
    return [row["id"] for row in await rows(store, "SELECT id FROM processes ORDER BY id")]


async def in_time(store: FrozenPostgres, wanted: list[str]) -> list[str]:
    """What has started, as soon as it is ``wanted``: a server that lost its client may still be at its last commit."""
    found: list[str] = []
    with anyio.move_on_after(30):
        while (found := await started(store)) != wanted:
            await anyio.lowlevel.checkpoint()
    return found


async def test_a_line_that_died_while_nobody_spoke_is_made_anew(
    store: FrozenPostgres, root: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    """A server that was restarted costs no failure where it is back by then."""
    await asyncio.gather(*(store.read(processes.now) for _ in range(4)))
    await root.fetch(KILL_OTHERS)
    await store.write(start)
    assert await started(store) == ["prc_1"]


async def test_a_session_killed_in_the_middle_writes_nothing_and_the_next_write_lands(
    store: FrozenPostgres, root: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    async def is_killed(tx: Tx) -> None:
        await start(tx)
        await root.fetch(KILL_OTHERS)
        await start(tx, "prc_2")

    with pytest.raises(Unavailable) as caught:
        await store.write(is_killed)
    assert caught.value.code == "gone"
    assert not isinstance(caught.value, CommitUnknown)
    await store.write(lambda tx: start(tx, "prc_3"))
    assert await started(store) == ["prc_3"]


async def test_a_commit_whose_answer_is_lost_is_neither_yes_nor_no(
    store: FrozenPostgres, behind: FrozenPostgres, proxy: FaultProxy
) -> None:
    """RUN-5a: whoever wrote it reads it back."""
    await behind.read(processes.now)
    proxy.turn(Mode.CUT)
    with pytest.raises(CommitUnknown) as caught:
        await behind.write(start)
    assert caught.value.code == "commit_unknown"
    proxy.turn(Mode.PASS)
    assert await in_time(store, ["prc_1"]) == ["prc_1"]
    await behind.write(lambda tx: start(tx, "prc_2"))


async def test_a_write_that_stood_alone_is_neither_yes_nor_no_when_its_answer_is_lost(
    behind: FrozenPostgres, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-5a: no COMMIT was under way, and still it may be written."""
    monkeypatch.setattr(connection, "STATEMENT_SECONDS", 0.5)
    entry = new_entry("ana", Action.WARN, "schedule", "sch_1")
    await behind.write_guarded(lambda tx: audit.append_many(tx, [entry]))
    proxy.turn(Mode.DEAF)
    with pytest.raises(CommitUnknown):
        await behind.write_guarded(lambda tx: audit.append_many(tx, [entry]))
    proxy.turn(Mode.PASS)


async def test_a_claim_whose_answer_is_lost_is_not_made_again(
    behind: FrozenPostgres, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-5a: it stands alone as well, and is asked for by its id."""
    monkeypatch.setattr(connection, "STATEMENT_SECONDS", 0.5)
    await behind.write_guarded(lambda tx: runs.claim(tx, "prc_mine", "clm_0", 1))
    for number in range(2):
        await add_run(behind, id=f"run_{number}", session_id=None, schedule_id=None)
    # the session has its instant, and the claim is what is sent
    monkeypatch.setattr(behind, "first", lambda: None)
    proxy.turn(Mode.DEAF)
    with pytest.raises(CommitUnknown):
        await behind.write_guarded(lambda tx: runs.claim(tx, "prc_mine", "clm_1", 1))
    proxy.turn(Mode.PASS)
    assert len(await behind.read(lambda tx: runs.under_claim(tx, "prc_mine", "clm_1"))) == 1


async def twice(tx: Tx) -> None:
    for _ in range(2):
        await runs.claim(tx, "prc_mine", "clm_1", 1)


async def test_nothing_follows_what_was_said_to_be_the_last(behind: FrozenPostgres) -> None:
    """DSP-5: it has been committed, so what came after it would not be all or nothing with it."""

    async def more(tx: Tx) -> None:
        await runs.claim(tx, "prc_mine", "clm_1", 1)
        await audit.append_many(tx, [new_entry("ana", Action.WARN, "schedule", "sch_1")])

    with pytest.raises(AssertionError, match="the last of its work"):
        await behind.write_guarded(more)
    with pytest.raises(AssertionError, match="the last of its work"):
        await behind.write_guarded(twice)


async def test_a_line_that_falls_silent_is_given_up(
    behind: FrozenPostgres, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STATEMENT_SECONDS", 0.1)
    await behind.read(processes.now)
    proxy.turn(Mode.DEAF)
    with pytest.raises(Unavailable) as caught:
        await behind.read(processes.now)
    assert caught.value.code == "timed_out"
    proxy.turn(Mode.PASS)
    await behind.write(start)


async def test_a_thread_s_own_line_ends_within_its_patience(
    behind: FrozenPostgres, proxy: FaultProxy
) -> None:
    """RUN-5: whoever renews must know in time that it did not; after that it goes on by itself."""
    direct = behind.direct(0.2)
    direct.write(start)
    proxy.turn(Mode.DEAF)
    with pytest.raises(CommitUnknown):
        direct.write(lambda tx: start(tx, "prc_2"))
    proxy.turn(Mode.PASS)
    direct.write(lambda tx: start(tx, "prc_3"))
    assert direct.changed_elsewhere() is False
    direct.close()
    assert await started(behind) == ["prc_1", "prc_3"]


async def test_a_thread_s_own_line_survives_a_restart(
    store: FrozenPostgres, root: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    direct = store.direct(5)
    direct.write(start)
    await root.fetch(KILL_OTHERS)
    direct.write(lambda tx: start(tx, "prc_2"))
    direct.close()
    assert await started(store) == ["prc_1", "prc_2"]


async def test_a_server_that_is_gone_is_asked_again_after_a_pause(
    postgres_address: Address, clock: FrozenClock, proxy: FaultProxy
) -> None:
    """Retry with backoff: until the pause is over, the answer is the last one, without a look."""
    parts = urlsplit(postgres_address.dsn)
    login = parts.netloc.rpartition("@")[0]
    nowhere = urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:1"))
    store = FrozenPostgres(replace(postgres_address, dsn=nowhere), clock)
    for _ in range(3):
        with pytest.raises(Unavailable) as caught:
            await store.read(processes.now)
        assert caught.value.code == "gone"
    store._pool._address = postgres_address
    with pytest.raises(Unavailable):
        await store.read(processes.now)
    clock.advance(2)
    await store.read(processes.now)
    await store.close()


@pytest.fixture
async def role(
    postgres_address: Address, root: "asyncpg.Connection[asyncpg.Record]"
) -> AsyncIterator[Address]:
    """An address by which a user of few rights comes in, password ``right``."""
    await root.execute(
        "CREATE ROLE worker LOGIN PASSWORD 'right'; "
        f"GRANT USAGE ON SCHEMA {postgres_address.schema} TO worker; "
        f"GRANT ALL ON ALL TABLES IN SCHEMA {postgres_address.schema} TO worker"
    )
    parts = urlsplit(postgres_address.dsn)
    place = parts.netloc.rpartition("@")[2]
    yield replace(postgres_address, dsn=urlunsplit(parts._replace(netloc=f"worker:right@{place}")))
    await root.execute("DROP OWNED BY worker; DROP ROLE worker")


@pytest.mark.parametrize(
    ("change", "back", "code"),
    [
        ("ALTER ROLE worker PASSWORD 'other'", "ALTER ROLE worker PASSWORD 'right'", "credentials"),
        ("ALTER ROLE worker NOLOGIN", "ALTER ROLE worker LOGIN", "credentials"),
        (
            "ALTER ROLE worker CONNECTION LIMIT 0",
            "ALTER ROLE worker CONNECTION LIMIT -1",
            "too_many_connections",
        ),
    ],
)
async def test_a_refusal_is_told_and_mends_by_itself(  # noqa: PLR0917 - fixtures and the columns of the table above
    role: Address,
    root: "asyncpg.Connection[asyncpg.Record]",
    clock: FrozenClock,
    change: str,
    back: str,
    code: str,
) -> None:
    """Credentials that stop working, a connection limit reached."""
    store = FrozenPostgres(role, clock)
    await store.read(processes.now)
    await root.execute(change)
    await root.fetch(KILL_OTHERS)
    with pytest.raises(Unavailable) as caught:
        await store.read(processes.now)
    assert caught.value.code == code
    await root.execute(back)
    clock.advance(2)
    await store.read(processes.now)
    await store.close()


async def test_a_standby_takes_no_writes_and_is_left(
    store: FrozenPostgres, root: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    await root.execute("ALTER SYSTEM SET default_transaction_read_only TO on")
    try:
        await root.fetch("SELECT pg_reload_conf()")
        await root.fetch(KILL_OTHERS)
        with pytest.raises(Unavailable) as caught:
            await store.write(start)
        assert caught.value.code == "read_only"
        assert store._pool._idle == []
    finally:
        await root.execute("ALTER SYSTEM RESET default_transaction_read_only")
        await root.fetch("SELECT pg_reload_conf()")
        await root.fetch(KILL_OTHERS)
    await store.write(start)


async def test_a_pooler_that_forgets_prepared_statements_is_survived(store: FrozenPostgres) -> None:
    """Once seen, none are prepared any more."""
    await store.write(start)
    for raw in store._pool._idle:
        await raw.execute("DEALLOCATE ALL")
    await store.write(lambda tx: start(tx, "prc_2"))
    assert await started(store) == ["prc_1", "prc_2"]
    await store.write(lambda tx: start(tx, "prc_3"))
    for raw in store._pool._idle:
        assert await raw.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE NOT from_sql") <= 1


async def test_a_wrong_address_is_not_tried_for_ever(clock: FrozenClock) -> None:
    store = FrozenPostgres(Address("postgresql://host:port/name"), clock)
    with pytest.raises(UnusableDatabase):
        await store.read(processes.now)
    await store.close()


async def test_two_threads_write_beside_the_loop(store: FrozenPostgres) -> None:
    """RUN-4: the renewal's line depends on no loop but its own."""

    def beat(name: str) -> None:
        direct = super(FrozenPostgres, store).direct(5)
        direct.write(lambda tx: execute_start(tx, name))
        direct.close()

    async def execute_start(tx: Tx, name: str) -> None:
        await start(tx, name)

    with ThreadPoolExecutor(2) as threads:
        done = [threads.submit(beat, f"prc_{number}") for number in range(2)]
        for one in done:
            one.result(10)
    assert await started(store) == ["prc_0", "prc_1"]
    assert await store.write(lambda tx: execute(tx, "SELECT 1 AS one", {})) == [{"one": 1}]
