"""The command runtime with real processes: what a program gets, what it may answer, how it is ended (TGT-1, RUN-10)."""

import asyncio
import json
import sys
from pathlib import Path

import psutil
import pytest

from gnomon.domain.agent import CommandRuntime
from gnomon.domain.invocation import Deferred, Failing, Invocation, Limits, Result, TargetFailure, Usage
from gnomon.runtimes.command import CommandTargets
from support.targets import DEADLINE, Heard, an_invocation

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")


def sh(script: str, *args: str) -> CommandRuntime:
    return CommandRuntime(("sh", "-c", script, "sh", *args))


async def ask(
    spec: CommandRuntime, invocation: Invocation | None = None, heard: Heard | None = None, grace: float = 5.0
) -> Result | Deferred:
    targets = CommandTargets(grace_seconds=grace)
    try:
        return await targets.invoke(spec, "whsec_x", invocation or an_invocation(), heard or Heard())
    finally:
        await targets.close()


def run(
    spec: CommandRuntime, invocation: Invocation | None = None, heard: Heard | None = None
) -> Result | Deferred:
    async def scenario() -> Result | Deferred:
        return await ask(spec, invocation, heard or Heard())

    return asyncio.run(scenario())


def failing(spec: CommandRuntime, invocation: Invocation | None = None) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        run(spec, invocation)
    return caught.value


