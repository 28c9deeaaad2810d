"""``gnomon verify``: the whole database judged by its invariants, on the database itself (OPS-7).

No server is asked: whoever doubts it should not have to trust it. Exit code 0 means that every invariant holds.
"""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.command import Exit, Failed, local
from gnomon.cli.counting import counted
from gnomon.cli.terminal import Terminal
from gnomon.domain.breach import TOLD, Breach

if TYPE_CHECKING:
    from gnomon.services.verify import Verified
    from gnomon.settings import Settings


class _Report:
    """What is printed of each breach as it is found, and what of all of them at the end."""

    def __init__(self, out: Terminal, limit: int) -> None:
        self._out = out
        self._limit = limit
        self._found: Counter[str] = Counter()
        self.named: list[dict[str, Any]] = []

    def take(self, breach: Breach) -> None:
        """Name a breach, up to the limit of its invariant."""
        name = breach.invariant.value
        self._found[name] += 1
        if self._found[name] > self._limit:
            return
        rows = [{"table": row.table, "key": row.key} for row in breach.rows]
        rules = TOLD[breach.invariant].rules
        if self._out.as_json:
            self.named.append({"invariant": name, "rules": rules, "sentence": breach.sentence, "rows": rows})
            return
        self._out.line(f"{name} ({rules})")
        self._out.sentence(f"  {breach.sentence}")
        for row in rows:
            self._out.line(f"    {row['table']} {row['key']}")

    def close(self, verified: "Verified") -> None:
        """Say what was judged."""
        if self._out.as_json:
            self._out.data(self._document(verified))
            return
        for name, count in self._found.items():
            if count > self._limit:
                rest = count - self._limit
                self._out.note(
                    f"There {'is' if rest == 1 else 'are'} {rest:,} more of {name}: --limit {count} names all."
                )
        for sentence in verified.left_out:
            self._out.note(sentence)
        tables = ", ".join(counted(count, *_called(name)) for name, count in verified.rows.items() if count)
        if verified.is_clean:
            told = f"Clean: {len(TOLD)} invariants hold over {tables or 'an empty database'}."
        else:
            total, broken = sum(verified.breaches.values()), sum(map(bool, verified.breaches.values()))
            told = (
                f"{counted(total, 'breach', 'breaches')} of {broken} of {len(TOLD)} invariants over {tables}."
            )
        self._out.sentence(told)

    def _document(self, verified: "Verified") -> dict[str, Any]:
        return {
            "clean": verified.is_clean,
            "rows": verified.rows,
            "invariants": [
                {
                    "name": name.value,
                    "rules": told.rules,
                    "over": told.over,
                    "breaches": verified.breaches[name],
                }
                for name, told in TOLD.items()
            ],
            "breaches": self.named,
            "left_out": list(verified.left_out),
        }


def _called(table: str) -> tuple[str, str]:
    """One row of a table and several, as people call them."""
    if table == "audit":
        return "audit entry", "audit entries"
    many = table.replace("_", " ").replace("api", "API")
    return many.removesuffix("s"), many


def verify(
    out: Terminal,
    *,
    limit: Annotated[
        int, typer.Option(min=1, help="How many breaches of each invariant are named; the rest is counted.")
    ] = 100,
    database_url: Annotated[
        str | None, typer.Option("--database-url", help="The database.", show_default="./gnomon.db")
    ] = None,
) -> None:
    """Judge the whole database by its invariants and name each breach, with its rows; exit 1 where there is one.

    It works on the database itself, beside whatever else does, and changes nothing.
    """
    import asyncio

    from gnomon.adapters import logs
    from gnomon.settings import load

    settings = load(database_url=database_url)
    logs.configure(level="error", as_json=False)
    report = _Report(out, limit)
    with asyncio.Runner() as runner:
        verified = runner.run(_judge(settings, report))
    report.close(verified)
    if not verified.is_clean:
        raise typer.Exit(Exit.FAILED)


async def _judge(settings: "Settings", report: _Report) -> "Verified":
    from gnomon.wiring import is_made, open_center

    if not await is_made(settings):
        detail = f"There is no database at {settings.database_place}."
        raise Failed({"detail": detail, "code": "no_database"}, Exit.UNREACHABLE)
    center = await open_center(settings, dispatch=False, work=False)
    try:
        return await center.verify.run(report.take)
    finally:
        await center.stop()


def register(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    local(app, "verify", rich_help_panel=panel)(verify)
