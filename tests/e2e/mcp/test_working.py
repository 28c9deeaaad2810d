"""The tools of those who work on tasks: claims, fences, progress, reports, questions (UI-5, BRD-1 to BRD-3, BRD-6)."""

from typing import Any

import pytest

from support.agents import MODES, Mode, refused, told
from support.api import Api


async def put(client: Any, title: str = "write it", **more: Any) -> str:
    """A task for writers; its id."""
    made = await told(client, "create_task", **{"role": "writer", "title": title, "dedup_key": title, **more})
    found: str = made["task"]["id"]
    return found


def held(granted: dict[str, Any]) -> dict[str, Any]:
    """What every further call for a task takes."""
    return {"task_id": granted["task_id"], "fence": granted["fence"]}


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_goes_from_answer_to_answer(api: Api, comes: Any, mode: Mode) -> None:
    """UI-5: each answer says what to do next, and whoever does it gets through."""
    async with comes(await api.key("tasks:*"), mode) as client:
        who = await told(client, "whoami")
        assert "next_task with your role" in who["next"]
        nothing = await told(client, "next_task", role="writer")
        assert (nothing["task_id"], nothing["fence"], nothing["task"]) == (None, None, None)
        assert "again in a minute" in nothing["next"]
        task = await put(client, body="All of it.")
        granted = await told(client, "next_task", role="writer")
        assert granted["task_id"] == granted["task"]["id"] == task
        assert granted["task"]["body"] == "All of it."
        assert granted["task"]["held_by"]["instance"] == who["instance"]
        assert granted["verify_first"] is False
        for words in ("renew_claim", "report_task", task, f"fence {granted['fence']}", granted["expires_at"]):
            assert words in granted["next"]
        renewed = await told(client, "renew_claim", **held(granted))
        assert "Go on" in renewed["next"]
        await told(client, "log_progress", **held(granted), note="half of it")
        assert (await told(client, "get_task", task_id=task))["task"]["last_report"]["note"] == "half of it"
        done = await told(
            client, "report_task", **held(granted), status="done", note="all", result={"pages": 3}
        )
        assert (done["task"]["status"], done["repeated"]) == ("done", False)
        assert done["task"]["last_report"]["result"] == {"pages": 3}
        assert "next_task" in done["next"]
        again = await told(
            client, "report_task", **held(granted), status="done", note="all", result={"pages": 3}
        )
        assert again["repeated"] is True


async def test_a_foreign_fence_is_refused_with_what_to_do(api: Api, comes: Any) -> None:
    """BRD-2, BRD-3: words that make an agent stop, in every tool that takes a fence, and nothing is changed."""
    async with comes(await api.key("tasks:*")) as one, comes(await api.key("tasks:*")) as other:
        task = await put(one)
        granted = await told(one, "next_task", role="writer", instance="one")
        before = (await told(one, "get_task", task_id=task))["task"]
        for client, fence in (
            (other, granted["fence"]),
            (one, granted["fence"] - 1),
            (one, granted["fence"] + 1),
        ):
            claim = {"task_id": task, "fence": fence}
            for tool, more in (
                ("renew_claim", {}),
                ("log_progress", {"note": "mine"}),
                ("report_task", {"status": "done"}),
                ("ask_human", {"question": "May I?"}),
            ):
                code, words = await refused(client, tool, **claim, **more)
                assert code == "fence_stale"
                assert "not yours any more" in words
                assert "Stop working" in words
                assert "call next_task" in words
        assert (await told(one, "get_task", task_id=task))["task"] == before
        assert (await told(one, "list_tasks", role="human"))["tasks"] == []
        await told(one, "report_task", **held(granted), status="done")


async def test_an_abandoned_task_comes_to_the_next_with_what_was_done(api: Api, comes: Any) -> None:
    """BRD-6: the one who was too late is told to stop, the next one to look first."""
    async with comes(await api.key("tasks:*")) as client:
        await put(client)
        late = await told(client, "next_task", role="writer", instance="late")
        await told(client, "log_progress", **held(late), note="two of three pages")
        async with api.client(await api.key()) as admin:
            released = await admin.post(f"/v1/tasks/{late['task_id']}/release", json={"reason": "it hangs"})
        assert released.status_code == 200, released.text
        granted = await told(client, "next_task", role="writer", instance="next")
        assert granted["fence"] > late["fence"]
        assert granted["verify_first"] is True
        assert granted["next"].startswith("Look first what is there")
        assert granted["task"]["last_report"]["note"] == "two of three pages"
        code, words = await refused(client, "report_task", **held(late), status="done")
        assert code == "fence_stale"
        assert "The instance next works on it now" in words


