"""What is refused when an agent is saved: every fault at its field."""

import pytest

from gnomon.domain.agent import (
    CommandRuntime,
    HttpRuntime,
    LlmRuntime,
    PythonRuntime,
    RoleRuntime,
    RuntimeSpec,
)
from gnomon.runtimes.checks import check_runtime


@pytest.mark.parametrize(
    "spec",
    [
        HttpRuntime("https://example.com/", {"X-A": "b"}),
        CommandRuntime(("echo", "a b", ""), "/tmp", {"A_1": "x\ny"}),
        PythonRuntime("pkg.mod:thing.method"),
        LlmRuntime("openai:gpt-5"),
        RoleRuntime("worker"),
    ],
)
def test_sound_definitions(spec: RuntimeSpec) -> None:
    assert check_runtime(spec, allow_private=False) == []


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (HttpRuntime("http://localhost/", {"Host": "x", "X": "\n"}), ["url", "headers.Host", "headers.X"]),
        (CommandRuntime(()), ["argv"]),
        (CommandRuntime((" ",), "here", {"A-B": "x", "C": "\0"}), ["argv", "cwd", "env.A-B", "env.C"]),
        (CommandRuntime(("a", "\0")), ["argv"]),
        (PythonRuntime("mod"), ["path"]),
        (PythonRuntime("mod:"), ["path"]),
        (PythonRuntime("mod:a b"), ["path"]),
        (PythonRuntime("../mod:a"), ["path"]),
        (LlmRuntime(" "), ["model"]),
        (RoleRuntime(""), ["role"]),
    ],
)
def test_faulty_definitions(spec: RuntimeSpec, fields: list[str]) -> None:
    found = [fault.field for fault in check_runtime(spec, allow_private=False)]
    assert found == [f"runtime.{field}" for field in fields]


def test_the_operators_switch_is_heeded() -> None:
    assert check_runtime(HttpRuntime("http://127.0.0.1:1/"), allow_private=True) == []
