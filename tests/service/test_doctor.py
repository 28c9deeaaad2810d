"""A doctor finds what could happen twice, not at all, or be lost, and says what to do (IDM-4)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from gnomon.cadence import zone_data_version
from gnomon.domain.finding import Finding, Kind
from gnomon.domain.instants import SECOND
from gnomon.services.doctor import KEY_ENDS_SECONDS, NAMED, Doctor
from gnomon.stores import doctor as store
from gnomon.stores.database import Database
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.testing.clock import FrozenClock
from support.rows import AT, PROCESS, SCHEDULE, add, add_many, add_process, add_schedule, execute

pytestmark = pytest.mark.anyio
RULE = '{"unit":"hour","every":1,"zone":"UTC"}'
KEYED = {"cadence": RULE, "dedup_key": "brief-{{now}}"}
JOB: Mapping[str, Any] = {
    **{name: SCHEDULE[name] for name in ("unit", "every", "anchor_at", "next_fire_at")},
    **{name: SCHEDULE[name] for name in ("created_at", "created_by", "updated_at", "updated_by")},
    "id": "job_" + "0" * 20,
    "cadence": RULE,
    "slug": "digest",
    "name": "Digest",
    "role": "pm",
    "payload": '{"repo": "core"}',
    "dedup_key": "{{job}}-{{payload.repo}}-{{hour}}",
    "enabled": 1,
    "version": 1,
}


@dataclass
class Practice:
    """A doctor over the test's database."""

    database: Database
    clock: FrozenClock

    async def look(self, *, settings: bool = False) -> list[Finding]:
        """What is found; of the database's ``settings`` only where asked for: the tests' own server may forget."""
        doctor = Doctor(
            database=self.database,
            clock=self.clock,
            heartbeat_timeout_seconds=120,
            zone_data=zone_data_version(),
            version="1",
        )
        found = await doctor.look()
        assert set(found.counts) == {finding.kind for finding in found.named}
        return [finding for finding in found.named if settings or finding.kind is not Kind.DATABASE_UNSAFE]

    async def kinds(self) -> list[Kind]:
        """The kinds of what is found."""
        return [finding.kind for finding in await self.look()]

    async def only(self) -> Finding:
        """The one thing to be found."""
        (finding,) = await self.look()
        return finding


@pytest.fixture
def practice(database: Database, clock: FrozenClock) -> Practice:
    return Practice(database, clock)


async def test_a_house_in_order_has_no_findings(practice: Practice) -> None:
    """IDM-4: exit 0 is for this."""
    await add_schedule(practice.database, **KEYED)
    await add(practice.database, "jobs", JOB)
    await add_process(practice.database, version="1", zone_data=zone_data_version())
    assert await practice.look() == []


@pytest.mark.parametrize(
    ("policies", "says"),
    [
        ({}, "a person can, with `gnomon schedules run`"),
        ({"on_lost": "resume"}, "on_lost: resume"),
        ({"max_attempts": 3}, "tried up to 3 times"),
        ({"overlap": "allow"}, "overlap: allow"),
        ({"status": "paused"}, "a person can"),
    ],
)
async def test_a_schedule_without_a_key_is_listed_with_why(
    practice: Practice, policies: dict[str, Any], says: str
) -> None:
    """IDM-4, IDM-1: each loop whose rerun could double something."""
    row = await add_schedule(practice.database, **policies)
    finding = await practice.only()
    assert (finding.kind, finding.where.kind, finding.where.id) == (Kind.NO_DEDUP_KEY, "schedule", row["id"])
    assert says in finding.what
    assert f"gnomon schedules patch {row['id']} --dedup-key 'report-" in finding.advice


@pytest.mark.parametrize(
    ("cron", "name"), [("0 9 * * 1-5", "{{date}}"), ("30 * * * *", "{{hour}}"), ("*/5 * * * *", "{{now}}")]
)
async def test_the_key_that_is_proposed_is_shared_by_no_two_slots(
    practice: Practice, cron: str, name: str
) -> None:
    """IDM-4: whoever does as they are told finds nothing more."""
    rule = {"cadence": json.dumps({"cron": cron, "zone": "Europe/Berlin"}), "unit": "cron", "every": None}
    await add_schedule(practice.database, **rule)
    assert f"--dedup-key 'report-{name}'" in (await practice.only()).advice
    await execute(practice.database, "UPDATE schedules SET dedup_key = :key", key=f"report-{name}")
    assert await practice.look() == []


