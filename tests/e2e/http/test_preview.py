"""The preview: the dispatcher's own arithmetic, without a record (CAD-8, UI-2)."""

from typing import Any

import httpx2
import pytest

DAILY = {"unit": "day", "at": "02:30", "zone": "America/New_York"}


async def ats(client: httpx2.AsyncClient, **asked: Any) -> list[str]:
    answer = await client.post("/v1/preview", json=asked)
    assert answer.status_code == 200, answer.text
    return [slot["at"] for slot in answer.json()["items"]]


async def test_a_slot_that_a_rule_moved_says_so(admin: httpx2.AsyncClient) -> None:
    """CAD-4, CAD-8: 02:30 in New York's spring gap is 03:00."""
    asked = {"cadence": DAILY, "after": "2026-03-07T12:00:00Z", "count": 2}
    gap, plain = (await admin.post("/v1/preview", json=asked)).json()["items"]
    assert (gap["at"], gap["local_time"], gap["offset"]) == (
        "2026-03-08T07:00:00Z",
        "2026-03-08T03:00:00",
        "-04:00",
    )
    assert gap["note"].startswith("gap")
    assert plain == {
        "at": "2026-03-09T06:30:00Z",
        "local_time": "2026-03-09T02:30:00",
        "offset": "-04:00",
        "note": None,
    }


async def test_five_slots_from_now_by_default(admin: httpx2.AsyncClient) -> None:
    found = await ats(admin, cadence={"unit": "hour"})
    assert found == [f"2026-11-29T{hour}:00:00Z" for hour in (10, 11, 12, 13, 14)]


async def test_the_anchor_is_where_counting_starts_cut_to_the_minute(admin: httpx2.AsyncClient) -> None:
    """CAD-2, CAD-5."""
    rule = {"unit": "minute", "every": 15}
    after = "2026-11-29T09:07:42Z"
    assert (await ats(admin, cadence=rule, after=after, count=1)) == ["2026-11-29T09:22:00Z"]
    anchored = await ats(admin, cadence=rule, after=after, count=1, anchor="2026-11-29T09:00:00Z")
    assert anchored == ["2026-11-29T09:15:00Z"]
    own = {**rule, "anchor": "2026-11-29T09:01:00Z"}
    assert (await ats(admin, cadence=own, after=after, count=1)) == ["2026-11-29T09:16:00Z"]


async def test_the_window_is_inclusive_on_both_ends(admin: httpx2.AsyncClient) -> None:
    """SCH-5."""
    found = await ats(
        admin,
        cadence={"unit": "hour"},
        starts_at="2026-11-29T12:00:00Z",
        ends_at="2026-11-29T13:00:00Z",
        count=9,
    )
    assert found == ["2026-11-29T12:00:00Z", "2026-11-29T13:00:00Z"]


async def test_max_runs_ends_the_list(admin: httpx2.AsyncClient) -> None:
    assert len(await ats(admin, cadence={"unit": "hour"}, max_runs=2, count=9)) == 2
    assert len(await ats(admin, cadence={"unit": "hour"}, count=1_000)) == 1_000


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({}, {"cadence"}),
        ({"cadence": 5}, {"cadence"}),
        ({"cadence": {"unit": "minute", "every": 4}}, {"cadence.every"}),
        ({"cadence": {"unit": "day"}}, {"cadence.at"}),
        (
            {"cadence": {"unit": "hour"}, "count": 0, "after": "now", "max_runs": "2", "when": 1},
            {"count", "after", "max_runs", "when"},
        ),
        (
            {
                "cadence": {"unit": "hour"},
                "starts_at": "2027-01-02T00:00:00Z",
                "ends_at": "2027-01-01T00:00:00Z",
            },
            {"ends_at"},
        ),
    ],
)
async def test_every_fault_is_at_its_field(
    admin: httpx2.AsyncClient, asked: dict[str, Any], fields: set[str]
) -> None:
    """CAD-1: out of range is a field-level error."""
    answer = await admin.post("/v1/preview", json=asked)
    assert answer.status_code == 422
    assert {error["field"] for error in answer.json()["errors"]} == fields
