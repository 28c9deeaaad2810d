"""What real processes call under chaos: it writes down each call's begin and end, and does what the query says.

``RECORDER`` is a module that the product imports from its working directory. O_APPEND writes of a short line are
whole, whoever dies meanwhile; instants are of the machine's monotonic clock, which every process shares.
"""

import json
from pathlib import Path
from typing import Any

PLANS = ("0", "0", "0.3", "0.3", "1.0", "2.0", "fail", "hang")
RECORDER = """
import asyncio, json, os, time
from pathlib import Path

HEARD = os.open(Path(__file__).with_name("heard.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def note(**line):
    os.write(HEARD, (json.dumps({"pid": os.getpid(), "at": time.clock_gettime(time.CLOCK_BOOTTIME), **line}) + "\\n").encode())


async def hear(invocation):
    nominal = invocation.nominal_fire_at
    call = {"run": invocation.run_id, "fence": invocation.fence, "attempt": invocation.attempt}
    note(begins=True, key=invocation.idempotency_key, nominal=nominal and nominal.timestamp(), plan=invocation.query, **call)
    how = "gone"
    try:
        if invocation.query == "fail":
            raise RuntimeError("as it was told")
        await asyncio.sleep(600 if invocation.query == "hang" else float(invocation.query))
        how = "answered"
        return "heard"
    except BaseException as error:
        how = type(error).__name__
        raise
    finally:
        note(begins=False, how=how, **call)
"""


def lines(folder: Path) -> list[dict[str, Any]]:
    """What was written down so far."""
    file = folder / "heard.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
