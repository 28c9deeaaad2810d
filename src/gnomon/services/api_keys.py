"""API keys: made, shown once, recognised, revoked (SEC-3). Knows the texts only while they pass through."""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gnomon.domain import api_key_form
from gnomon.domain.api_key import (
    MASTER,
    PEPPER_BYTES,
    RANDOM_BITS,
    ApiKey,
    hashed,
    hint_of,
    kind_of,
    make_text,
    read_text,
)
from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller, system
from gnomon.domain.errors import Fault, Missing, Refused, Unauthenticated, Unavailable
from gnomon.domain.form import Form
from gnomon.domain.ids import Kind
from gnomon.domain.instants import SECOND, from_micros, to_micros
from gnomon.domain.scopes import beyond
from gnomon.domain.target import Target, TargetKind
from gnomon.ports.clock import Clock, Entropy
from gnomon.services.dedup import Once, Replay, run_once
from gnomon.services.mint import Mint
from gnomon.stores import api_keys, audit, targets
from gnomon.stores.database import Database, Tx

USE_REST_SECONDS = 60
_PEPPER = "api_key_pepper"
_INVOKE = {TargetKind.AGENT: "agents:invoke", TargetKind.TEAM: "teams:invoke"}


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at the moment of its making: the only time its text is known."""

    key: ApiKey
    text: str


class ApiKeys:
    """The keys of one database; ``tenant`` is what their texts say, ``None`` for the master.

    ``operator_token`` opens everything in this one process: the command line draws it when it opens the database itself.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        mint: Mint,
        entropy: Entropy,
        *,
        tenant: str | None = None,
        operator_token: str | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._mint = mint
        self._entropy = entropy
        self._tenant = tenant or MASTER
        self._pepper: bytes | None = None
        self._operator_token = operator_token

    async def create(
        self, caller: Caller, given: Mapping[str, Any], *, once: Once | None = None
    ) -> NewKey | Replay:
        """Make a key from its written form.

        Raises:
            Invalid: with every fault.
            Refused: ``scope_exceeds_caller``, it would open more than the caller's own.
        """
        work = await self._maker(caller, given)
        return await self._database.write(lambda tx: run_once(tx, once, work))

    async def create_first(self, caller: Caller, given: Mapping[str, Any]) -> NewKey | None:
        """Make a key where none opens anything yet; of processes that start at once, one does (OPS-3)."""
        work = await self._maker(caller, given)

        async def alone(tx: Tx) -> NewKey | None:
            return None if await api_keys.count(tx) else await work(tx)

        return await self._database.write(alone)

    async def _maker(self, caller: Caller, given: Mapping[str, Any]) -> Callable[[Tx], Awaitable[NewKey]]:
        form = Form(given)
        asked = api_key_form.read_new(form)
        if asked.expires_at is not None and asked.expires_at <= self._clock.now():
            form.fault("expires_at", "lies in the past")
        pepper = await self._ready()

        async def work(tx: Tx) -> NewKey:
            target = None if asked.target is None else await _resolve(tx, asked.target, form)
            form.finish()
            _refuse_more(caller, asked.scopes if target is None else (_INVOKE[target.kind],))
            if caller.role is not None and asked.role != caller.role:
                raise caller.bound_to_role(asked.role)
            text = make_text(self._tenant, kind_of(target), self._entropy.bits(RANDOM_BITS))
            key = ApiKey(
                id=self._mint.make(Kind.KEY),
                name=asked.name,
                hint=hint_of(text),
                scopes=asked.scopes,
                target=target,
                created_at=self._clock.now(),
                created_by=caller.actor,
                expires_at=asked.expires_at,
                last_used_at=None,
                revoked_at=None,
                role=asked.role,
            )
            created_at = await api_keys.insert(tx, key, hashed(text, pepper))
            await _note(tx, caller, Action.CREATE, key.id, _opened(key))
            return NewKey(replace(key, created_at=from_micros(created_at)), text)

        return work

    async def authenticate(self, text: str) -> Caller:
        """Who brings this text. A new revocation or expiry counts from the next call.

        Raises:
            Unauthenticated: it opens nothing. What it lacks is told only to who has a real key.
        """
        operator = self._operator_token
        if operator is not None and hmac.compare_digest(text.encode(), operator.encode()):
            return system("operator")
        said = read_text(text)
        if said is None:
            raise Unauthenticated(
                "The API key is malformed: it was cut, or is no key of Gnomon.", code="key_malformed"
            )
        digest = hashed(text, await self._ready())
        found = await self._database.read(lambda tx: api_keys.by_hash(tx, digest))
        if found is None or not hmac.compare_digest(found.hash, digest) or said.tenant != self._tenant:
            raise Unauthenticated("The API key opens nothing here.", code="key_unknown")
        key = found.key
        if key.revoked_at is not None:
            raise Unauthenticated("The API key was revoked.", code="key_revoked")
        if key.expires_at is not None and to_micros(key.expires_at) <= found.now:
            raise Unauthenticated("The API key has expired.", code="key_expired")
        rest = USE_REST_SECONDS * SECOND
        if key.last_used_at is None or to_micros(key.last_used_at) <= found.now - rest:
            await self._note_use(key.id, rest)
        tenant = None if self._tenant == MASTER else self._tenant
        return Caller(key.id, key.scopes, key.id, key.target, tenant, key.role)

    async def get(self, key_id: str) -> ApiKey:
        """A key that is not revoked.

        Raises:
            Missing: there is none under this id.
        """
        return _there(await self._database.read(lambda tx: api_keys.by_id(tx, key_id)), key_id)

    async def page(self, after: str, limit: int, *, revoked: bool = False) -> list[ApiKey]:
        """Up to ``limit`` keys after an id, the oldest first."""
        return await self._database.read(lambda tx: api_keys.page(tx, after, limit, revoked=revoked))

    async def count(self) -> int:
        """How many keys open something; none at the first start."""
        return await self._database.read(api_keys.count)

    async def edit(self, caller: Caller, key_id: str, given: Mapping[str, Any]) -> ApiKey:
        """Change a key's name or expiry.

        Raises:
            Invalid: with every fault.
            Missing: there is none under this id.
            Refused: the key opens more than the caller's own.
        """

        async def work(tx: Tx) -> ApiKey:
            current = _there(await api_keys.by_id(tx, key_id), key_id)
            form = Form(given)
            name, expires_at = api_key_form.read_patch(form, current)
            if expires_at != current.expires_at and expires_at and expires_at <= self._clock.now():
                form.fault("expires_at", "lies in the past; to end the key now, delete it")
            form.finish()
            _refuse_more(caller, current.scopes)
            key = replace(current, name=name, expires_at=expires_at)
            if key != current:
                await api_keys.edit(tx, key)
                await _note(tx, caller, Action.UPDATE, key.id, {"fields": sorted(given)})
            return key

        return await self._database.write(work)

    async def revoke(self, caller: Caller, key_id: str) -> None:
        """End a key: from the next request on it opens nothing.

        Raises:
            Missing: there is none under this id.
        """

        async def work(tx: Tx) -> None:
            if not await api_keys.revoke(tx, key_id):
                _there(None, key_id)
            await _note(tx, caller, Action.REVOKE, key_id)

        await self._database.write(work)

    async def _ready(self) -> bytes:
        """The pepper, drawn at the first start; of two processes that start at once, one's stands."""
        if self._pepper is None:
            kept = await self._database.read(lambda tx: api_keys.secret(tx, _PEPPER))
            if kept is None:
                drawn = self._entropy.bits(PEPPER_BYTES * 8).to_bytes(PEPPER_BYTES, "big")
                kept = await self._database.write(lambda tx: api_keys.keep_secret(tx, _PEPPER, drawn))
            self._pepper = kept
        return self._pepper

    async def _note_use(self, key_id: str, rest: int) -> None:
        try:
            await self._database.write(lambda tx: api_keys.use(tx, key_id, rest))
        except Unavailable:  # a note for people; the request itself may only read
            return


