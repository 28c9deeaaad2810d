"""What PostgreSQL can do to a running product: each state is told on /readyz, nothing is lost, all heals by itself.

Issue 3, "Bad input"; OPS-1, OPS-5a; casebook dbl-22.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.postgres_life import PASSWORD, USER, Life, a_life, ask, product_on, readiness
from support.processes import RECORDER, heard, until
from support.product import Running

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
SUPERUSER_SLOTS = {"max_connections": "20"}


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with a_life(tmp_path_factory.mktemp("postgres"), **SUPERUSER_SLOTS) as made:
        yield made


def a_run(product: Running) -> str:
    """A schedule's run, queued now."""
    status, schedule = product.ask(
        "/v1/schedules",
        method="POST",
        body={
            "name": "far off",
            "target": {"kind": "agent", "id": "recorder"},
            "cadence": {"unit": "day", "at": "00:00"},
            "query": "0",
        },
    )
    assert status == 201, schedule
    status, run = product.ask(f"/v1/schedules/{schedule['id']}/run", method="POST", body={})
    assert status == 202, run
    return str(run["id"])


def an_agent(product: Running, folder: Path) -> None:
    (folder / "recorder.py").write_text(RECORDER)
    status, body = product.ask(
        "/v1/agents",
        method="POST",
        body={
            "slug": "recorder",
            "name": "recorder",
            "runtime": {"kind": "python", "path": "recorder:hear"},
        },
    )
    assert status == 201, body


def ends(url: str) -> dict[str, int]:
    return {str(row[0]): row[1] for row in ask(url, "SELECT status, count(*) FROM gnomon.runs GROUP BY 1")}


def is_well(product: Running) -> bool:
    return readiness(product)[0] == 200


def told(product: Running, words: str) -> Callable[[], bool]:
    def look() -> bool:
        status, sick = readiness(product)
        return status == 503 and words in sick.get("database", "")

    return look


def check_quiet(product: Running) -> None:
    """It never ended, nothing in its log is a bug, and no line of it has the password."""
    assert product.process.poll() is None
    check_log(product)


def check_log(product: Running) -> None:
    """Nothing in it is a bug, and no line of it has the password."""
    log = "".join(product.err)
    assert "Traceback" not in log
    assert '"level": "critical"' not in log
    assert PASSWORD not in log


def spoil_credentials(life: Life) -> None:
    life.do(f"ALTER ROLE {USER} PASSWORD 'another'")
    life.cut()


def mend_credentials(life: Life) -> None:
    life.do(f"ALTER ROLE {USER} PASSWORD '{PASSWORD}'")


def take_connections(life: Life) -> None:
    life.do(f"ALTER ROLE {USER} CONNECTION LIMIT 0")
    life.cut()


def give_connections(life: Life) -> None:
    life.do(f"ALTER ROLE {USER} CONNECTION LIMIT -1")


def stop_server(life: Life) -> None:
    life.server.stop()


def start_server(life: Life) -> None:
    life.server.start()


@dataclass(frozen=True)
class Trouble:
    """What is done to the database, how it is undone, and what /readyz says in between."""

    name: str
    spoil: Callable[[Life], None]
    mend: Callable[[Life], None]
    words: str


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble("credentials", spoil_credentials, mend_credentials, "refuses the user or the password"),
        Trouble("connections", take_connections, give_connections, "takes no more connections"),
        Trouble("gone", stop_server, start_server, "can't be reached"),
    ],
    ids=lambda trouble: trouble.name,
)
def test_a_database_that_fails_for_a_while_is_told_and_taken_up_again(
    life: Life, tmp_path: Path, trouble: Trouble
) -> None:
    """OPS-1. pg-13, pg-15: not ready while it is away, ready by itself; and the log is not full of it."""
    url = life.database(f"for_{trouble.name}")
    with product_on(url, tmp_path) as product:
        an_agent(product, tmp_path)
        before = a_run(product)
        until(lambda: [call["run"] for call in heard(tmp_path)] == [before], "the first run")
        trouble.spoil(life)
        try:
            until(told(product, trouble.words), f"told on /readyz: {trouble.words}", 20)
            status, problem = product.ask("/v1/agents")
            assert status == 503
            assert problem["code"] != "internal"
            check_quiet(product)
        finally:
            trouble.mend(life)
        until(lambda: is_well(product), "well again by itself", 20)
        after = a_run(product)
        until(lambda: [call["run"] for call in heard(tmp_path)] == [before, after], "the next run")
        until(lambda: ends(url) == {"succeeded": 2}, "both ends written, the one that had to wait too")
        check_quiet(product)
        warned = Counter(json.loads(line)["event"] for line in product.err if '"level": "warning"' in line)
        assert max(warned.values(), default=0) <= 3, "not each of its tries is told"
        assert product.stop() == 0


def test_sessions_that_are_ended_are_opened_again_without_a_word_to_anybody(
    life: Life, tmp_path: Path
) -> None:
    """Each request and each run goes on, on connections of its own making."""
    url = life.database("for_cuts")
    with product_on(url, tmp_path) as product:
        an_agent(product, tmp_path)
        runs = []
        for _ in range(5):
            assert life.cut() > 0
            runs.append(a_run(product))
            until(lambda: {call["run"] for call in heard(tmp_path)} == set(runs), "the run")
        check_quiet(product)
        assert product.stop() == 0
    assert ends(url) == {"succeeded": 5}


def test_a_stop_ends_in_its_grace_while_the_server_is_away(life: Life, tmp_path: Path) -> None:
    """DSP-10. pg-13."""
    with product_on(life.database("for_a_stop"), tmp_path) as product:
        life.server.stop()
        try:
            until(told(product, "can't be reached"), "told on /readyz", 20)
            product.stop()
            check_log(product)
        finally:
            life.server.start()


def test_a_server_that_is_killed_loses_nothing_that_was_acknowledged(life: Life, tmp_path: Path) -> None:
    """DSP-5, RUN-9: a crash of the database in the middle of runs."""
    url = life.database("for_a_crash")
    with product_on(url, tmp_path) as product:
        an_agent(product, tmp_path)
        runs = [a_run(product) for _ in range(20)]
        life.server.stop(at_once=True)
        life.server.start()
        until(lambda: is_well(product), "well again by itself", 20)
        until(
            lambda: ask(url, "SELECT count(*) FROM gnomon.runs WHERE finished_at IS NOT NULL") == [(20,)],
            "every run ended",
        )
        check_quiet(product)
        assert product.stop() == 0
    calls = [call["run"] for call in heard(tmp_path)]
    assert sorted(calls) == sorted(set(calls)), "none was called twice"
    assert set(runs) == {row[0] for row in ask(url, "SELECT id FROM gnomon.runs")}


def test_a_newer_version_that_migrates_under_it_is_told(life: Life, tmp_path: Path) -> None:
    """OPS-3: it goes on as far as it can, and says what it needs."""
    url = life.database("for_a_newer")
    with product_on(url, tmp_path) as product:
        ask(
            url,
            "INSERT INTO gnomon.migrations (number, name, checksum, applied_at) VALUES (9999, 'x', 'x', 0)",
        )
        until(told(product, "another version of Gnomon has migrated it"), "told on /readyz")
        ask(url, "DELETE FROM gnomon.migrations WHERE number = 9999")
        until(lambda: is_well(product), "well again")
        assert product.stop() == 0
