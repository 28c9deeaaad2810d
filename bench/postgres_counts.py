"""What PostgreSQL is asked to do: round trips, log, the claim beside runs in flight, an idle process (P9, P10, P12, P18)."""

from collections.abc import Iterable
from statistics import median

from bench.postgres_fill import arm, fill, fly
from bench.postgres_place import Place, ask
from bench.rounds import child, interleave, tell

SCHEDULES = 100_000
FLYING = 10_000
IDLE_SECONDS = 60
# what a claim says: what is due, what becomes of its targets, the write; and the one thing that an end says
DUE, TARGETS, RECORDS = "ORDER BY next_fire_at", ".agents", ".occurrences ("
ENDS = "duration_us ="


def transactions(statements: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The statements of each transaction; one that stands alone is a transaction of its own."""
    opened: dict[str, list[str]] = {}
    done: list[list[str]] = []
    for backend, text in statements:
        words = text.partition(": ")[2]
        if words.startswith("BEGIN"):
            opened[backend] = [words]
        elif backend in opened:
            opened[backend].append(words)
            if words.startswith(("COMMIT", "ROLLBACK")):
                done.append(opened.pop(backend))
        else:
            done.append([words])
    return done


def trips(place: Place) -> None:
    url = place.fresh("counted")
    fill(url, SCHEDULES)
    arm(url, SCHEDULES, 3_000, 0)
    place.count_statements(url)
    since = place.mark()
    child("-m", "bench.postgres_trial", "work", url, "3000", "100", "1000")
    found = transactions(place.statements(url, since))
    for what, steps, last in (
        ("a claim of 100, its looks included", (DUE, TARGETS, RECORDS), RECORDS),
        ("a flush of what has ended", (ENDS,), ENDS),
    ):
        counts = spoken(found, steps, last)
        middle = median(counts)
        tell(
            "P9",
            what=f"{what}: round trips",
            count=middle,
            number=len(counts),
            bar=3,
            goal=2,
            holds=middle <= 3,
        )


def spoken(found: list[list[str]], steps: tuple[str, ...], last: str) -> list[int]:
    """How many statements each piece of work took, one that ends with the transaction that says ``last``."""
    counts, so_far = [], 0
    for each in found:
        if any(step in text for step in steps for text in each):
            so_far += len(each)
            if any(last in text for text in each):
                counts.append(so_far)
                so_far = 0
    return counts


def log(place: Place) -> None:
    url = place.fresh("logged")
    fill(url, SCHEDULES)
    arm(url, SCHEDULES, 10_000, 0)
    ask(url, "ALTER SYSTEM SET autovacuum = off")  # it writes for other databases as well
    ask(url, "SELECT pg_reload_conf()")
    images = "SELECT pg_current_wal_lsn(), (SELECT wal_fpi FROM pg_stat_wal)"
    start, before = ask(url, images)[0]
    child("-m", "bench.postgres_trial", "work", url, "10000", "100", "1000")
    after = ask(url, images)[0][1]
    written = float(ask(url, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1)", start)[0][0]) / 10_000
    ask(url, "ALTER SYSTEM RESET autovacuum")
    ask(url, "SELECT pg_reload_conf()")
    tell("P10", what="bytes of log for each slot, claim to close", bytes=written, page_images=(after - before) / 10_000,
         bar=3_000, goal=2_000, holds=written <= 3_000)  # fmt: skip


def flights(place: Place) -> None:
    urls: dict[str, str] = {}
    for name, flying, due in (
        ("none in flight, 10 due", 0, 10),
        ("10,000 in flight, 10 due", FLYING, 10),
        ("none in flight, none due", 0, 0),
        ("10,000 in flight, none due", FLYING, 0),
    ):
        urls[name] = url = place.fresh(f"flight{len(urls)}")
        fill(url, SCHEDULES)
        if flying:
            fly(url, SCHEDULES, flying)
        if due:
            arm(url, SCHEDULES, due, 1)
    found = interleave(
        {
            name: lambda url=url: float(
                child("-m", "bench.postgres_trial", "claims", url, "300")["microseconds"]
            )  # type: ignore[misc]
            for name, url in urls.items()
        }
    )
    for some in ("10 due", "none due"):
        busy, free = found[f"10,000 in flight, {some}"], found[f"none in flight, {some}"]
        ratios = [one / other for one, other in zip(busy, free, strict=True)]
        tell("P12", what=f"the claim's looks, {some}: 10,000 in flight to none", microseconds=median(busy),
             without=median(free), ratio=median(ratios), best=min(ratios), bar=1.5, goal=1.2,
             holds=min(ratios) <= 1.5)  # fmt: skip


def idle(place: Place) -> None:
    url = place.fresh("idle")
    fill(url, 1_000)
    place.count_statements(url)
    since = place.mark()
    found = child("-m", "bench.postgres_trial", "idle", url, str(IDLE_SECONDS))
    statements = place.statements(url, since)
    quiet = quiet_part(statements)
    done = transactions(quiet)
    for what, found_now in (("statements, BEGIN and COMMIT included", quiet), ("transactions", done)):
        count = len(found_now) * 60 / IDLE_SECONDS
        tell("P18", what=f"{what}, a minute of an idle process", count=count, cpu_percent=found["cpu_percent"],
             bar=12, goal=4, holds=count <= 12)  # fmt: skip


def quiet_part(statements: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What lies between the two marks that the trial sets."""
    marks = [n for n, (_, text) in enumerate(statements) if "bench mark" in text]
    return statements[marks[0] + 1 : marks[1]]


def main(place: Place) -> None:
    trips(place)
    log(place)
    flights(place)
    idle(place)
