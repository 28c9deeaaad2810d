"""``gnomon up`` on PostgreSQL: its own server, from nothing to a run; and two processes on one schema (CONTRACT, CLI)."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.postgres_field import a_field, all_ended
from support.postgres_life import QUICK, Life, a_life, ask, product_on
from support.processes import heard, until
from support.product import Running, gnomon, running, up

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
FIELD = 500


def test_up_brings_a_server_fires_the_demo_and_takes_it_down_again(tmp_path: Path) -> None:
    with up(tmp_path, "--postgres", "--demo", **QUICK) as product:
        place = product.started["database"]
        word = (tmp_path / "gnomon-postgres" / "password").read_text().strip().rpartition(":")[2]
        assert place.startswith("postgresql://gnomon@127.0.0.1:")
        assert product.ask("/readyz")[0] == 200
        until(lambda: _ended(product) >= 2, "the demo's first runs")
        listed = gnomon("schedules", "list", "--json", cwd=tmp_path, GNOMON_DATABASE_URL=place)
        assert listed.returncode == 0, listed.stderr
        assert "Demo: every five minutes" in listed.stdout
        status, settings = product.ask("/v1/settings")
        [url] = [item for item in settings["items"] if item["name"] == "database_url"]
        assert (status, url["origin"], url["value"]) == (200, "--postgres", place)
        key = product.started["key"]
        assert product.stop(signal.SIGINT) == 0
        assert word not in "".join(product.out + product.err)
    refused = gnomon("schedules", "list", cwd=tmp_path, GNOMON_DATABASE_URL=place)
    assert refused.returncode == 3, "the server ended with it"
    with up(tmp_path, "--postgres", **QUICK) as product:
        assert product.started["database"] == place, "an address that was noted stays true"
        product.started["key"] = key
        assert len(product.ask("/v1/schedules")[1]["items"]) == 3
        product.process.kill()
        product.wait()
    with up(tmp_path, "--postgres", **QUICK) as product:
        product.started["key"] = key
        assert len(product.ask("/v1/schedules")[1]["items"]) == 3
        assert product.stop() == 0


def _ended(product: Running) -> int:
    items = product.ask("/v1/runs")[1]["items"]
    return Counter(run["status"] for run in items)["succeeded"]


def test_its_own_server_and_another_database_are_one_too_many(tmp_path: Path) -> None:
    words = ("up", "--postgres", "--database-url", "sqlite:///gnomon.db")
    found = gnomon(*words, cwd=tmp_path)
    assert (found.returncode, found.stdout) == (2, "")
    assert "Choose one of them" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_second_up_in_the_same_folder_is_refused_and_the_first_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with up(tmp_path, "--postgres", **QUICK) as product:
        second = gnomon("up", "--postgres", "--port", "0", cwd=tmp_path)
        assert second.returncode == 1
        assert "already" in second.stderr
        assert second.stderr.count("\n") <= 3
        assert product.ask("/readyz")[0] == 200
        assert product.stop() == 0


def test_the_start_tells_people_the_address_that_other_commands_need(tmp_path: Path) -> None:
    with running("up", "--postgres", "--port", "0", cwd=tmp_path, **QUICK) as product:
        text = product.said_until("Ctrl-C")
        assert product.stop() == 0
    assert "on PostgreSQL." in text
    assert "    export GNOMON_DATABASE_URL='postgresql://gnomon@127.0.0.1:" in text
    assert "?passfile=" in text


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with a_life(tmp_path_factory.mktemp("postgres")) as made:
        yield made


def test_two_processes_on_one_schema_one_of_them_killed_record_each_slot_once(
    life: Life, tmp_path: Path
) -> None:
    """DSP-3, DSP-5, RUN-3: 500 slots due at once; no slot without its record, none with two, no key called twice."""
    url = life.database("field")
    a_field(url, tmp_path, FIELD, query="0.02")
    with product_on(url, tmp_path) as first, product_on(url, tmp_path) as second:
        until(lambda: len(heard(tmp_path)) >= 60, "calls", 60)
        victim, other = (
            (first, second) if heard(tmp_path)[-1]["pid"] == first.process.pid else (second, first)
        )
        victim.process.kill()
        victim.wait()
        until(lambda: all_ended(url, FIELD), "every run ended", 90)
        assert other.stop() == 0
    slots = "SELECT count(*), count(DISTINCT schedule_id), count(*) FILTER (WHERE disposition = 'fired') FROM gnomon.occurrences"
    assert ask(url, slots) == [(FIELD, FIELD, FIELD)]
    calls = Counter(call["key"] for call in heard(tmp_path))
    assert {key for key, times in calls.items() if times > 1} == set()
    statuses = dict(ask(url, "SELECT status, count(*) FROM gnomon.runs GROUP BY status"))
    assert set(statuses) <= {"succeeded", "lost"}
    had = 100 + 100  # at work, and as many whose end was being written
    assert statuses["succeeded"] >= FIELD - had, "no more than what the killed one had in work"
    assert ask(url, "SELECT count(*) FROM gnomon.runs WHERE finished_at IS NULL") == [(0,)]
    found = gnomon("verify", "--json", cwd=tmp_path, GNOMON_DATABASE_URL=url)
    assert found.returncode == 0, found.stdout + found.stderr
    assert json.loads(found.stdout)
