"""The written and the read form of an API key (CONTRACT: "/keys").

Knows no database: whether a target exists, and whether the caller may hand out what is asked for, is the service's
affair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from gnomon.domain.api_key import ApiKey
from gnomon.domain.form import Form
from gnomon.domain.instants import rfc3339
from gnomon.domain.scopes import NAMES, Scope, allows
from gnomon.domain.target import Target, TargetKind

_WRITTEN = ("name", "scopes", "target", "role", "expires_at")
_OF_ROLES = (Scope.INSTANCES_CONNECT, Scope.TASKS_CLAIM)
_READ_ONLY = ("id", "key", "hint", "created_at", "created_by", "last_used_at", "revoked_at")


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """What is asked for; ``target.id`` may still be a slug."""

    name: str
    scopes: tuple[str, ...]
    target: Target | None
    expires_at: datetime | None
    role: str | None = None


def read_new(form: Form) -> KeyRequest:
    """A new key, as far as it can be read; its faults are the form's."""
    form.only(_WRITTEN, _READ_ONLY)
    name = form.text("name", 1, 200, default="") or ""
    scopes = form.texts("scopes", 0, 100, 1, 64)
    for index, scope in enumerate(scopes):
        if scope not in NAMES:
            near = get_close_matches(scope, NAMES, 1)
            form.fault(f"scopes.{index}", "is no scope" + (f'; did you mean "{near[0]}"?' if near else ""))
    target = _target(form.part("target"))
    if form.has("target") and scopes:
        form.fault("scopes", "does not go with target: a key that is bound to a target can do nothing else")
    if not form.has("target") and not form.has("scopes"):
        form.fault("scopes", "is required, or else target")
    elif form.given.get("scopes") == [] and not form.has("target"):
        form.fault("scopes", "must name a scope: this key could do nothing")
    role = _role(form, scopes)
    return KeyRequest(name, tuple(dict.fromkeys(scopes)), target, form.instant("expires_at"), role)


def read_patch(form: Form, current: ApiKey) -> tuple[str, datetime | None]:
    """The new name and expiry of a key; nothing else of it ever changes."""
    form.only(("name", "expires_at"), (*_READ_ONLY, "scopes", "target", "role"))
    name = form.text("name", 1, 200, default="" if "name" in form.given else current.name)
    return name or "", form.instant("expires_at") if "expires_at" in form.given else current.expires_at


def to_json(key: ApiKey, text: str | None = None) -> dict[str, Any]:
    """The read form; ``key`` holds the text in the answer to its creation and is left out ever after."""
    shown: Mapping[str, Any] = {} if text is None else {"key": text}
    return {
        "id": key.id,
        **shown,
        "name": key.name,
        "hint": key.hint,
        "scopes": list(key.scopes),
        "target": None if key.target is None else {"kind": key.target.kind.value, "id": key.target.id},
        "role": key.role,
        "created_at": rfc3339(key.created_at),
        "created_by": key.created_by,
        "expires_at": _maybe(key.expires_at),
        "last_used_at": _maybe(key.last_used_at),
        "revoked_at": _maybe(key.revoked_at),
    }


def _target(form: Form | None) -> Target | None:
    if form is None:
        return None
    form.only(("kind", "id"))
    kind = form.choice("kind", [kind.value for kind in TargetKind], required=True)
    name = form.text("id", 1, 64, required=True)
    return None if kind is None or name is None else Target(TargetKind(kind), name)


def _role(form: Form, scopes: Sequence[str]) -> str | None:
    role = form.slug("role")
    if role is not None and not any(allows(scopes, scope) for scope in _OF_ROLES):
        wanted = " or ".join(scope.value for scope in _OF_ROLES)
        form.fault("role", f"is for keys that may connect or claim: it goes with the scope {wanted}")
    return role


def _maybe(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)
