"""The program's own source as data: files, trees, imports, calls. For the tests that hold the house to its plan."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "src" / "gnomon"


@dataclass(frozen=True, slots=True)
class Source:
    """One module: its path below the program's folder (``stores/runs.py``), its text, its tree."""

    name: str
    text: str
    tree: ast.Module


def modules(program: Path = PROGRAM) -> Iterator[Source]:
    """Every module of a program, by name."""
    for path in sorted(program.rglob("*.py")):
        text = path.read_text("utf-8")
        yield Source(path.relative_to(program).as_posix(), text, ast.parse(text))


@lru_cache(maxsize=1)  # the next question is mostly about the same module
def imports(source: Source) -> frozenset[str]:
    """What a module imports, in full: ``from a import b`` gives ``a`` and ``a.b``."""
    found: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def imports_package(source: Source, package: str) -> bool:
    """Whether a module imports a package or anything inside it."""
    return any(name == package or name.startswith(f"{package}.") for name in imports(source))


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of a chain of attributes, or nothing."""
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def calls(source: Source) -> Iterator[str]:
    """The dotted names that a module calls or passes around as functions."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute):
            yield dotted(node)


def functions(source: Source) -> Iterator[tuple[str, int]]:
    """Each function with the number of lines of its body, its docstring and its parameters apart."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            yield node.name, lines
