"""The list of guards is in order: each mutant still applies, its test is there, the table is up to date (PRF-4).

``make mutants`` runs all of them; here a few are, so that the script itself is known to work.
"""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from support import mutants, programs
from support.mutations import Mutant
from support.source import PROGRAM, ROOT

EVERY = mutants.every()


@cache
def functions(file: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("mutant", EVERY, ids=lambda m: f"{m.where} {m.guard}"[:90])
def test_a_mutant_still_applies_and_its_test_is_there(mutant: Mutant) -> None:
    """PRF-4: a guard that was written anew needs its row written anew."""
    text = (PROGRAM / mutant.file).read_text("utf-8")
    assert mutants.mutated(text, mutant) != text
    file, _, name = mutant.test.partition("::")
    assert not name or name.partition("[")[0] in functions(ROOT / file)


def test_no_mutant_stands_twice() -> None:
    counted = Counter((mutant.file, mutant.within, mutant.old, mutant.new) for mutant in EVERY)
    assert [key for key, count in counted.items() if count > 1] == []


def test_the_table_is_up_to_date() -> None:
    """PRF-4: ``python tests/support/mutants.py --write`` writes it."""
    assert mutants.TABLE.read_text("utf-8") == mutants.table(EVERY)


GUARDED = (
    "claim",
    "renew",
    "close",
    "close_by_fence",
    "close_queued",
    "requeue",
    "give_back",
    "lose",
    "insert_attempt",
    "checkpoint",
    "event",
    "ask_cancel",
)
DOUBLED = {
    ("claim", "status = 'queued'"): "a check of the schema keeps claimable_at away from any other status"
}


def conditions(name: str) -> list[str]:
    """The conditions of a statement of ``runs.sql``, the choice of its row apart."""
    text = (PROGRAM / "stores" / "sql" / "runs.sql").read_text("utf-8")
    block = re.sub(r"\n\s*--.*", "", text.split(f"-- name: {name}\n")[1].split("\n-- name:")[0])
    where = re.split(
        r"\nON CONFLICT|\nRETURNING|;", re.split(r"(?:\n|FROM runs )WHERE ", block, maxsplit=1)[1]
    )[0]
    found = [" ".join(part.split()) for part in re.split(r"\s+AND\s+", where)]
    return [condition for condition in found if not condition.startswith("id = ")]


@pytest.mark.parametrize("name", GUARDED)
def test_every_condition_of_a_claim_and_of_a_holder_has_a_mutant(name: str) -> None:
    """PRF-4: whoever adds a condition to one of these statements adds a row, or says here why not."""
    old = [" ".join(mutant.old.split()) for mutant in EVERY if mutant.within == name]
    found = conditions(name)
    assert found
    missing = [one for one in found if not any(one in text for text in old) and (name, one) not in DOUBLED]
    assert missing == []


@pytest.mark.process
def test_a_sample_of_them_goes_red() -> None:
    """PRF-4."""
    program = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = programs.run(program, mutants.__file__, "--every", 48)
    assert done.returncode == 0, done.stdout + done.stderr


IDLE = """
    from support import mutants, programs
    from support.mutations import Mutant

    test = "tests/unit/domain/test_streak.py"
    print(len(mutants.survivors([Mutant("nothing", "domain/streak.py", "streak + 1", "1 + streak", test)])))
"""


@pytest.mark.process
def test_a_mutant_that_changes_nothing_is_told() -> None:
    """PRF-4: the script itself can fail."""
    done = programs.run(IDLE)
    assert done.stdout.splitlines()[-1].endswith("1"), done.stdout + done.stderr


def test_a_text_that_is_not_there_once_is_refused() -> None:
    twice = Mutant("x", "domain/streak.py", "streak", "", "tests/unit/domain/test_streak.py")
    with pytest.raises(ValueError, match="times"):
        mutants.mutated((PROGRAM / twice.file).read_text("utf-8"), twice)
