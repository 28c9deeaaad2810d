"""What a tool is: its name, what it takes and gives, who may call it, and what it does. Knows no protocol and no noun.

A pydantic model describes what a tool takes and is what reads it: strictly, every fault at once, each at its argument.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gnomon.domain.caller import Caller
from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.scopes import Scope
from gnomon.edges.json_input import FAULTS, check
from gnomon.edges.mcp.services import Services
from gnomon.services.tasks import stays

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
_SAID = {"missing": "is required", "extra_forbidden": "is not a known argument"}


class Side(StrEnum):
    """Whom a tool is for. What a caller sees is decided by scopes alone."""

    WORKER = "worker"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Seat:
    """Who calls a tool. ``seal`` is a secret of theirs; ``role`` and ``instance`` stand where a call names none.

    ``is_gone`` says of a caller that waits whether they still do.
    """

    caller: Caller
    seal: bytes
    role: str | None = None
    instance: str | None = None
    is_gone: Callable[[], Awaitable[bool]] = stays

    @property
    def name(self) -> str:
        """The instance that works under this seat unless a call names another one."""
        return self.instance or self.caller.key_id or self.caller.actor


class Asked(BaseModel):
    """What a tool takes."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Given(BaseModel):
    """What a tool gives; ``next`` is the last word of each answer."""

    next: str = Field(description="What to do next")

    def told(self) -> dict[str, Any]:
        """The answer as JSON, its last word last."""
        whole = self.model_dump(mode="json")
        return {**{name: value for name, value in whole.items() if name != "next"}, "next": self.next}


A = TypeVar("A", bound=Asked)
G = TypeVar("G", bound=Given)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. Without a ``scope`` every key may call it.

    ``reads`` changes nothing; ``destroys`` may end something that goes on; ``repeats`` does no more when it is called again
    with the same arguments.
    """

    name: str
    title: str
    description: str
    side: Side
    scope: Scope | None
    takes: type[Asked]
    gives: type[Given]
    work: Callable[[Services, Seat, Any], Awaitable[Given]]
    reads: bool
    destroys: bool
    repeats: bool

    @property
    def input_schema(self) -> dict[str, Any]:
        """What it takes, as a JSON schema without references."""
        return _schema(self.takes, "validation")

    @property
    def output_schema(self) -> dict[str, Any]:
        """What it gives, likewise."""
        return _schema(self.gives, "serialization")

    def may_be_called_by(self, caller: Caller) -> bool:
        """Whether the caller's scopes cover it, which is also whether they see it."""
        return self.scope is None or caller.may(self.scope)

    async def call(self, services: Services, seat: Seat, arguments: Mapping[str, Any]) -> Given:
        """Judge the caller, read the arguments, do the work (SEC-1).

        Raises:
            Refused: the caller's scopes do not cover it.
            Invalid: with every fault of the arguments.
        """
        if self.scope is not None:
            seat.caller.require(self.scope)
        return await self.work(services, seat, self.read(arguments))

    def read(self, arguments: Mapping[str, Any]) -> Asked:
        """The arguments as the tool takes them.

        Raises:
            Invalid: with every fault.
        """
        check(dict(arguments), "call")
        try:
            return self.takes.model_validate(dict(arguments))
        except ValidationError as error:
            raise Invalid([_fault(found) for found in error.errors(include_input=False)][:FAULTS]) from None


def tool(
    side: Side,
    scope: Scope | None,
    *,
    reads: bool = False,
    destroys: bool = False,
    repeats: bool = False,
) -> Callable[[Callable[[Services, Seat, A], Awaitable[G]]], Tool]:
    """Make a tool of a function: its name, its docstring (the first line is the title), what it takes and gives."""

    def made(work: Callable[[Services, Seat, A], Awaitable[G]]) -> Tool:
        hints = get_type_hints(work)
        title, _, _ = (text := inspect.cleandoc(work.__doc__ or "")).partition("\n")
        return Tool(
            name=work.__name__,
            title=title.rstrip("."),
            description=" ".join(text.split()),
            side=side,
            scope=scope,
            takes=hints["asked"],
            gives=hints["return"],
            work=work,
            reads=reads,
            destroys=destroys,
            repeats=repeats,
        )

    return made


def _fault(found: Any) -> Fault:
    field = ".".join(str(part)[:64] for part in found["loc"])
    message = str(found["msg"])
    return Fault(field, _SAID.get(found["type"], message[:1].lower() + message[1:]))


@cache
def _schema(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """The schema of a model with each reference replaced by what it names, and without titles.

    Not every client follows references, and every word of a schema is read by a model each time.
    """
    whole = model.model_json_schema(mode=mode)
    named = whole.get("$defs", {})

    def plain(part: Any) -> Any:
        if isinstance(part, list):
            return [plain(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            inner = named[part["$ref"].rpartition("/")[2]]
            inner = {name: value for name, value in inner.items() if name != "description"}  # for programmers
            part = inner | {name: value for name, value in part.items() if name != "$ref"}
        return {
            name: plain(value)
            for name, value in part.items()
            if name != "$defs" and not (name == "title" and isinstance(value, str))
        }

    found: dict[str, Any] = plain(whole)
    return found