async def test_a_person_is_asked_and_the_answer_comes_with_the_task(api: Api, comes: Any) -> None:
    """BRD-8: nobody has to move anything; the gate is the question itself."""
    async with comes(await api.key("tasks:*")) as client:
        task = await put(client, priority=7)
        granted = await told(client, "next_task", role="writer")
        asked = {**held(granted), "question": "Which colour?\nRed or blue.", "so_far": "the frame"}
        question = await told(client, "ask_human", **asked)
        assert question["task"]["status"] == "backlog"
        assert question["task"]["waits_for"] == [question["question_id"]]
        assert (await told(client, "ask_human", **asked))["question_id"] == question["question_id"]
        assert (await told(client, "next_task", role="writer"))["task_id"] is None
        person = await told(client, "next_task", role="human", instance="maria")
        assert person["task"]["title"] == "Which colour? Red or blue."
        assert person["task"]["priority"] == 7
        assert task in person["task"]["body"]
        code, _ = await refused(client, "ask_human", **held(person), question="And why?")
        assert code == "invalid"
        await told(client, "report_task", **held(person), status="done", note="Blue.")
        resumed = await told(client, "next_task", role="writer")
        assert resumed["task_id"] == task
        assert resumed["task"]["last_report"]["note"].endswith("So far: the frame")
        (brought,) = resumed["prerequisites"]
        assert (brought["id"], brought["report"]["note"]) == (question["question_id"], "Blue.")
        second = await told(client, "ask_human", **held(resumed), question="Which blue?")
        assert second["question_id"] != question["question_id"]
        assert len(second["task"]["prerequisites"]) == 2


async def test_a_question_that_could_not_be_put_gives_nothing_back(
    api: Api, comes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One transaction: the task is not released where its question did not come to be."""

    def breaks(*_: object) -> None:
        raise RuntimeError("out of ink")

    async with comes(await api.key("tasks:*")) as client:
        await put(client)
        granted = await told(client, "next_task", role="writer")
        with monkeypatch.context() as patch:
            patch.setattr("gnomon.services.questions._question", breaks)
            code, _ = await refused(client, "ask_human", **held(granted), question="Why?")
        assert code == "internal"
        await told(client, "renew_claim", **held(granted))


async def test_a_task_exists_once_under_its_key(api: Api, comes: Any) -> None:
    """IDM-2."""
    async with comes(await api.key("tasks:*")) as one, comes(await api.key("tasks:*")) as other:
        given = {"role": "writer", "title": "Fix login", "dedup_key": "fix-login:2026-W48"}
        first = await told(one, "create_task", **given)
        again = await told(other, "create_task", **given)
        assert (first["existed"], again["existed"]) == (False, True)
        assert first["task"]["id"] == again["task"]["id"]
        code, words = await refused(other, "create_task", **{**given, "title": "Fix logout"})
        assert code == "dedup_key_reused"
        assert first["task"]["id"] in words
        code, words = await refused(other, "create_task", role="writer", title="no key")
        assert (code, "- dedup_key: is required" in words) == ("invalid", True)


async def test_a_claim_whose_answer_was_lost_is_asked_for_again(api: Api, comes: Any) -> None:
    """RUN-5a."""
    async with comes(await api.key("tasks:*")) as client:
        await put(client, "one")
        await put(client, "two")
        first = await told(client, "next_task", role="writer", claim_id="wish-1")
        again = await told(client, "next_task", role="writer", claim_id="wish-1")
        assert held(first) == held(again)
        assert held(await told(client, "next_task", role="writer", claim_id="wish-2")) != held(first)


async def test_a_key_of_one_role_works_for_that_role_alone(api: Api, comes: Any) -> None:
    """SEC-1: it need not name the role, and can't name another."""
    text = await api.key(name="w", scopes=["tasks:*"], role="writer")
    async with comes(text) as client:
        assert (await told(client, "whoami"))["role"] == "writer"
        task = await put(client)
        assert (await told(client, "next_task"))["task_id"] == task
        code, words = await refused(client, "next_task", role="human")
    assert code == "key_bound_to_role"
    assert "whoami" in words


async def test_without_a_role_it_is_asked_for(api: Api, comes: Any) -> None:
    async with comes(await api.key("tasks:*")) as client:
        code, words = await refused(client, "next_task")
    assert (code, "- role: is required" in words) == ("invalid", True)


async def test_a_key_that_only_looks_is_told_so(api: Api, comes: Any) -> None:
    async with comes(await api.key("tasks:read")) as client:
        assert "claims no tasks" in (await told(client, "whoami"))["next"]
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "whoami",
            "get_task",
            "list_tasks",
        ]


async def test_the_board_is_listed_in_pages(api: Api, comes: Any) -> None:
    async with comes(await api.key("tasks:*")) as client:
        made = [await put(client, f"task {number}") for number in range(5)]
        await told(client, "next_task", role="writer", instance="ada")
        first = await told(client, "list_tasks", limit=3)
        rest = await told(client, "list_tasks", limit=3, cursor=first["next_cursor"])
        mine = await told(client, "list_tasks", holder="ada", status="in_progress")
    assert sorted(task["id"] for task in first["tasks"] + rest["tasks"]) == sorted(made)
    assert (rest["next_cursor"], len(mine["tasks"])) == (None, 1)
