"""What a target is given and what it gives back, where other systems expanded, cut or miscounted it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gnomon.domain.invocation import Failing
from support.databases import START
from support.house import AGENT, House, a_schedule, a_team, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}


async def a_due_schedule(house: House, rule: dict[str, Any] = HOURLY, **changes: Any) -> str:
    await an_agent(house.database)
    return await a_schedule(
        house.database, rule, next_fire_at=house.clock.now(), anchor=START - timedelta(hours=5), **changes
    )


_RULES: list[dict[str, Any]] = [
    {"unit": "minute", "every": 60},
    HOURLY,
    {"unit": "day", "at": "09:00"},
    {"unit": "week", "days": ["sun"], "at": "09:00"},
    {"unit": "month", "day": 29, "at": "09:00"},
    {"cron": "0 9 * * *"},
    {"rrule": "FREQ=DAILY", "at": ["09:00"]},
]


@pytest.mark.parametrize("kind", ["agent", "team"])
@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: str(rule.get("unit", next(iter(rule)))))
async def test_five_failures_stop_every_kind_of_schedule_aut_04(
    house: House, rule: dict[str, Any], kind: str
) -> None:
    """SCH-8: whatever the cadence, whatever the target."""
    team = await a_team(
        house.database, "tea_" + "0" * 20, [{"id": "only", "agent": AGENT, "query": "{{query}}"}], "only"
    )
    target = AGENT if kind == "agent" else team
    sid = await a_due_schedule(house, rule, target_kind=kind, target_id=target)
    for _ in range(5):
        following = (await house.schedule(sid))["next_fire_at"]
        assert following is not None
        house.clock.set(datetime.fromtimestamp(following / 1_000_000, UTC))
        house.runtime.fails(Failing.EXCEPTION, "broken")
        await house.dispatch()
        await house.idle()
    schedule = await house.schedule(sid)
    assert (schedule["status"], schedule["next_fire_at"], schedule["failure_streak"]) == ("error", None, 5)
    assert "broken" in schedule["last_error"]


async def test_skips_between_failures_leave_the_streak_aut_01(house: House) -> None:
    """SCH-8, SCH-9: F S F S F S F S F, through the ledger; the fifth failure stops it, and no skip takes part."""
    sid = await a_due_schedule(house)
    streaks = []
    for number in range(9):
        await house.rows("UPDATE agents SET enabled = :on", on=(number + 1) % 2)
        house.runtime.fails(Failing.EXCEPTION, "broken")
        await house.dispatch()
        await house.idle()
        schedule = await house.schedule(sid)
        streaks.append((schedule["failure_streak"], schedule["status"]))
        await house.elapse(3_600)
    assert [streak for streak, _ in streaks] == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert [status for _, status in streaks] == ["active"] * 8 + ["error"]
    assert [row["disposition"] for row in await house.occurrences()] == ["fired", "skipped"] * 4 + ["fired"]


async def test_cadence_words_in_a_query_make_no_schedule_slf_03(house: House) -> None:
    """SCH-6: the query goes to the target as it stands, and a target has nothing of ours to make schedules with."""
    query = "Each Monday at 9 remind me to water the plants, every 5 minutes until I answer"
    await a_due_schedule(house, query=query)
    for _ in range(3):
        await house.dispatch()
        await house.idle()
        await house.elapse(3_600)
    assert [i.query for i in house.runtime.invocations] == [query] * 3
    assert [row["n"] for row in await house.rows("SELECT count(*) AS n FROM schedules")] == [1]


async def test_a_node_s_output_is_never_read_as_a_template_tpl_03(house: House) -> None:
    """SCH-6, TGT-3: what a target said goes on as data, whatever it looks like."""
    team = await a_team(
        house.database,
        "tea_" + "0" * 20,
        [
            {"id": "first", "agent": AGENT, "query": "{{query}}"},
            {"id": "second", "agent": AGENT, "query": "<{{nodes.first.output}}>", "after": ["first"]},
        ],
        "second",
    )
    house.runtime.answers("{{query}} {{date}} {{nodes.first.output}}")
    await a_due_schedule(house, target_kind="team", target_id=team, query="go {{runCount}}")
    await house.dispatch()
    await house.idle()
    assert [i.query for i in house.runtime.invocations] == [
        "go 0",
        "<{{query}} {{date}} {{nodes.first.output}}>",
    ]


@pytest.mark.parametrize("output", ["a\\u0000b", "a\x00b", "\x00", "\ufeff\u2028"])
async def test_an_answer_is_kept_whatever_is_in_it_pay_03(house: House, engine: str, output: str) -> None:
    """RUN-9: six characters stay six characters, and a real zero byte breaks no row.

    PostgreSQL has no place for it: there it becomes what stands for a character that can't be shown.
    """
    house.runtime.answers(output)
    await a_due_schedule(house)
    await house.dispatch()
    await house.idle()
    run = await house.run()
    assert run["status"] == "succeeded"
    assert run["output"] == (output if engine == "sqlite" else output.replace("\x00", "\ufffd"))
