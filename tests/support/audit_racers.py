"""Writers and a reader of the audit as real processes: what each told, and what was read beside them."""

import asyncio
import json
import random
import sys

from gnomon.adapters.clock import SystemClock
from gnomon.domain.audit import Action
from gnomon.services.audit_log import AuditLog
from gnomon.stores import audit
from gnomon.stores.audit import new_entry
from gnomon.stores.database import Database, Tx
from support.board_workers import open_database

PAGE = 20
SECONDS = 20.0  # after which a reader says what it has, and that is not all


async def tell(url: str, name: str, transactions: str) -> None:
    """In a process of its own: transactions of one to three statements, two at a time. It prints what it told."""
    database, chance, told = open_database(url), random.Random(name), list[str]()
    await _let_go(database)

    async def line(number: int) -> None:
        for each in range(number, int(transactions), 2):
            sizes = [chance.choice((1, 1, 1, 3)) for _ in range(chance.randrange(1, 4))]
            subjects = [[f"{name}/{each}/{part}/{n}" for n in range(size)] for part, size in enumerate(sizes)]

            async def work(tx: Tx, subjects: list[list[str]] = subjects) -> None:
                for some in subjects:
                    await audit.append_many(tx, [new_entry(name, Action.UPDATE, "agent", s) for s in some])
                    await tx.send()

            await (database.write if chance.random() < 0.5 else database.write_guarded)(work)
            told.extend(subject for some in subjects for subject in some)

    await asyncio.gather(line(0), line(1))
    # by which a reader knows that this writer tells nothing more
    end = f"{name}/end"
    await database.write(
        lambda tx: audit.append(tx, actor=name, action=Action.UPDATE, subject_kind="agent", subject_id=end)
    )
    sys.stdout.write(json.dumps([*told, end]))
    await database.close()


async def follow(url: str, writers: str) -> None:
    """In a process of its own: page by page from number 0 on, until each writer has said its last. It prints all of it."""
    database, clock = open_database(url), SystemClock()
    await _let_go(database)
    log, read, ended, seq = AuditLog(database), list[tuple[int, str]](), 0, 0
    until = clock.monotonic() + SECONDS
    while ended < int(writers) and clock.monotonic() < until:
        page = await log.after(seq, PAGE)
        read += [(entry.seq, entry.subject_id) for entry in page]
        ended += sum(entry.subject_id.endswith("/end") for entry in page)
        seq = page[-1].seq if page else seq
    sys.stdout.write(json.dumps(read))
    await database.close()


async def _let_go(database: Database) -> None:
    await database.read(lambda tx: audit.after(tx, 0, 1))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
