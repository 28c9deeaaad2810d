"""Real agents and a real server, over real sockets and real pipes (UI-5)."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from support.agents import MODES, Mode, agent, refused, told
from support.product import BOUND_SECONDS, Running, environment, gnomon, up

pytestmark = pytest.mark.process

TASKS = 24
HOSTILE = ("", "{", "nonsense", '{"jsonrpc": "2.0"}', "\ud800", "[1, 2, NaN]", "x" * 2_000_000, "[" * 100_000)


def key_of(product: Running, *scopes: str) -> str:
    """A new key of this server."""
    status, made = product.ask("/v1/keys", method="POST", body={"name": "agent", "scopes": list(scopes)})
    assert status == 201, made
    found: str = made["key"]
    return found


async def take_all(client: Client, role: str) -> list[str]:
    """Work like an agent until there is nothing left."""
    done: list[str] = []
    while True:
        granted = await told(client, "next_task", role=role)
        if granted["task_id"] is None:
            return done
        claim = {"task_id": granted["task_id"], "fence": granted["fence"]}
        await told(client, "renew_claim", **claim)
        await told(client, "report_task", **claim, status="done")
        done.append(granted["task_id"])


def test_two_agents_with_their_own_keys_never_get_the_same_task(tmp_path: Path) -> None:
    """BRD-1, UI-5: one of each revision of the protocol, at once."""
    with up(tmp_path) as product:
        keys = [key_of(product, "tasks:*") for _ in MODES]

        async def scenario() -> list[list[str]]:
            address = product.started["address"]
            async with agent(address, keys[0], "auto") as new, agent(address, keys[1], "legacy") as old:
                assert (new.protocol_version, old.protocol_version) == ("2026-07-28", "2025-11-25")
                made = [
                    (await told(new, "create_task", role="writer", title=f"{n}", dedup_key=f"{n}"))["task"][
                        "id"
                    ]
                    for n in range(TASKS)
                ]
                took = await asyncio.gather(take_all(new, "writer"), take_all(old, "writer"))
                for task in made:
                    assert (await told(old, "get_task", task_id=task))["task"]["status"] == "done"
                return [made, *took]

        made, *took = asyncio.run(scenario())
        assert sorted(took[0] + took[1]) == sorted(made)
        assert all(took), "one of them got nothing: they were never there together"
        _, audit = product.ask("/v1/audit?action=CLAIM&limit=200")
        assert sorted(entry["subject"]["id"] for entry in audit["items"]) == sorted(made)
        assert product.stop() == 0
        noise = [line for line in product.err if '"logger": "mcp' in line or "Traceback" in line]
        assert noise == []


@pytest.mark.parametrize("mode", MODES)
def test_a_foreign_fence_is_refused_over_a_socket(tmp_path: Path, mode: Mode) -> None:
    """BRD-3: two agents with keys of their own; the words tell the one who is wrong what to do."""
    with up(tmp_path) as product:
        keys = [key_of(product, "tasks:*") for _ in range(2)]

        async def scenario() -> None:
            address = product.started["address"]
            async with agent(address, keys[0], mode) as one, agent(address, keys[1], mode) as other:
                await told(one, "create_task", role="writer", title="t", dedup_key="t")
                granted = await told(one, "next_task", role="writer")
                claim = {"task_id": granted["task_id"], "fence": granted["fence"]}
                code, words = await refused(other, "report_task", **claim, status="done")
                assert code == "fence_stale"
                assert "Stop working on it" in words
                assert "call next_task" in words
                assert (await told(one, "report_task", **claim, status="done"))["task"]["status"] == "done"

        asyncio.run(scenario())


def test_an_agent_waits_for_work_and_is_woken_by_it(tmp_path: Path) -> None:
    """BRD-1: long before its wait is over."""
    with up(tmp_path) as product:
        key = key_of(product, "tasks:*")

        async def scenario() -> dict[str, Any]:
            address = product.started["address"]
            async with agent(address, key) as waiting, agent(address, key) as other:
                wish = asyncio.create_task(told(waiting, "next_task", role="writer", wait_seconds=30))
                nothing = await told(other, "next_task", role="reader")
                assert nothing["task_id"] is None
                await told(other, "create_task", role="writer", title="t", dedup_key="t")
                return await asyncio.wait_for(wish, 20)

        assert asyncio.run(scenario())["task"]["title"] == "t"


async def wait_for_work(product: Running, key: str, patience: float) -> dict[str, Any]:
    """One call that waits for a task, without a client that would ask for more afterwards."""
    wish = {"name": "next_task", "arguments": {"role": "writer", "wait_seconds": 30}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": wish}
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
    async with httpx2.AsyncClient(headers=headers, timeout=patience) as client:
        answer = await client.post(f"{product.started['address']}/mcp", json=call)
    found: dict[str, Any] = answer.json()["result"]["structuredContent"]
    return found


def test_nothing_is_claimed_for_an_agent_that_hung_up(tmp_path: Path) -> None:
    """BRD-1: a task would be locked in the name of somebody who never hears of it."""
    with up(tmp_path) as product:
        key = key_of(product, "tasks:*")

        async def scenario() -> str | None:
            async with agent(product.started["address"], key) as other:
                with pytest.raises(httpx2.ReadTimeout):
                    await wait_for_work(product, key, patience=1)
                await told(other, "create_task", role="writer", title="t", dedup_key="t")
                granted: str | None = (await told(other, "next_task", role="writer", instance="other"))[
                    "task_id"
                ]
                return granted

        assert asyncio.run(scenario()) is not None


def test_a_stop_ends_the_wait_of_an_agent_with_an_answer(tmp_path: Path) -> None:
    """DSP-10: and no request is cut off."""
    with up(tmp_path) as product:
        key = key_of(product, "tasks:*")

        async def scenario() -> dict[str, Any]:
            wish = asyncio.create_task(wait_for_work(product, key, patience=60))
            while not (await asyncio.to_thread(product.ask, "/v1/instances"))[1]["items"]:
                assert not wish.done()  # bounded by the wait itself
            product.process.terminate()
            return await wish

        assert asyncio.run(scenario())["task_id"] is None
        assert product.wait() == 0
        assert not [line for line in product.err if "Traceback" in line]


def spawned(folder: Path, *words: str, **env: str) -> StdioServerParameters:
    """How a client starts ``gnomon mcp``."""
    return StdioServerParameters(
        command=sys.executable, args=["-m", "gnomon", "mcp", *words], cwd=folder, env=environment(**env)
    )


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_on_this_machine_works_over_pipes(tmp_path: Path, mode: Mode) -> None:
    """UI-5: on the database of the settings, with no server at all (ADR 0017)."""
    assert gnomon("migrate", cwd=tmp_path).returncode == 0

    async def scenario() -> None:
        async with Client(spawned(tmp_path, "--role", "writer", "--instance", "ada"), mode=mode) as client:
            who = await told(client, "whoami")
            assert (who["role"], who["instance"], who["scopes"]) == ("writer", "ada", ["tasks:*"])
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "next_task" in names
            assert "run_now" not in names
            await told(client, "create_task", role="writer", title="t", dedup_key="t")
            granted = await told(client, "next_task")
            claim = {"task_id": granted["task_id"], "fence": granted["fence"]}
            assert (await refused(client, "renew_claim", **{**claim, "fence": 99}))[0] == "fence_stale"
            assert (await refused(client, "next_task", role="human"))[0] == "key_bound_to_role"
            assert (await refused(client, "run_now", schedule_id="sch_x"))[0] == "scope_missing"
            await told(client, "report_task", **claim, status="done", note="ok")

    asyncio.run(scenario())
    shown = gnomon("tasks", "list", "--json", cwd=tmp_path)
    (task,) = json.loads(shown.stdout)["items"]
    assert (task["status"], task["last_report"]["instance"]) == ("done", "ada")


def test_two_agents_over_pipes_and_one_over_a_socket_share_the_work(tmp_path: Path) -> None:
    """BRD-1: three processes on one file."""
    with up(tmp_path) as product:
        key = key_of(product, "tasks:*")

        async def scenario() -> list[list[str]]:
            async with (
                agent(product.started["address"], key) as over_http,
                Client(spawned(tmp_path)) as one,
                Client(spawned(tmp_path)) as two,
            ):
                for n in range(TASKS):
                    await told(over_http, "create_task", role="writer", title=f"{n}", dedup_key=f"{n}")
                return await asyncio.gather(*(take_all(client, "writer") for client in (over_http, one, two)))

        took = asyncio.run(scenario())
    together = [task for each in took for task in each]
    assert len(together) == len(set(together)) == TASKS


def test_it_hands_on_to_a_server_that_is_named(tmp_path: Path) -> None:
    """The key decides there what is seen and done; nothing is opened here."""
    with up(tmp_path) as product:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        env = {"GNOMON_URL": product.started["address"], "GNOMON_KEY": key_of(product, "tasks:*")}

        async def scenario() -> None:
            async with Client(spawned(elsewhere, **env)) as client:
                assert (await told(client, "whoami"))["scopes"] == ["tasks:*"]
                await told(client, "create_task", role="writer", title="t", dedup_key="t")
                assert (await refused(client, "run_now", schedule_id="sch_x"))[0] == "scope_missing"
                product.stop()
                gone = await client.call_tool("whoami", {})
                assert gone.is_error
                assert "can't be reached" in gone.content[0].text  # type: ignore[union-attr]

        asyncio.run(scenario())
        assert list(elsewhere.iterdir()) == []


def test_standard_output_carries_the_protocol_and_nothing_else(tmp_path: Path) -> None:
    """Whatever comes in, each line that goes out is one message, and what comes after is answered."""
    gnomon("migrate", cwd=tmp_path)
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": {"name": "old", "version": "0"},
        },
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "gnomon", "mcp"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        messages = []
        for number, raw in enumerate([json.dumps(hello), *HOSTILE], 2):
            ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
            process.stdin.write(f"{raw}\n{json.dumps(ping)}\n".encode("utf-8", "surrogatepass"))
            process.stdin.flush()
            messages.append(json.loads(process.stdout.readline()))
            while messages[-1].get("id") != number:
                messages.append(json.loads(process.stdout.readline()))
            assert messages[-1] == {"jsonrpc": "2.0", "id": number, "result": {}}
        rest, errors = process.communicate(timeout=BOUND_SECONDS)  # it ends the input
    assert (process.returncode, rest) == (0, b"")
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    (greeting,) = (message["result"] for message in messages if message.get("id") == 1)
    assert (greeting["protocolVersion"], greeting["serverInfo"]["name"]) == ("2024-11-05", "gnomon")
    assert b"Traceback" not in errors


def test_at_a_terminal_it_says_how_it_is_meant(tmp_path: Path) -> None:
    gnomon("migrate", cwd=tmp_path)
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gnomon", "mcp"],
            cwd=tmp_path,
            env=environment(),
            stdin=slave,
            capture_output=True,
            text=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
    finally:
        os.close(master)
        os.close(slave)
    assert (done.returncode, done.stdout) == (2, "")
    assert "gnomon mcp --print-config" in done.stderr


def test_it_prints_what_a_client_needs(tmp_path: Path) -> None:
    shown = gnomon("mcp", "--print-config", "--role", "writer", cwd=tmp_path)
    entry = json.loads(shown.stdout)["mcpServers"]["gnomon"]
    assert entry["args"] == ["mcp", "--role", "writer"]
    assert Path(entry["command"]).is_absolute()
    assert entry["env"] == {"GNOMON_DATABASE_URL": f"sqlite:///{tmp_path / 'gnomon.db'}"}
    key = "gnk_master_key_fppkv483f0395jqc08cj9xhgejref98f_2qrh0yk"
    remote = gnomon("mcp", "--print-config", "--url", "http://127.0.0.1:8420", "--key", key, cwd=tmp_path)
    entry = json.loads(remote.stdout)["mcpServers"]["gnomon"]
    assert entry["url"] == "http://127.0.0.1:8420/mcp"
    assert key not in remote.stdout
    secret = gnomon("mcp", "--print-config", cwd=tmp_path, GNOMON_DATABASE_URL="postgresql://me:hunter2@h/db")
    assert "hunter2" not in secret.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 3, "There is no database"),
        (("--scope", "tasks:fly"), 2, "no such scope"),
        (("--role", "Not A Slug"), 2, "--role"),
        (("--instance", "a\nb"), 2, "--instance"),
        (("--url", "http://127.0.0.1:9", "--role", "writer"), 2, "--role"),
        (("--url", "http://127.0.0.1:9"), 3, "can't be reached"),
        (("--url", "nowhere"), 2, "no address"),
    ],
)
def test_what_can_not_be_served_is_told_before_anything_is(
    tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    done = gnomon("mcp", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_key_is_told_before_a_client_waits(tmp_path: Path) -> None:
    with up(tmp_path) as product:
        done = gnomon("mcp", "--url", product.started["address"], "--key", "nonsense", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "malformed" in done.stderr
