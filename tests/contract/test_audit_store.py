"""The audit log on every engine: appended in order, read after a number, never changed (SEC-7)."""

import pytest

from gnomon.domain.audit import Action
from gnomon.stores import audit
from gnomon.stores.audit import NewEntry
from gnomon.stores.database import Database
from support.databases import START


async def test_entries_come_back_in_order_with_what_was_said(database: Database) -> None:
    entries = [
        NewEntry("key_1", Action.CREATE, "agent", "agt_1"),
        NewEntry("worker", Action.CLAIM, "run", "run_1", 7, {"status": "running", "text": "é\u2028"}),
    ]
    await database.write(lambda tx: audit.append_many(tx, entries))
    await database.write(
        lambda tx: audit.append(
            tx, actor="key_1", action=Action.DELETE, subject_kind="agent", subject_id="agt_1"
        )
    )
    found = await database.read(lambda tx: audit.after(tx, 0, 10))
    assert [entry.action for entry in found] == [Action.CREATE, Action.CLAIM, Action.DELETE]
    assert [entry.seq for entry in found] == sorted(entry.seq for entry in found)
    assert found[1].fence == 7
    assert found[1].detail == {"status": "running", "text": "é\u2028"}
    assert found[0].detail == {}
    assert {entry.at for entry in found} == {START}


async def test_reading_goes_on_after_a_number_and_narrows_by_action_and_subject(database: Database) -> None:
    entries = [
        NewEntry("x", Action.CREATE if n % 2 else Action.UPDATE, "agent", f"agt_{n % 3}") for n in range(9)
    ]
    await database.write(lambda tx: audit.append_many(tx, entries))
    first = await database.read(lambda tx: audit.after(tx, 0, 4))
    rest = await database.read(lambda tx: audit.after(tx, first[-1].seq, 100))
    assert len(first) == 4
    assert len(rest) == 5
    created = await database.read(lambda tx: audit.after(tx, 0, 100, action="CREATE", subject_id="agt_1"))
    assert [entry.subject_id for entry in created] == ["agt_1"] * len(created)
    assert len(created) == 2


@pytest.mark.parametrize("nothing", [[], ()])
async def test_appending_nothing_is_nothing(database: Database, nothing: list[NewEntry]) -> None:
    await database.write(lambda tx: audit.append_many(tx, nothing))
    assert await database.read(lambda tx: audit.after(tx, 0, 10)) == []
