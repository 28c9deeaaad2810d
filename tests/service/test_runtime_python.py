"""The python runtime: every shape of callable, what it may return, how it fails, how it is stopped (TGT-1, RUN-10)."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gnomon.domain.agent import PythonRuntime
from gnomon.domain.invocation import Deferred, Failing, Limits, Result, TargetFailure, Usage
from gnomon.runtimes.python import PythonTargets
from support import callables
from support.callables import cues, where
from support.targets import Heard, an_invocation


async def ask(
    name: str, targets: PythonTargets | None = None, heard: Heard | None = None, limits: Limits | None = None
) -> Result | Deferred:
    path = name if ":" in name else f"support.callables:{name}"
    invocation = an_invocation("q", limits=limits or Limits())
    return await (targets or PythonTargets()).invoke(PythonRuntime(path), None, invocation, heard or Heard())


def run(name: str, heard: Heard | None = None, limits: Limits | None = None) -> Result | Deferred:
    async def scenario() -> Result | Deferred:
        return await ask(name, heard=heard or Heard(), limits=limits)

    return asyncio.run(scenario())


def failing(name: str, limits: Limits | None = None) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        run(name, limits=limits)
    return caught.value


@pytest.fixture(autouse=True)
def fresh_cues() -> None:
    cues.clear()
    cues.update({name: threading.Event() for name in ("started", "go on", "ended")})


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("text", Result("q in nowhere")),
        ("text_async", Result("q in nowhere")),
        ("result", Result("done", Usage(1, 2, 3, 0.4))),
        ("mapping", Result("mapped", Usage(5))),
        ("mapping_without_output", Result("", Usage(5))),
        ("nothing", Result("")),
        ("coroutine_from_sync", Result("q in nowhere")),
        ("pieces", Result("one two", Usage(2))),
        ("pieces_async", Result("one two", Usage(1))),
        ("agent", Result("called q")),
        ("agent.method", Result("method q")),
        ("nested.deep.run", Result("q in nowhere")),
        ("half", Result("half q")),
    ],
)
def test_every_shape_of_callable_tgt_1(name: str, result: Result) -> None:
    assert run(name) == result


def test_what_a_generator_yields_is_progress_as_it_goes_tgt_2() -> None:
    heard = Heard()
    run("pieces", heard)
    assert heard.lines == ["one ", "two"]
    assert heard.usages == [Usage(1), Usage(2)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("number", "a number"),
        ("bad_usage", "cost"),
        ("surrogate", "surrogate"),
        ("odd_pieces", "yielded a bytes"),
    ],
)
def test_nonsense_is_named(name: str, said: str) -> None:
    failure = failing(name)
    assert failure.code is Failing.NONSENSE
    assert said in failure.message
    assert not failure.retryable


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises", "LookupError: no such thing"),
        ("raises_async", "LookupError: no such thing"),
        ("raises_stop", "StopIteration"),
        ("raises_exit", "SystemExit: 3"),
        ("raises_interrupt", "KeyboardInterrupt"),
        ("raises_cancelled", "CancelledError: by itself"),
        ("wrong_arguments", "TypeError: wrong_arguments() takes 0 positional arguments"),
    ],
)
def test_an_exception_comes_with_type_message_and_place(name: str, said: str) -> None:
    failure = failing(name)
    assert failure.code is Failing.EXCEPTION
    assert failure.message.startswith(said) or said in failure.message
    assert "runtimes/python.py" not in failure.message
    assert ("callables.py:" in failure.message) is (
        name not in {"raises_stop", "raises_interrupt", "wrong_arguments"}
    )
    assert "\n" not in failure.message
    assert not failure.retryable


def test_usage_told_before_an_exception_is_kept_tgt_2() -> None:
    failure = failing("pieces_then_raise")
    assert failure.code is Failing.EXCEPTION
    assert failure.usage == Usage(3)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no_such_module_at_all:run", "ModuleNotFoundError"),
        ("support.callables:missing", "AttributeError"),
        ("support.callables:not_callable", "no callable"),
        ("support.callables:", "AttributeError"),
        (":run", "ValueError"),
    ],
)
def test_what_can_not_be_imported(path: str, said: str) -> None:
    failure = failing(path)
    assert failure.code is Failing.NOT_STARTED
    assert said in failure.message
    assert not failure.retryable


def test_a_module_is_imported_on_first_use_from_the_given_directory_and_again_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = tmp_path / "my_fresh_agents.py"
    module.write_text("raise SystemExit('not now')\n")

    async def scenario() -> None:
        targets = PythonTargets(search=str(tmp_path))
        with pytest.raises(TargetFailure) as caught:
            await ask("my_fresh_agents:run", targets)
        assert caught.value.code is Failing.NOT_STARTED
        assert "SystemExit: not now" in caught.value.message
        module.write_text("def run(invocation):\n    return 'fresh'\n")
        assert await ask("my_fresh_agents:run", targets) == Result("fresh")
        await targets.close()

    asyncio.run(scenario())
    sys.modules.pop("my_fresh_agents", None)


def test_sync_callables_run_in_threads_with_the_tasks_context() -> None:
    async def scenario() -> None:
        where.set("this task")
        assert await ask("text") == Result("q in this task")
        assert await ask("text_async") == Result("q in this task")
        assert await ask("thread_name") == Result("python-target")

    asyncio.run(scenario())


def test_a_sync_callable_blocks_nobody_else() -> None:
    async def scenario() -> None:
        targets = PythonTargets()
        blocked = asyncio.create_task(ask("waits", targets))
        await asyncio.to_thread(cues["started"].wait, 5)
        assert await ask("text", targets) == Result("q in nowhere")
        cues["go on"].set()
        assert await blocked == Result("late")

    asyncio.run(scenario())


def test_an_async_callable_is_stopped_by_cancelling_run_10() -> None:
    async def scenario() -> None:
        cues["started"] = asyncio.Event()
        attempt = asyncio.create_task(ask("waits_async"))
        await asyncio.wait_for(cues["started"].wait(), 5)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert cues["cancelled"]

    asyncio.run(scenario())


def test_a_sync_callables_late_result_is_dropped_run_10() -> None:
    async def scenario() -> None:
        targets = PythonTargets(threads=1)
        attempt = asyncio.create_task(ask("waits", targets))
        await asyncio.to_thread(cues["started"].wait, 5)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        with pytest.raises(TargetFailure) as caught:
            await ask("text", targets)
        assert caught.value.code is Failing.NOT_STARTED
        assert caught.value.retryable
        assert "outlived" in caught.value.message
        cues["go on"].set()
        await asyncio.to_thread(cues["ended"].wait, 5)
        await asyncio.to_thread(cues["thread"].join, 5)
        await asyncio.sleep(0)  # the loop hears of the thread's end
        assert targets._threads.abandoned == 0
        assert await ask("text", targets) == Result("q in nowhere")

    asyncio.run(scenario())


def test_a_generator_in_a_thread_is_stopped_at_its_next_piece_run_10() -> None:
    async def scenario() -> None:
        heard = Heard()
        attempt = asyncio.create_task(ask("waits_between_pieces", heard=heard))
        await asyncio.to_thread(cues["started"].wait, 5)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        cues["go on"].set()
        assert await asyncio.to_thread(cues["ended"].wait, 5)
        assert heard.lines == ["first"]

    asyncio.run(scenario())


def test_threads_are_bounded_and_the_next_call_waits() -> None:
    async def scenario() -> None:
        targets = PythonTargets(threads=1)
        first = asyncio.create_task(ask("waits", targets))
        await asyncio.to_thread(cues["started"].wait, 5)
        second = asyncio.create_task(ask("text", targets))
        assert await asyncio.wait({second}, timeout=0.05) == (set(), {second})
        cues["go on"].set()
        assert [await first, await second] == [Result("late"), Result("q in nowhere")]

    asyncio.run(scenario())


def test_an_endless_generator_ends_at_the_limit_and_is_closed_tgt_5() -> None:
    failure = failing("endless", Limits(output_bytes=1_000))
    assert failure.code is Failing.OUTPUT_TOO_LARGE
    assert "1,000" in failure.message
    assert cues["endless closed"]


def test_the_clients_names_are_light_to_import() -> None:
    """Those who write a callable import three records, not the product."""
    code = (
        "import sys; from gnomon.client import Invocation, Result, Usage;"
        " heavy = {'asyncio', 'httpx2', 'pydantic', 'fastapi', 'apsw', 'pydantic_ai'} & set(sys.modules);"
        " sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_support_module_is_the_one_that_is_imported() -> None:
    assert callables.where is where
