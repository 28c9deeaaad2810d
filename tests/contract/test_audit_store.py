"""The audit log on every engine: appended in order, read after a number, never changed (SEC-7)."""

import json

import pytest

from gnomon.domain.audit import Action, AuditEntry
from gnomon.domain.run import RunStatus
from gnomon.stores import audit, runs
from gnomon.stores.audit import NewEntry, new_entry
from gnomon.stores.database import Database, Tx
from gnomon.stores.run_rows import Closing
from support.databases import START
from support.rows import AT, RUN, RUNNING, add, execute


async def test_entries_come_back_in_order_with_what_was_said(database: Database) -> None:
    entries = [
        new_entry("key_1", Action.CREATE, "agent", "agt_1"),
        new_entry("worker", Action.CLAIM, "run", "run_1", 7, {"status": "running", "text": "é\u2028"}),
    ]
    await append(database, entries)
    await database.write(
        lambda tx: audit.append(
            tx, actor="key_1", action=Action.DELETE, subject_kind="agent", subject_id="agt_1"
        )
    )
    found = await read(database, 0, 10)
    assert [entry.action for entry in found] == [Action.CREATE, Action.CLAIM, Action.DELETE]
    assert [entry.seq for entry in found] == sorted(entry.seq for entry in found)
    assert found[1].fence == 7
    assert found[1].detail == {"status": "running", "text": "é\u2028"}
    assert found[0].detail == {}
    assert {entry.at for entry in found} == {START}


async def test_reading_goes_on_after_a_number_and_narrows_by_action_and_subject(database: Database) -> None:
    entries = [
        new_entry("x", Action.CREATE if n % 2 else Action.UPDATE, "agent", f"agt_{n % 3}") for n in range(9)
    ]
    await append(database, entries)
    first = await read(database, 0, 4)
    rest = await read(database, first[-1].seq, 100)
    assert len(first) == 4
    assert len(rest) == 5
    created = await database.read(lambda tx: audit.after(tx, 0, 100, action="CREATE", subject_id="agt_1"))
    assert [entry.subject_id for entry in created] == ["agt_1"] * len(created)
    assert len(created) == 2


async def append(database: Database, entries: list[NewEntry]) -> None:
    await database.write(lambda tx: audit.append_many(tx, entries))


async def read(
    database: Database, seq: int, limit: int, action: str | None = None, subject: str | None = None
) -> list[AuditEntry]:
    return await database.read(lambda tx: audit.after(tx, seq, limit, action=action, subject_id=subject))


async def rows(database: Database) -> list[int]:
    """How many entries each row holds."""
    return [row["how_many"] for row in await execute(database, "SELECT how_many FROM audit ORDER BY seq")]


def claims(count: int, action: Action = Action.CLAIM, actor: str = "prc_1") -> list[NewEntry]:
    return [new_entry(actor, action, "run", f"run_{n:04d}", n + 1, {"attempt": n}) for n in range(count)]


async def test_what_happened_to_many_at_once_is_one_row_and_an_entry_for_each(database: Database) -> None:
    """SEC-7, ADR 0052: the same entries, in their order, each with a number of its own."""
    await append(database, claims(3))
    await append(database, claims(1))
    assert await rows(database) == [3, 1]
    found = await read(database, 0, 10)
    assert [(one.actor, one.action, one.subject_kind) for one in found] == [
        ("prc_1", Action.CLAIM, "run")
    ] * 4
    assert [(one.subject_id, one.fence, one.detail) for one in found] == [
        ("run_0000", 1, {"attempt": 0}),
        ("run_0001", 2, {"attempt": 1}),
        ("run_0002", 3, {"attempt": 2}),
        ("run_0000", 1, {"attempt": 0}),
    ]
    assert [one.seq for one in found] == sorted({one.seq for one in found})


async def test_a_row_of_one_entry_reads_as_it_is(database: Database) -> None:
    """Whoever looks at the table finds the subject where it always was."""
    await append(database, claims(1))
    (row,) = await execute(database, "SELECT subject_id, fence, detail, entries FROM audit")
    assert row == {"subject_id": "run_0000", "fence": 1, "detail": None, "entries": None} | {
        "detail": row["detail"]
    }
    assert json.loads(row["detail"]) == {"attempt": 0}
    (entry,) = await execute(database, "SELECT subject_id, fence, detail FROM audit_entries")
    assert entry == {"subject_id": "run_0000", "fence": 1, "detail": row["detail"]}


async def test_only_what_is_alike_and_follows_each_other_goes_together(database: Database) -> None:
    """SEC-7: the order of the entries is that in which they were given, whatever they tell."""
    told = [
        *claims(2),
        *claims(1, Action.RELEASE),
        *claims(3),
        *claims(2, actor="prc_2"),
        new_entry("prc_2", Action.CLAIM, "task", "tsk_1", 4),
    ]
    await append(database, told)
    assert await rows(database) == [2, 1, 3, 2, 1]
    found = await read(database, 0, 100)
    assert [(one.actor, one.action, one.subject_kind, one.subject_id) for one in found] == [
        (actor, action, kind, json.loads(entry)[0]) for actor, action, kind, entry in told
    ]


@pytest.mark.parametrize("action", [Action.EXPIRE, Action.CLOCK_JUMP, Action.REALIGN])
async def test_what_is_looked_for_by_its_action_has_rows_of_its_own(
    database: Database, action: Action
) -> None:
    """UI-1, OPS-7: the overview counts such rows by an index, and verify looks into their details."""
    await append(database, claims(3, action))
    assert await rows(database) == [1, 1, 1]


