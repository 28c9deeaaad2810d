"""Sessions over HTTP: read in full, erased for good (RUN-9, RUN-12)."""

import httpx2

from support.api import Api
from support.rows import AT, OCCURRENCE, RUN, add, add_run, one

SESSION = RUN["session_id"]
TAIL = RUN["id"].partition("_")[2]


async def spoken(api: Api, **run: object) -> None:
    """One session with one finished run of a slot in it."""
    done = {
        "status": "succeeded",
        "claimable_at": None,
        "finished_at": AT,
        "query": "How?",
        "output": "So.",
    } | run
    await add(api.database, "sessions", {"id": SESSION, "created_at": AT})
    await add_run(api.database, schedule_id=OCCURRENCE["schedule_id"], nominal_fire_at=AT, **done)
    await add(api.database, "occurrences", OCCURRENCE)


async def test_a_session_and_its_messages_are_read(api: Api, admin: httpx2.AsyncClient) -> None:
    await spoken(api)
    session = (await admin.get(f"/v1/sessions/{SESSION}")).json()
    assert (session["id"], session["turn_count"]) == (SESSION, 1)
    page = (await admin.get(f"/v1/sessions/{SESSION}/messages")).json()
    assert [(m["role"], m["content"]) for m in page["items"]] == [("user", "How?"), ("assistant", "So.")]
    assert page["items"][1]["id"] == f"msg_{TAIL}"
    assert page["next_cursor"] is None


async def test_messages_go_turn_by_turn(api: Api, admin: httpx2.AsyncClient) -> None:
    await spoken(api)
    for n in range(1, 5):
        await add_run(api.database, id=f"run_{n}", query=f"q{n}")
    seen: list[str] = []
    params: dict[str, str | int] = {"limit": 2}
    while True:
        page = (await admin.get(f"/v1/sessions/{SESSION}/messages", params=params)).json()
        seen += [message["content"] for message in page["items"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert seen == ["How?", "So.", "q1", "q2", "q3", "q4"]


async def test_an_erased_session_is_gone_and_the_slot_is_stamped(api: Api, admin: httpx2.AsyncClient) -> None:
    """RUN-12."""
    await spoken(api)
    assert (await admin.delete(f"/v1/sessions/{SESSION}")).status_code == 204
    for path in (f"/v1/sessions/{SESSION}", f"/v1/sessions/{SESSION}/messages"):
        assert (await admin.get(path)).status_code == 404
    assert (await admin.delete(f"/v1/sessions/{SESSION}")).status_code == 404
    slot = await one(api.database, "occurrences", nominal_fire_at=AT)
    assert (slot["run_id"], slot["session_id"], slot["links_erased_at"]) == (None, None, AT)
    run = (await admin.get(f"/v1/runs/{RUN['id']}")).json()
    assert (run["session_id"], run["message_id"], run["response_preview"]) == (None, None, None)
    assert run["status"] == "succeeded"
    entries = (await admin.get("/v1/audit", params={"subject": SESSION})).json()["items"]
    assert [entry["action"] for entry in entries] == ["ERASE"]


async def test_a_session_with_a_run_in_flight_is_not_erased(api: Api, admin: httpx2.AsyncClient) -> None:
    await spoken(api, status="queued", claimable_at=AT, finished_at=None, output=None)
    answer = await admin.delete(f"/v1/sessions/{SESSION}")
    assert (answer.status_code, answer.json()["code"]) == (409, "run_in_flight")
    assert answer.json()["run_id"] == RUN["id"]


async def test_erasing_has_a_scope_of_its_own(api: Api) -> None:
    await spoken(api)
    async with api.client(await api.key("sessions:read")) as client:
        assert (await client.get(f"/v1/sessions/{SESSION}")).status_code == 200
        assert (await client.delete(f"/v1/sessions/{SESSION}")).status_code == 403
