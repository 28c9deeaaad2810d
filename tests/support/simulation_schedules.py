"""The schedules of one simulation, drawn by its seed: every policy, cadences whose slots plain arithmetic can tell."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from support.house import AGENT

MINUTES = (5, 5, 7, 10, 15, 30)


def drawn(
    rng: random.Random, count: int, start: datetime, *, on_lost: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Definitions as people write them, for a simulation that begins at ``start``."""
    return [_definition(rng, index, start, on_lost=on_lost) for index in range(count)]


def _definition(
    rng: random.Random, index: int, start: datetime, *, on_lost: tuple[str, ...]
) -> dict[str, Any]:
    cadence = _cadence(rng, start)
    made: dict[str, Any] = {
        "name": f"schedule {index}",
        "target": {"kind": "agent", "id": AGENT},
        "cadence": cadence,
        "query": rng.choice(("go", "for {{now}} after {{runCount}}")),
        "overlap": rng.choice(("skip", "skip", "skip", "queue_one", "queue_one", "cancel_running", "allow")),
        "catch_up": rng.choice(("latest", "latest", "none")),
        "on_lost": rng.choice(on_lost),
        "timeout_seconds": rng.choice((20, 90, 240, 400, 900)),
        "retry": rng.choice(
            (
                {"max_attempts": 1},
                {"max_attempts": 2, "backoff_seconds": 5},
                {"max_attempts": 3, "backoff_seconds": 30, "backoff_max_seconds": 45},
            )
        ),
        "failure_limit": rng.choice((2, 3, 5, 100)),
        "jitter_seconds": rng.choice((0, 0, 0, 20)),
        "session_mode": rng.choice(("fresh", "fresh", "fixed")),
    }
    if rng.random() < 0.2:
        made["misfire_grace_seconds"] = rng.choice((30, 120, 1_200))
    if rng.random() < 0.15:
        made["max_runs"] = rng.choice((1, 2, 4))
    if cadence["unit"] == "minute" and rng.random() < 0.2:
        made["starts_at"] = _written(start + timedelta(minutes=rng.randrange(5, 30)))
    if cadence["unit"] == "minute" and rng.random() < 0.2:
        made["ends_at"] = _written(start + timedelta(minutes=rng.randrange(62, 90)))
    return made


def _cadence(rng: random.Random, start: datetime) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.7:
        return {"unit": "minute", "every": rng.choice(MINUTES)}
    if kind < 0.8:
        return {"unit": "hour", "every": 1}
    at = start.astimezone(UTC) + timedelta(hours=5, minutes=30)  # Asia/Kolkata has no other offset
    if kind < 0.9:
        times = sorted({f"{at + timedelta(minutes=rng.randrange(8, 80)):%H:%M}" for _ in range(4)})
        return {"unit": "day", "every": 1, "at": times, "zone": "Asia/Kolkata"}
    soon = at + timedelta(minutes=rng.randrange(5, 60))
    return {"unit": "once", "at": f"{soon:%Y-%m-%dT%H:%M:%S}", "zone": "Asia/Kolkata"}


def _written(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