async def _resolve(tx: Tx, target: Target, form: Form) -> Target:
    live = targets.live_agents if target.kind is TargetKind.AGENT else targets.live_teams
    found = (await live(tx, [target.id])).get(target.id)
    if found is None:
        form.faults.append(Fault("target.id", f"there is no {target.kind.value} under this id or slug"))
        return target
    return Target(target.kind, found.id)


def _refuse_more(caller: Caller, scopes: tuple[str, ...]) -> None:
    missing = beyond(caller.scopes, scopes)
    if missing:
        raise Refused(
            f"A key can't be given scopes that its maker does not have: {', '.join(missing)}.",
            code="scope_exceeds_caller",
            data={"scopes": missing},
        )


def _opened(key: ApiKey) -> dict[str, object]:
    if key.target is None:
        return {"scopes": list(key.scopes), **({} if key.role is None else {"role": key.role})}
    return {"target": {"kind": key.target.kind.value, "id": key.target.id}}


def _there(key: ApiKey | None, key_id: str) -> ApiKey:
    if key is None:
        raise Missing(f'There is no key "{key_id[:64]}".')
    return key


async def _note(
    tx: Tx, caller: Caller, action: Action, key_id: str, detail: dict[str, object] | None = None
) -> None:
    await audit.append(
        tx, actor=caller.actor, action=action, subject_kind="key", subject_id=key_id, detail=detail
    )
