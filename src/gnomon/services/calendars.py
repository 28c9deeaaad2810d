"""Holiday calendars: made, read, edited, deleted (CAD-9). A changed one moves the next slots of who uses it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from gnomon.domain import calendar as forms
from gnomon.domain.audit import Action
from gnomon.domain.calendar import Calendar
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Conflict, Missing, RevisionStale
from gnomon.domain.form import Form, merged
from gnomon.domain.ids import Kind
from gnomon.domain.versions import Match, require
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import Wakeup
from gnomon.services.dedup import Once, Replay, run_once
from gnomon.services.mint import Mint
from gnomon.stores import audit, calendars
from gnomon.stores.database import Database, Tx, UniqueViolation

USERS_NAMED = 20
_JOB = f"{Kind.JOB.value}_"
OnChanged = Callable[[Tx, str, str], Awaitable[None]]


async def nobody(_tx: Tx, _slug: str, _by: str) -> None:
    """Where no schedule can use a calendar."""


class Calendars:
    """The calendars of one database.

    ``on_changed`` gets the transaction, the slug and the actor, and realigns the schedules that use the calendar, in the
    transaction that changes it.
    """

    def __init__(
        self, database: Database, clock: Clock, mint: Mint, signal: Wakeup, *, on_changed: OnChanged = nobody
    ) -> None:
        self._database = database
        self._clock = clock
        self._mint = mint
        self._signal = signal
        self._on_changed = on_changed

    async def create(
        self, caller: Caller, given: Mapping[str, Any], *, once: Once | None = None
    ) -> Calendar | Replay:
        """Make a calendar of its written form.

        Raises:
            Invalid: with every fault.
            Conflict: ``slug_taken``.
        """

        async def work(tx: Tx) -> Calendar:
            return await self.create_in(tx, caller, given)

        try:
            return await self._database.write(lambda tx: run_once(tx, once, work))
        except UniqueViolation as error:  # another process was first with the slug
            raise _taken(str(given.get("slug"))) from error

    async def create_in(self, tx: Tx, caller: Caller, given: Mapping[str, Any]) -> Calendar:
        """The same inside a transaction of the caller."""
        form = Form(given)
        draft = forms.read(form)
        form.finish()
        now = self._clock.now()
        calendar = Calendar(
            self._mint.make(Kind.CALENDAR), draft.slug, draft.name, draft.dates, 1, now, caller.actor, now
        )
        if await calendars.find(tx, draft.slug) is not None:
            raise _taken(draft.slug)
        calendar = await calendars.insert(tx, calendar)
        await _note(tx, caller, Action.CREATE, calendar)
        return calendar

    async def get(self, name: str) -> Calendar:
        """The calendar of this id or slug.

        Raises:
            Missing: there is none.
        """
        return await self._database.read(lambda tx: there(tx, name))

    async def page(self, after: str, limit: int) -> list[Calendar]:
        """Up to ``limit`` calendars after an id, the oldest first."""
        return await self._database.read(lambda tx: calendars.page(tx, after, limit))

    async def edit(
        self, caller: Caller, name: str, patch: Mapping[str, Any], *, match: Match = None
    ) -> Calendar:
        """Lay a patch over a calendar; one that changes nothing changes nothing.

        Raises:
            Invalid: with every fault.
            Missing: there is none of this id or slug.
            RevisionStale: it was edited since the caller read it.
        """

        async def work(tx: Tx) -> Calendar:
            return await self.edit_in(tx, caller, name, patch, match=match)

        saved = await self._database.write(work)
        self._signal.notify()
        return saved

    async def edit_in(
        self, tx: Tx, caller: Caller, name: str, patch: Mapping[str, Any], *, match: Match = None
    ) -> Calendar:
        """The same inside a transaction of the caller, who notifies after the commit."""
        standing = await there(tx, name)
        require(match, standing.id, standing.version)
        form = Form(merged(forms.to_written(standing), patch))
        draft = forms.read(form)
        if draft.slug != standing.slug:
            form.fault("slug", "can't be changed: schedules know the calendar by it")
        form.finish()
        wanted = replace(standing, name=draft.name, dates=draft.dates)
        if wanted == standing:
            return standing
        saved = await calendars.update(tx, wanted)
        if saved is None:
            raise RevisionStale(f"{standing.id} was edited at the same moment. Read it again, then edit.")
        await _note(tx, caller, Action.UPDATE, saved)
        if saved.dates != standing.dates:
            await self._on_changed(tx, saved.slug, caller.actor)
        return saved

    async def delete(self, caller: Caller, name: str, *, match: Match = None) -> None:
        """Delete a calendar that neither a schedule nor a job uses.

        Raises:
            Missing: there is none of this id or slug.
            Conflict: ``calendar_in_use``; ``data`` names some of the ``schedules`` and ``jobs`` that use it.
            RevisionStale: it was edited since the caller read it.
        """

        async def work(tx: Tx) -> None:
            standing = await there(tx, name)
            require(match, standing.id, standing.version)
            users = await calendars.users(tx, standing.slug, USERS_NAMED)
            if users:
                raise Conflict(
                    f'Schedules or jobs use the calendar "{standing.slug}", and would fire on its holidays without it: '
                    f"{', '.join(users)}. Take it out of them first.",
                    code="calendar_in_use",
                    data={
                        "schedules": [user for user in users if not user.startswith(_JOB)],
                        "jobs": [user for user in users if user.startswith(_JOB)],
                    },
                )
            await calendars.delete(tx, standing.id)
            await _note(tx, caller, Action.DELETE, standing)

        await self._database.write(work)


async def there(tx: Tx, name: str) -> Calendar:
    """The calendar of this id or slug.

    Raises:
        Missing: there is none.
    """
    found = await calendars.find(tx, name)
    if found is None:
        raise Missing(f'There is no calendar "{name[:64]}".')
    return found


def _taken(slug: str) -> Conflict:
    return Conflict(f'There is a calendar "{slug}" already.', code="slug_taken", data={"slug": slug})


async def _note(tx: Tx, caller: Caller, action: Action, calendar: Calendar) -> None:
    await audit.append(
        tx,
        actor=caller.actor,
        action=action,
        subject_kind="calendar",
        subject_id=calendar.id,
        detail={"slug": calendar.slug, "version": calendar.version},
    )
