"""Who asks: the identity behind one request, as every service sees it. Knows no key text and no header."""

from dataclasses import dataclass

from gnomon.domain.errors import Refused
from gnomon.domain.scopes import EVERYTHING, allows
from gnomon.domain.target import Target


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller. ``actor`` stands in the audit; ``key_id`` is the API key's id, ``target`` what it is bound to.

    A key that is bound to a target holds no scopes: it invokes that target and does nothing else (SEC-3). One that
    serves a ``role`` works for that role alone.
    """

    actor: str
    scopes: tuple[str, ...] = ()
    key_id: str | None = None
    target: Target | None = None
    tenant: str | None = None
    role: str | None = None

    def may(self, scope: str) -> bool:
        """Whether the caller's scopes cover ``scope``."""
        return allows(self.scopes, scope)

    def require(self, scope: str) -> None:
        """Let the caller through, or not.

        Raises:
            Refused: ``scope_missing``, naming the scope.
        """
        if not self.may(scope):
            raise Refused(
                f'This needs the scope "{scope}", which the key does not have.',
                code="scope_missing",
                data={"scope": scope},
            )

    def require_role(self, role: str) -> None:
        """Let the caller work for a role, or not.

        Raises:
            Refused: ``key_bound_to_role``, the key serves another one.
        """
        if self.role is not None and self.role != role:
            raise self.bound_to_role(role)

    def bound_to_role(self, role: str | None) -> Refused:
        """What a key that serves one role is told where it asks for another, or for none."""
        asked = "" if role is None else f', not "{role}"'
        return Refused(
            f'This key serves the role "{self.role}"{asked}.',
            code="key_bound_to_role",
            data={"role": self.role},
        )

    def bound(self) -> Refused:
        """What a key that is bound to a target is told by whatever is not that target's invocation (SEC-3)."""
        assert self.target is not None
        kind, name = self.target.kind.value, self.target.id
        return Refused(
            f"This key is bound to the {kind} {name}: it can invoke it and nothing else.",
            code="key_bound",
            data={"target": {"kind": kind, "id": name}},
        )


def system(actor: str) -> Caller:
    """The centre itself, or a person at its machine: the command line, the first start."""
    return Caller(actor, (EVERYTHING,))