@pytest.mark.parametrize("status", ["completed", "disabled"])
async def test_what_fires_no_more_is_not_listed(practice: Practice, status: str) -> None:
    """IDM-4."""
    await add_schedule(practice.database, status=status)
    assert await practice.look() == []


async def test_what_fires_once_is_listed_only_where_it_may_be_repeated(practice: Practice) -> None:
    """IDM-4: one slot is no loop, and a retry of it is."""
    once = {"cadence": '{"unit":"once","every":1,"at":"2030-01-01T09:00:00","zone":"UTC"}', "unit": "once"}
    await add_schedule(practice.database, id="sch_1", every=None, **once)
    await add_schedule(practice.database, id="sch_2", every=None, dedup_key="v1", **once)
    assert await practice.look() == []
    await add_schedule(practice.database, id="sch_3", every=None, max_attempts=2, **once)
    assert (await practice.only()).where.id == "sch_3"


@pytest.mark.parametrize("template", ["v1.2.0", "{{schedule_id}}", "brief-{{runCount}}"])
async def test_a_constant_key_of_a_loop_that_repeats_is_told(practice: Practice, template: str) -> None:
    """IDM-4: accepted, since it may be the name of one thing; told, since it may be a mistake."""
    await add_schedule(practice.database, dedup_key=template)
    finding = await practice.only()
    assert finding.kind is Kind.KEY_WITHOUT_SLOT
    assert f'"{template}"' in finding.what


@pytest.mark.parametrize(
    ("unit", "template", "shared"),
    [
        ({"unit": "hour", "every": 1}, "brief-{{date}}", True),
        ({"unit": "hour", "every": 1}, "brief-{{hour}}", False),
        ({"unit": "minute", "every": 30}, "brief-{{hour}}", True),
        ({"unit": "day", "every": 1, "at": ["09:00", "18:00"]}, "brief-{{date}}", True),
        ({"unit": "day", "every": 1, "at": ["09:00"]}, "brief-{{date}}", False),
        ({"unit": "day", "every": 1, "at": ["09:00"]}, "{{iso_week}}", True),
        ({"unit": "week", "every": 1, "days": ["mon"], "at": ["09:00"]}, "{{iso_week}}", False),
        ({"unit": "week", "every": 1, "days": ["mon"], "at": ["09:00"]}, "{{month}}", True),
        ({"unit": "month", "every": 1, "day": 1, "short_month": "clamp", "at": ["09:00"]}, "{{year}}", True),
        (
            {"unit": "month", "every": 12, "day": 1, "short_month": "clamp", "at": ["09:00"]},
            "{{year}}",
            False,
        ),
    ],
)
async def test_two_slots_with_one_key_are_told(
    practice: Practice, unit: dict[str, Any], template: str, shared: bool
) -> None:
    """IDM-4: a key that is coarser than the cadence."""
    cadence = json.dumps({**unit, "zone": "Europe/Berlin"})
    changes = {"cadence": cadence, "unit": unit["unit"], "every": unit["every"], "dedup_key": template}
    await add_schedule(practice.database, **changes)
    assert await practice.kinds() == ([Kind.KEY_SHARED_BY_SLOTS] if shared else [])


async def test_a_shared_key_is_shown_with_both_slots(practice: Practice) -> None:
    """IDM-4: inside the window, and with the calendar's holidays left out."""
    changes = {"cadence": RULE, "dedup_key": "brief-{{date}}", "starts_at": AT + 30 * 86_400 * SECOND}
    await add_schedule(practice.database, **changes)
    finding = await practice.only()
    assert '"brief-2026-12-29"' in finding.what
    assert finding.what.count("2026-12-29T") == 2