async def test_no_row_has_more_entries_than_it_has_numbers(database: Database) -> None:
    """SEC-7: beyond a thousand they are split."""
    await append(database, claims(2_001))
    assert await rows(database) == [1_000, 1_000, 1]
    found = await read(database, 0, 3_000)
    assert [one.fence for one in found] == list(range(1, 2_002))
    assert len({one.seq for one in found}) == 2_001


async def test_on_sqlite_entries_are_numbered_without_a_gap(database: Database, engine: str) -> None:
    """SEC-7, OPS-7: so that a missing one is seen."""
    for count in (1, 3, 1_001, 1, 2):
        await append(database, claims(count))
    found = await read(database, 0, 2_000)
    assert [one.seq for one in found] == sorted({one.seq for one in found})
    if engine == "sqlite":
        assert [one.seq for one in found] == list(range(1, 1 + 3 + 1_001 + 1 + 2 + 1))


async def test_what_is_appended_after_a_clean_up_goes_on_behind_it(database: Database) -> None:
    """SEC-7; CONTRACT, "Audit entry": no number is given again, whatever retention took."""
    await append(database, claims(3))
    last = (await read(database, 0, 9))[-1].seq
    await execute(database, "UPDATE retention_floor SET audit_before = :at", at=AT + 1)
    await execute(database, "DELETE FROM audit")
    await append(database, claims(2))
    after = await read(database, last, 9)
    assert [one.subject_id for one in after] == ["run_0000", "run_0001"]
    assert after == await read(database, 0, 9)


@pytest.mark.parametrize("limit", [1, 2, 7])
@pytest.mark.parametrize(
    ("action", "subject"),
    [(None, None), (Action.CLAIM, None), (None, "run_0002"), (Action.RELEASE, "run_0001"), (None, "run_no")],
)
async def test_a_page_may_end_inside_a_row(
    database: Database, limit: int, action: Action | None, subject: str | None
) -> None:
    """SEC-7; CONTRACT, "Audit entry": whoever follows ``seq`` misses nothing and reads nothing twice."""
    for told in (claims(5), claims(1), claims(4, Action.RELEASE), claims(2)):
        await append(database, told)
    every = await read(database, 0, 100)
    wanted = [one for one in every if action in (None, one.action) and subject in (None, one.subject_id)]
    found: list[AuditEntry] = []
    for _ in range(len(wanted) // limit + 1):
        seq = found[-1].seq if found else 0
        found += await read(database, seq, limit, action, subject)
        assert len(found) % limit == 0 or len(found) == len(wanted)
    assert found == wanted
    for number, one in enumerate(every):  # from each entry on, wherever in its row it stands
        after = await read(database, one.seq, 100)
        assert after == every[number + 1 :]


async def test_where_nobody_writes_all_is_settled(database: Database) -> None:
    """ADR 0054: and nothing that was drawn for nothing holds a reader up."""
    for count in (3, 1):
        await append(database, claims(count))
    last = (await read(database, 0, 9))[-1].seq
    assert await database.look(audit.settled) == last
    until = await database.read(lambda tx: audit.after(tx, 0, 9, until=last - 1))
    assert [one.fence for one in until] == [1, 2, 3]


@pytest.mark.parametrize("lands", [(0, 1, 2), (1, 2), (2,), ()])
async def test_of_guarded_entries_those_stand_whose_row_landed(
    database: Database, lands: tuple[int, ...]
) -> None:
    """DSP-5: which ones is known inside the statement alone on one engine, and before it on the other."""
    for number in range(3):
        await add(database, "runs", {**RUN, **RUNNING}, id=f"run_{number:04d}", claim_id=f"clm_{number}")
    closing = [
        Closing(
            f"run_{n:04d}", RUNNING["owner"], RUNNING["fence"] if n in lands else 9, RunStatus.SUCCEEDED, 0
        )
        for n in range(3)
    ]

    async def work(tx: Tx) -> None:
        landed = await runs.close(tx, closing)
        told = [*claims(3, Action.RELEASE), new_entry("prc_1", Action.WARN, "run", "run_0001")]
        await audit.append_many(tx, told, landed, ["run_0000", "run_0001", "run_0002", "run_0001"])

    await database.write_guarded(work)
    found = await read(database, 0, 10)
    warned = [("WARN", "run_0001")] if 1 in lands else []
    assert [(one.action, one.subject_id) for one in found] == [
        *(("RELEASE", f"run_{n:04d}") for n in lands),
        *warned,
    ]
    assert await rows(database) == [len(lands)] * bool(lands) + [1] * len(warned)


async def test_any_text_of_a_detail_comes_back(database: Database) -> None:
    """Whatever JSON can say: one engine takes no zero byte, and half of a surrogate pair has no UTF-8."""
    details = [
        {"text": text}
        for text in ("\x00", "\ud800", '"]', "[\\", "é\u2028", "null", "x" * 100_000, "", "'", "1e999")
    ]
    told = [new_entry("prc_1", Action.SKIP, "schedule", "sch_1", None, detail) for detail in details]
    for many in (told, *([one] for one in told)):
        await append(database, many)
    found = await read(database, 0, 100)
    assert [one.detail for one in found] == details * 2


@pytest.mark.parametrize("nothing", [[], ()])
async def test_appending_nothing_is_nothing(database: Database, nothing: list[NewEntry]) -> None:
    await append(database, nothing)
    assert await read(database, 0, 10) == []
