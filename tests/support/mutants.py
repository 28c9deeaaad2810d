"""Takes each guard out, one at a time, and demands that the test named for it goes red (PRF-4).

    python tests/support/mutants.py            every mutant
    python tests/support/mutants.py renew      those whose place, guard or test holds the word
    python tests/support/mutants.py --write    write tests/mutants.md anew

A mutant is a row in ``tests/support/mutations/``. It is made in a copy of the source; the checkout is never touched.
Each runs in a forked child, so that pytest and the libraries are imported once.
"""

import argparse
import compileall
import contextlib
import importlib
import multiprocessing
import os
import pkgutil
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
TABLE = TESTS / "mutants.md"
BOUND_SECONDS = 60
_PLUGINS = ("anyio.pytest_plugin", "pytest_timeout", "_hypothesis_pytestplugin")
_IMPORTED_ONCE = ("pytest", "apsw", "hypothesis", "anyio._backends._asyncio")
sys.path[:0] = [str(TESTS)]

from support import mutations  # noqa: E402 - its folder has just been put on the path
from support.mutations import Mutant  # noqa: E402 - likewise

_HEAD = """# Mutants

Each guard against doing work twice, where it stands, and the test that goes red without it (PRF-4). Written by
`python tests/support/mutants.py --write` from `tests/support/mutations/`; checked by running that script without the
option.

Some guards stand twice on purpose, and no test can see one of the two missing: `status = 'queued'` in `claim` and in
`free_waiting`, `status = 'active'` in `claim_due`, `advance` and `realign` are held by the schema's checks as well,
which have their own rows here; a newer database is refused both before it is opened and inside the transaction.

| guard | where | goes red |
| --- | --- | --- |
"""


def every() -> list[Mutant]:
    """All mutants, in the order of their files."""
    found: list[Mutant] = []
    for module in sorted(pkgutil.iter_modules(mutations.__path__), key=lambda m: m.name):
        found += importlib.import_module(f"support.mutations.{module.name}").MUTANTS
    return found


def table(mutants: Iterable[Mutant]) -> str:
    """``tests/mutants.md`` as it should be."""

    def cell(text: str) -> str:
        return text.replace("|", "\\|")

    rows = [f"| {cell(m.guard)} | `{m.where}` | `{m.test.removeprefix('tests/')}` |" for m in mutants]
    return _HEAD + "\n".join(rows) + "\n"


def mutated(text: str, mutant: Mutant) -> str:
    """The text of the mutant's file without the guard.

    Raises:
        ValueError: what is to be replaced does not stand there exactly once.
    """
    start, end = 0, len(text)
    if mutant.within is not None:
        start = text.index(f"-- name: {mutant.within}\n")
        following = text.find("-- name:", start + 1)
        end = len(text) if following < 0 else following
    part = text[start:end]
    squeezed = part.replace("\n  AND", " AND") if mutant.old not in part else part
    if squeezed.count(mutant.old) != 1:
        raise ValueError(f"{mutant.where}: {mutant.old!r} stands there {squeezed.count(mutant.old)} times")
    return text[:start] + squeezed.replace(mutant.old, mutant.new) + text[end:]


def run(source: Path, tests: list[str]) -> tuple[int, str]:
    """Run tests over the program in ``source``, in a child of this process: pytest's exit code and what it printed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 70
        try:  # whatever a mutant raises, the child must not run on into what belongs to its parent
            os.dup2(write, 1)
            os.dup2(write, 2)
            code = _in_child(source, tests)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        output = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output.decode("utf-8", "replace")


def _in_child(source: Path, tests: list[str]) -> int:
    import pytest

    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(source), str(TESTS)])
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in [name for name in sys.modules if name == "support" or name.startswith("support.")]:
        del sys.modules[name]
    plugins = [part for name in _PLUGINS for part in ("-p", name)]
    quiet = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", *plugins]
    path = ["-o", f"pythonpath={source} {TESTS}", "--timeout", str(BOUND_SECONDS)]
    try:
        return int(pytest.main([*quiet, *path, *tests]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


@contextlib.contextmanager
def _made(file: Path, mutant: Mutant, number: int) -> Iterator[None]:
    """The mutant in its file, for a while. Each has a time of its own, so that no compiled copy passes for it."""
    before, stat = file.read_text("utf-8"), file.stat()
    file.write_text(mutated(before, mutant), "utf-8")
    os.utime(file, (stat.st_atime, stat.st_mtime + 10 * number))
    try:
        yield
    finally:
        file.write_text(before, "utf-8")
        os.utime(file, (stat.st_atime, stat.st_mtime))


def survivors(mutants: list[Mutant]) -> list[str]:
    """The mutants that no test noticed, each with why; an empty list is what is wanted."""
    for name in _IMPORTED_ONCE:
        importlib.import_module(name)
    workers = min(os.cpu_count() or 1, len(mutants))
    shares = [mutants[number::workers] for number in range(workers)]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        return [text for found in pool.map(_survivors, shares) for text in found]


def _survivors(mutants: list[Mutant]) -> list[str]:
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="gnomon-mutants-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(source, quiet=2)
        code, output = run(source, sorted({mutant.test for mutant in mutants}))
        if code != 0:
            return [f"the tests are not green to begin with:\n{output}"]
        for number, mutant in enumerate(mutants, start=1):
            with _made(source / "gnomon" / mutant.file, mutant, number):
                code, output = run(source, [mutant.test])
            red = (
                code == 1 or "\nFAILED " in output
            )  # a test may also bring pytest itself down after it failed
            if not red:
                found.append(f"{mutant.where}: {mutant.guard} ({mutant.test} ended {code})\n{output}")
            print("." if red else "F", end="", flush=True)  # noqa: T201 - a person waits
    return found


def main() -> int:
    """Run what the command line asks for; 1 where a mutant survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants whose place, guard or test holds one of these")
    parser.add_argument("--every", type=int, default=1, help="only each n-th of them: a sample")
    parser.add_argument("--write", action="store_true", help="write tests/mutants.md")
    given = parser.parse_args()
    mutants = every()
    if given.write:
        TABLE.write_text(table(mutants), "utf-8")
        return 0
    chosen = [
        mutant
        for mutant in mutants
        if not given.words
        or any(word in f"{mutant.where} {mutant.guard} {mutant.test}" for word in given.words)
    ]
    chosen = chosen[:: given.every]
    if not chosen:
        parser.error("no mutant holds any of these words")
    alive = survivors(chosen)
    print()  # noqa: T201 - after the dots
    for text in alive:
        print(text)  # noqa: T201 - the answer
    print(f"{len(chosen) - len(alive)} of {len(chosen)} mutants went red")  # noqa: T201 - likewise
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
