"""A process follows the audit by number while others write it: every entry once, in order (SEC-7, ADR 0054, PRF-3)."""

import asyncio
import json
from collections import Counter

import pytest

from gnomon.services.audit_log import AuditLog
from support.board_workers import open_database
from support.programs import race

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
WRITERS, TRANSACTIONS = 3, 80
RACE = """
    import asyncio, sys
    from support import audit_racers
    asyncio.run(getattr(audit_racers, sys.argv[1])(*sys.argv[2:]))
"""


def test_who_follows_by_number_reads_every_entry_once_and_in_order(url: str) -> None:
    """CONTRACT, "Audit entry": as all of it is read afterwards, when nobody writes any more."""
    names = [f"writer-{number}" for number in range(WRITERS)]
    read, *told = map(
        json.loads,
        race(RACE, ("follow", url, WRITERS), *[("tell", url, name, TRANSACTIONS) for name in names]),
    )

    async def afterwards() -> list[list[object]]:
        database = open_database(url)
        found = await AuditLog(database).after(0, 10**6)
        await database.close()
        return [[entry.seq, entry.subject_id] for entry in found]

    every = asyncio.run(afterwards())
    missed = len({subject for _, subject in every} - {subject for _, subject in read})
    assert missed == 0, f"{missed} of {len(every)} entries were passed over"
    assert read == every
    assert [seq for seq, _ in read] == sorted({seq for seq, _ in read})
    assert Counter(subject for _, subject in read) == Counter(subject for one in told for subject in one)
    for actor in names:  # what one transaction told stands in the order in which it was told
        own = [subject.split("/")[1:] for _, subject in read if subject.startswith(f"{actor}/")]
        for each in range(TRANSACTIONS):
            parts = [
                (int(part), int(n)) for number, *rest in own[:-1] if number == str(each) for part, n in [rest]
            ]
            assert parts == sorted(parts)