def is_working(pid: int) -> bool:
    """A zombie that nobody reaps works no more."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_query_comes_on_stdin_and_stdout_is_the_output_tgt_1() -> None:
    query = "line one\nline two ü \\ $HOME `id`\n" * 5_000  # more than a pipe holds
    assert run(CommandRuntime(("cat",)), an_invocation(query)) == Result(query)


def test_there_is_no_shell_tgt_1() -> None:
    found = run(CommandRuntime(("printf", "%s|", "$HOME", "a b", ";id", "", "*", "`id`")))
    assert found == Result("$HOME|a b|;id||*|`id`|")


def test_a_program_that_never_reads_its_stdin() -> None:
    assert run(CommandRuntime(("true",)), an_invocation("x" * 1_000_000)) == Result("")


def test_the_environment_is_the_contract_and_nothing_of_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """TGT-1, casebook slf-02: with no key of ours in its hands, a target can't make schedules for itself."""
    for name in ("GNOMON_DATABASE_URL", "GNOMON_SECRET", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "PYTHONPATH"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    invocation = an_invocation(
        dedup_key="weekly:2026-W48", nominal_fire_at=DEADLINE, tenant="acme", traceparent="00-a-b-01"
    )
    spec = CommandRuntime(
        (sys.executable, "-c", "import os, json; print(json.dumps(dict(os.environ)))"),
        env={"TOKEN": "mine", "GNOMON_FENCE": "99", "TZ": "UTC"},
    )
    found = run(spec, invocation)
    assert isinstance(found, Result)
    env = json.loads(found.output)
    assert "s3cret" not in found.output
    ours = {name: value for name, value in env.items() if name.startswith("GNOMON_")}
    assert ours.pop("GNOMON_RESULT_FILE").endswith("result.json")
    assert ours == {
        "GNOMON_RUN_ID": "run_01",
        "GNOMON_ATTEMPT": "1",
        "GNOMON_FENCE": "7",
        "GNOMON_IDEMPOTENCY_KEY": "idem-1",
        "GNOMON_DEDUP_KEY": "weekly:2026-W48",
        "GNOMON_NOMINAL_FIRE_AT": "2026-11-29T09:05:00Z",
        "GNOMON_DEADLINE": "2026-11-29T09:05:00Z",
        "GNOMON_TENANT": "acme",
    }
    assert env["TRACEPARENT"] == "00-a-b-01"
    assert (env["TOKEN"], env["TZ"]) == ("mine", "UTC")
    allowed = {"PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TMPDIR", "USER", "LOGNAME", "SHELL"}
    assert set(env) - allowed - {"TRACEPARENT", "TOKEN", "TZ", "_"} == {*ours, "GNOMON_RESULT_FILE"}


def test_values_that_are_missing_are_empty_and_a_missing_trace_is_left_out() -> None:
    script = 'printf "%s|%s|%s|%s" "$GNOMON_DEDUP_KEY" "$GNOMON_NOMINAL_FIRE_AT" "$GNOMON_TENANT" "${TRACEPARENT-no}"'
    assert run(sh(script)) == Result("|||no")


def test_the_working_directory_and_the_agents_own_path(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    found = run(CommandRuntime(("tool",), str(tmp_path), {"PATH": f"{tmp_path}:/usr/bin:/bin"}))
    assert found == Result(f"{tmp_path}\n")
    assert run(CommandRuntime(("./tool",), str(tmp_path))) == Result(f"{tmp_path}\n")


def test_stderr_is_progress_as_it_goes_tgt_2() -> None:
    heard = Heard()
    assert run(sh('echo one >&2; echo; echo "  two  " >&2; printf three >&2'), heard=heard) == Result("\n")
    assert heard.lines == ["one", "  two", "three"]
    assert heard.started == heard.ended != []


def test_progress_comes_while_the_program_works_tgt_2() -> None:
    async def scenario() -> None:
        heard = Heard()
        attempt = asyncio.create_task(ask(sh("echo early >&2; sleep 60"), heard=heard))
        await asyncio.wait_for(heard.line_came.wait(), 5)
        assert heard.lines == ["early"]
        assert len(heard.started) == 1
        assert heard.ended == []
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert heard.ended == heard.started

    asyncio.run(scenario())


def test_a_flood_of_stderr_is_bounded() -> None:
    heard = Heard()
    script = (
        "import sys\nfor _ in range(300): sys.stderr.write('x' * 100_000)\nsys.stderr.write('\\nthe end\\n')"
    )
    run(CommandRuntime((sys.executable, "-c", script)), heard=heard)
    assert sum(map(len, heard.lines)) < 2_000_000
    assert heard.lines[-1] == "… the program says more than is kept"


@pytest.mark.parametrize("line", ["", "y"])
def test_a_flood_of_short_lines_is_bounded(line: str) -> None:
    """TGT-2: what `yes >&2` says is bounded by its lines too, even by empty ones."""
    heard = Heard()
    script = f"import sys\nfor _ in range(30): sys.stderr.write('{line}\\n' * 100_000)"
    run(CommandRuntime((sys.executable, "-c", script)), heard=heard)
    assert len(heard.lines) <= 600_000
    assert heard.lines[-1] == "… the program says more than is kept"


@pytest.mark.parametrize("status", [1, 2, 74, 76, 125, 126, 127, 255])
def test_another_status_fails_with_the_end_of_stderr(status: int) -> None:
    failure = failing(sh(f"echo output; echo 'what went wrong' >&2; exit {status}"))
    assert failure.code is Failing.EXIT_STATUS
    assert failure.message == f"the program ended with status {status}: what went wrong"
    assert not failure.retryable


def test_status_75_is_tried_again() -> None:
    failure = failing(sh("exit 75"))
    assert failure.code is Failing.EXIT_STATUS
    assert failure.retryable


def test_a_program_ended_by_a_signal_says_which() -> None:
    failure = failing(sh("kill -SEGV $$"))
    assert failure.code is Failing.EXIT_STATUS
    assert failure.message == "the program was ended by SIGSEGV"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert run(sh(r"printf 'a\377\000b'")) == Result("a\ufffd\ufffdb")


@pytest.mark.parametrize(
    ("spec", "code", "said"),
    [
        (CommandRuntime(("no-such-program",)), Failing.NOT_STARTED, "no-such-program"),
        (CommandRuntime(("/etc/passwd",)), Failing.NOT_STARTED, "/etc/passwd"),
        (CommandRuntime(("/",)), Failing.NOT_STARTED, "'/'"),
        (CommandRuntime(("true",), "/no/such/place"), Failing.NOT_STARTED, "/no/such/place"),
        (CommandRuntime(()), Failing.TARGET_INVALID, "empty"),
        (CommandRuntime(("",)), Failing.TARGET_INVALID, "empty"),
        (CommandRuntime(("echo", "a\0b")), Failing.TARGET_INVALID, "NUL"),
        (CommandRuntime(("echo",), env={"A-B": "c"}), Failing.TARGET_INVALID, "A-B"),
        (CommandRuntime(("echo",), env={"A": "\0"}), Failing.TARGET_INVALID, "NUL"),
    ],
)
def test_a_program_that_can_not_be_started(spec: CommandRuntime, code: Failing, said: str) -> None:
    failure = failing(spec)
    assert failure.code is code
    assert said in failure.message
    assert not failure.retryable


def test_a_program_whose_interpreter_is_missing(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    failure = failing(CommandRuntime((str(program),)))
    assert failure.code is Failing.NOT_STARTED
    assert "can't be started" in failure.message


def test_arguments_too_long_for_the_machine() -> None:
    failure = failing(CommandRuntime(("echo", "x" * 3_000_000)))
    assert failure.code is Failing.NOT_STARTED


def test_output_past_the_limit_ends_the_program_tgt_5(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    failure = failing(sh(f"echo $$ > {pid_file}; yes"), an_invocation(limits=Limits(output_bytes=1_000)))
    assert failure.code is Failing.OUTPUT_TOO_LARGE
    assert "1,000 bytes" in failure.message
    assert not is_working(int(pid_file.read_text()))


def test_output_at_the_limit_is_fine_tgt_5() -> None:
    assert run(sh("printf 12345"), an_invocation(limits=Limits(output_bytes=5))) == Result("12345")
    assert failing(sh("printf 123456"), an_invocation(limits=Limits(output_bytes=5))).code is (
        Failing.OUTPUT_TOO_LARGE
    )


def test_without_a_limit_there_is_still_a_cap_tgt_5() -> None:
    assert failing(CommandRuntime(("yes",))).code is Failing.OUTPUT_TOO_LARGE


def test_a_result_file_gives_output_and_usage_tgt_2() -> None:
    answer = '{"output": "the answer", "usage": {"model_calls": 2, "input_tokens": 10}}'
    found = run(sh('echo noise; printf %s "$1" > "$GNOMON_RESULT_FILE"', answer))
    assert found == Result("the answer", Usage(2, 10))
    found = run(sh('echo from stdout; echo \'{"usage": {"cost": 0.5}}\' > "$GNOMON_RESULT_FILE"'))
    assert found == Result("from stdout\n", Usage(cost=0.5))
    assert run(sh('echo out; : > "$GNOMON_RESULT_FILE"')) == Result("out\n")


@pytest.mark.parametrize(
    "script",
    [
        'echo nonsense > "$GNOMON_RESULT_FILE"',
        'echo "[]" > "$GNOMON_RESULT_FILE"',
        'echo "{\\"output\\": 3}" > "$GNOMON_RESULT_FILE"',
        'echo "{\\"usage\\": {\\"cost\\": -1}}" > "$GNOMON_RESULT_FILE"',
        'mkfifo "$GNOMON_RESULT_FILE"',
        'mkdir "$GNOMON_RESULT_FILE"',
        'ln -s /etc/passwd "$GNOMON_RESULT_FILE"',
    ],
)
def test_nonsense_in_the_result_file(script: str) -> None:
    failure = failing(sh(script))
    assert failure.code is Failing.NONSENSE
    assert "result file" in failure.message
    assert not failure.retryable


def test_usage_spent_before_a_failure_is_kept_tgt_2() -> None:
    failure = failing(sh('echo \'{"usage": {"model_calls": 3}}\' > "$GNOMON_RESULT_FILE"; exit 75'))
    assert failure.usage == Usage(3)
    assert failing(sh('echo nonsense > "$GNOMON_RESULT_FILE"; exit 1')).usage is None


def test_the_scratch_directory_goes_away() -> None:
    found = run(sh('cd "$(dirname "$GNOMON_RESULT_FILE")"; mkdir -p a/b; touch a/b/c; pwd'))
    assert isinstance(found, Result)
    assert not Path(found.output.strip()).exists()


def test_many_at_once() -> None:
    async def scenario() -> None:
        targets = CommandTargets()
        results = await asyncio.gather(
            *(
                targets.invoke(CommandRuntime(("cat",)), None, an_invocation(str(i)), Heard())
                for i in range(20)
            )
        )
        await targets.close()
        assert results == [Result(str(i)) for i in range(20)]

    asyncio.run(scenario())
