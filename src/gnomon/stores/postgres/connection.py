"""A connection: how it is made, and how the named statements run on it, each as soon as it must and no sooner.

Nothing here relies on the state of a session, so that a pooler may give each transaction another server connection:
names carry their schema, and timeouts are set inside the transaction, in the same trip that begins it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import asyncpg

from gnomon.domain.errors import UnusableDatabase
from gnomon.stores.database import Landed, Row, Rows, Value, kept
from gnomon.stores.postgres.address import Address
from gnomon.stores.postgres.failures import FAILURES, is_definite, unknown
from gnomon.stores.postgres.statements import Catalogue, Part, PutOff, SetStatement

Raw: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
CONNECT_SECONDS = 10.0
_LAST = "something was to be the last of its work"
STATEMENT_SECONDS = 20.0  # after that the line is given up: a proxy may hold it open for ever


# What is looked at and written is found by its key, and planned once. A plan that was made while a table was small would
# read it whole from then on, however large it has grown since, until the server has analysed it. A pooler may not take
# these: then it is slower at first, and right all the same.
BY_KEY = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
}
# the same as the server has them by itself, for whoever reads much
AS_THE_SERVER_LIKES = {
    "enable_seqscan": "on",
    "enable_hashjoin": "on",
    "enable_mergejoin": "on",
    "plan_cache_mode": "auto",
}


async def connect(address: Address, *, cached: int, seconds: float = CONNECT_SECONDS) -> Raw:
    """A new connection; ``cached`` is how many prepared statements it keeps.

    Raises:
        UnusableDatabase: the address is wrong in itself.
        Exception: the driver's own errors (``failures.FAILURES``).
    """
    open_it = partial(
        asyncpg.connect,
        address.dsn,
        timeout=seconds,
        command_timeout=STATEMENT_SECONDS,
        statement_cache_size=cached,
        max_cached_statement_lifetime=0,
        max_cacheable_statement_size=0,
    )
    try:
        try:
            return await open_it(server_settings=BY_KEY)
        except asyncpg.ProtocolViolationError:
            return await open_it()
    except (asyncpg.ClientConfigurationError, ValueError) as error:
        raise UnusableDatabase(f"The address of the database is wrong: {error}") from error


class NotBegun(Exception):  # noqa: N818 - a fact for whoever holds the connection: nothing happened at all
    """The connection was dead before the transaction began; ``__cause__`` says how."""


class Manner(NamedTuple):
    """How the statements of a piece of work run.

    ``begin`` begins a transaction before the first of them. With ``may_stand_alone`` none is begun where all of the work
    is one statement that was put off: one trip instead of three. Without ``begin`` each statement stands alone, and may
    be said again. ``first`` is said before what stands alone.
    """

    begin: str | None
    may_stand_alone: bool = False
    first: str | None = None


class Connection:
    """Implements ``stores.database.Tx`` on a connection; the transaction begins with the first statement that needs one."""

    at_once = True
    __slots__ = ("_catalogue", "_clean", "_manner", "_open_guard", "_over", "_put_off", "_raw", "begun")

    def __init__(self, raw: Raw, catalogue: Catalogue, manner: Manner, *, clean: bool = False) -> None:
        self._raw = raw
        self._catalogue = catalogue
        self._manner = manner
        self._clean = clean
        self._put_off: list[PutOff] = []
        self._open_guard: Landed | None = None
        self._over = False
        self.begun = False

    async def ready(self) -> Raw:
        """The connection, with the transaction begun and nothing put off any more."""
        await self.send()
        await self._begin()
        return self._raw

    async def finish(self) -> None:
        """Send what is still put off; by itself, where it is all of the work and may be."""
        if not self._put_off:
            return
        assert not self._over, _LAST
        if self.begun or not self._manner.may_stand_alone:
            await self.send()
            return
        with self._standing_alone():
            await self._say_first()
            await self._send()

    async def all(self, name: str, /, **parameters: Value) -> list[Row]:
        """See ``Tx.all``."""
        return [dict(record) for record in await self._fetch(name, parameters)]

    async def one(self, name: str, /, **parameters: Value) -> Row | None:
        """See ``Tx.one``."""
        records = await self._fetch(name, parameters)
        return dict(records[0]) if records else None

    async def tuples(self, name: str, /, **parameters: Value) -> list[tuple[Any, ...]]:
        """See ``Tx.tuples``."""
        return [tuple(record) for record in await self._fetch(name, parameters)]

    async def last(self, name: str, /, **parameters: Value) -> list[Row]:
        """See ``Tx.last``: by itself, where it is all of the work and may be."""
        if self.begun or self._put_off or not self._manner.may_stand_alone:
            return await self.all(name, **parameters)
        assert not self._over, _LAST
        self._over = True
        statement = self._catalogue.plain[name]
        with self._standing_alone():
            await self._say_first()
            given = self._given(statement.values(parameters))
            return [dict(record) for record in await self._raw.fetch(statement.text, *given)]

    async def run(self, name: str, /, **parameters: Value) -> int:
        """See ``Tx.run``."""
        raw = await self.ready()
        statement = self._catalogue.plain[name]
        tag = await raw.execute(statement.text, *self._given(statement.values(parameters)))
        return int(tag.rpartition(" ")[2])

    async def many(self, name: str, rows: Rows, /) -> list[tuple[Any, ...]]:
        """See ``Tx.many``: one trip for all rows, where the query is a set query one statement as well."""
        if name in self._catalogue.sets:
            statement = self._catalogue.sets[name]
            put_off = statement.put_off(rows, Part.WHOLE)
            if put_off is None:
                return []
            if self._open_guard is not None:  # one statement has one answer
                await self.send()
            await self._make_room(statement)
            self._put_off.append(put_off)
            await self._begin()
            return [tuple(record) for record in await self._send()]
        raw = await self.ready()
        single = self._catalogue.plain[name]
        given = [self._given(single.values(row)) for row in cast("Iterable[Mapping[str, Value]]", rows)]
        records = await raw.fetchmany(single.text, given) if given else []
        return [tuple(record) for record in records]

    async def later(
        self,
        name: str,
        rows: Rows,
        /,
        landed: Landed | None = None,
        of: Sequence[str] = (),
    ) -> None:
        """See ``Tx.later``: one trip for all that is put off."""
        statement = self._catalogue.sets[name]
        await self._make_room(statement)
        if landed is not None and landed.known:
            rows, landed = kept(cast("Iterable[Any]", rows), landed, of), None
        put_off = statement.put_off(rows, Part.WHOLE if landed is None else Part.GUARDED, of)
        if put_off is not None:
            self._put_off.append(put_off)

    async def guard(self, name: str, rows: Rows, /) -> Landed:
        """See ``Tx.guard``: it goes with what depends on it, in one trip."""
        await self.send()
        statement = self._catalogue.sets[name]
        put_off = statement.put_off(rows, Part.GUARD)
        if put_off is None:
            return Landed(())
        self._put_off.append(put_off)
        self._open_guard = Landed()
        return self._open_guard

    async def send(self) -> None:
        """See ``Tx.send``."""
        if self._put_off:
            await self._begin()
            await self._send()

    async def _fetch(self, name: str, parameters: Mapping[str, Value]) -> list[Any]:
        raw = await self.ready()
        statement = self._catalogue.plain[name]
        try:
            return await raw.fetch(statement.text, *self._given(statement.values(parameters)))
        except FAILURES as error:
            if self.begun or is_definite(error) or isinstance(error, ValueError | TypeError):
                raise
            raw.terminate()
            raise NotBegun from error

    @contextmanager
    def _standing_alone(self) -> Iterator[None]:
        """What is said in here is a transaction by itself: where its answer is lost, nobody knows whether it was written."""
        try:
            yield
        except FAILURES as error:
            if is_definite(error) or isinstance(error, ValueError | TypeError):
                raise
            self._raw.terminate()
            raise unknown() from error

    async def _begin(self) -> None:
        assert not self._over, _LAST
        if self.begun:
            return
        try:
            if self._manner.begin is None:
                await self._say_first()
                return
            await self._raw.execute(self._manner.begin)
        except FAILURES as error:
            self._raw.terminate()
            raise NotBegun from error
        except BaseException:
            self._raw.terminate()
            raise
        self.begun = True

    async def _say_first(self) -> None:
        if self._manner.first is not None:
            await self._raw.execute(self._manner.first)

    async def _make_room(self, statement: SetStatement) -> None:
        # statements that go together see none of each other's effects, so no two of them touch one table
        if any(statement.touched & other.statement.touched for other in self._put_off):
            await self.send()

    async def _send(self) -> list[Any]:
        """Send what was put off; what the last of it returned, or the ids that the guard let through."""
        put_off, self._put_off = self._put_off, []
        guard, self._open_guard = self._open_guard, None
        values = [value for each in put_off for value in each.values]
        text = self._catalogue.together(put_off)
        found = await self._raw.fetch(text, *(map(_cleaned, values) if self._clean else values))
        if guard is not None:
            guard.answer(record["id"] for record in found)
        return found

    def _given(self, values: Sequence[Value]) -> Sequence[Value]:
        return [_cleaned(value) for value in values] if self._clean else values


def _cleaned(value: Any) -> Any:
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    return value.replace("\x00", "\ufffd") if isinstance(value, str) else value