async def test_a_window_that_ends_before_a_key_comes_again_shares_nothing(practice: Practice) -> None:
    """IDM-4."""
    await add_schedule(
        practice.database, cadence=RULE, dedup_key="brief-{{date}}", ends_at=AT + 3_600 * SECOND
    )
    assert await practice.look() == []


async def test_a_rule_that_can_not_be_read_stops_no_other(practice: Practice) -> None:
    """DSP-9a's like."""
    await add_schedule(practice.database, id="sch_1", **{**KEYED, "cadence": "{}"})
    await add_schedule(practice.database, id="sch_2")
    assert await practice.kinds() == [Kind.RULE_UNREADABLE, Kind.NO_DEDUP_KEY]


async def test_jobs_are_judged_by_the_same_rules(practice: Practice) -> None:
    """IDM-4: a job always has a key, and it may be a poor one."""
    await add(practice.database, "jobs", JOB, id="job_1", slug="a", dedup_key="{{job}}-{{payload.repo}}")
    await add(practice.database, "jobs", JOB, id="job_2", slug="b", dedup_key="{{job}}-{{date}}")
    aside = {"enabled": 0, "next_fire_at": None, "error": "it has no slot"}
    await add(practice.database, "jobs", JOB, id="job_3", slug="c", **aside)
    found = await practice.look()
    assert [(finding.kind, finding.where.id) for finding in found] == [
        (Kind.KEY_WITHOUT_SLOT, "job_1"),
        (Kind.KEY_SHARED_BY_SLOTS, "job_2"),
        (Kind.SET_ASIDE, "job_3"),
    ]
    assert {finding.where.kind for finding in found} == {"job"}


async def test_a_schedule_that_fails_is_told_from_half_of_its_limit_on(practice: Practice) -> None:
    """SCH-8."""
    for streak in (0, 2, 3):
        changes = {"failure_streak": streak, "last_error": "no route", "last_error_code": "x"}
        await add_schedule(practice.database, id=f"sch_{streak}", **KEYED, **changes)
    finding = await practice.only()
    assert (finding.kind, finding.where.id) == (Kind.FAILING, "sch_3")
    assert "failed 3 times in a row; after 5" in finding.what
    assert "no route" in finding.what


async def test_one_failure_is_told_as_one(practice: Practice) -> None:
    await add_schedule(practice.database, failure_streak=1, failure_limit=2, last_error="no", **KEYED)
    assert "It failed once; after 2 it will stand still." in (await practice.only()).what


async def test_what_stands_still_is_told_with_the_way_on(practice: Practice) -> None:
    """SCH-2, SCH-8."""
    changes = {"status": "error", "status_reason": "five failures in a row", "failure_streak": 5}
    await add_schedule(practice.database, **KEYED, **changes)
    finding = await practice.only()
    assert finding.kind is Kind.SET_ASIDE
    assert "five failures in a row" in finding.what
    assert "gnomon schedules resume" in finding.advice


async def test_a_pause_that_nobody_ended_and_a_slot_that_nobody_took(practice: Practice) -> None:
    """OPS-5a: two signs that no process is at work."""
    paused = {"status": "paused", "status_until": AT}
    await add_schedule(practice.database, id="sch_1", **KEYED, **paused)
    await add_schedule(practice.database, id="sch_2", **KEYED)
    practice.clock.advance(120)
    assert await practice.look() == []
    practice.clock.advance(1)
    assert await practice.kinds() == [Kind.PAUSE_OVERDUE, Kind.SLOT_OVERDUE]


async def test_a_silent_process_is_told_and_a_stopped_one_is_not(practice: Practice) -> None:
    """RUN-7: its heartbeat is overdue."""
    fields = {"version": "1", "zone_data": zone_data_version()}
    await add_process(practice.database, id="prc_1", **fields)
    await add_process(practice.database, id="prc_2", stopped_at=AT, **fields)
    practice.clock.advance(120)
    assert await practice.look() == []
    practice.clock.advance(1)
    finding = await practice.only()
    assert (finding.kind, finding.where.id) == (Kind.PROCESS_SILENT, "prc_1")
    assert "silent for 121 seconds" in finding.what


