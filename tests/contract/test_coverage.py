"""The contract covers the stores: each of their functions is called by a test of this folder, and so on both engines."""

import ast
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import gnomon.stores

HERE = Path(__file__).parent
# a test that is repeated over several stores calls each by one name (test_named_stores.py)
REPEATED = {"store": ("agents", "teams", "calendars")}


def promised() -> set[str]:
    """``module.function`` for each public function that takes a transaction."""
    found = set()
    for info in pkgutil.iter_modules(gnomon.stores.__path__, "gnomon.stores."):
        module = import_module(info.name)
        for name, function in inspect.getmembers(module, inspect.iscoroutinefunction):
            if function.__module__ == info.name and not name.startswith("_"):
                found.add(f"{info.name.rpartition('.')[2]}.{name}")
    return found


def called() -> set[str]:
    """``module.function`` for each call that a test of this folder makes on the name of a module, or passes on."""
    return {
        f"{store}.{node.attr}"
        for file in HERE.glob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        for store in REPEATED.get(node.value.id, (node.value.id,))
    }


def test_every_function_of_every_store_is_called_on_both_engines() -> None:
    assert len(promised()) > 100
    assert promised() - called() == set()