async def test_processes_of_other_versions_and_other_zone_data_are_told(practice: Practice) -> None:
    """OPS-5a, CAD-11."""
    await add_process(practice.database, id="prc_1", version="0", zone_data=zone_data_version())
    await add_process(practice.database, id="prc_2", version="1", zone_data="1999a")
    assert await practice.kinds() == [Kind.VERSION_DIFFERS, Kind.ZONE_DATA_DIFFERS]


async def test_a_key_that_ends_soon_is_told(practice: Practice) -> None:
    """SEC-3."""
    key = {"name": "ci", "hint": "abcd", "created_at": AT, "created_by": "test"}
    soon = AT + KEY_ENDS_SECONDS * SECOND
    await add(practice.database, "api_keys", key, id="key_1", hash=b"1", expires_at=soon)
    await add(practice.database, "api_keys", key, id="key_2", hash=b"2", expires_at=soon + 1)
    finding = await practice.only()
    assert (finding.kind, finding.where.id, finding.where.name) == (Kind.KEY_ENDS, "key_1", "ci")
    assert "gnomon keys patch key_1" in finding.advice


@pytest.mark.parametrize("seconds", [-31, 31])
async def test_two_clocks_that_differ_are_told(practice: Practice, seconds: int) -> None:
    """OPS-5a."""
    other = FrozenClock(practice.clock.now())
    practice.clock.advance(31)
    away = Practice(practice.database, other)
    if seconds > 0:
        practice.clock.advance(-31)
        other.advance(31)
    finding = await away.only()
    assert finding.kind is Kind.CLOCK_OFF
    assert ("behind" if seconds > 0 else "ahead of") in finding.what


@pytest.mark.parametrize(
    ("settings", "unsafe"),
    [
        ({"fsync": "off", "synchronous_commit": "on", "full_page_writes": "on"}, ["fsync"]),
        (
            {"fsync": "on", "synchronous_commit": "off", "full_page_writes": "off"},
            ["full_page_writes", "synchronous_commit"],
        ),
        ({"fsync": "on", "synchronous_commit": "remote_apply", "full_page_writes": "on"}, []),
        ({"synchronous": "1", "journal_mode": "wal"}, ["synchronous"]),
        ({"synchronous": "2", "journal_mode": "delete"}, ["journal_mode"]),
    ],
)
async def test_a_database_that_may_forget_is_told(
    practice: Practice, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], unsafe: list[str]
) -> None:
    """OPS-1: a power cut loses no claim, unless the operator said it may."""

    async def told(_: object) -> dict[str, str]:
        return settings

    monkeypatch.setattr(store, "settings", told)
    found = await practice.look(settings=True)
    assert [finding.where.id for finding in found] == unsafe
    assert {finding.kind for finding in found} <= {Kind.DATABASE_UNSAFE}


@pytest.mark.usefixtures("synced")
async def test_the_settings_of_the_engine_itself_are_read(practice: Practice) -> None:
    """OPS-1: a file of ours is safe by the way it is opened; the tests' own server is set to forget."""
    found = [finding.where.id for finding in await practice.look(settings=True)]
    on_postgres = isinstance(practice.database, PostgresDatabase)
    assert found == (["fsync", "full_page_writes", "synchronous_commit"] if on_postgres else [])


async def test_of_each_kind_some_are_named_and_all_are_counted(practice: Practice) -> None:
    rows = [
        {**PROCESS, "id": f"prc_{n:04}", "version": "0", "zone_data": zone_data_version()}
        for n in range(NAMED + 7)
    ]
    await add_many(practice.database, "processes", rows)
    doctor = Doctor(
        database=practice.database,
        clock=practice.clock,
        heartbeat_timeout_seconds=120,
        zone_data=zone_data_version(),
        version="1",
    )
    found = await doctor.look()
    assert found.counts[Kind.VERSION_DIFFERS] == NAMED + 7
    assert sum(finding.kind is Kind.VERSION_DIFFERS for finding in found.named) == NAMED
