"""How a target's answer is read, whatever way it came: text that can be stored, ``{output, usage?}``, usage.

Nothing here knows the wire. What can't be read is a failure that says what was wrong with it (``nonsense``).
"""

import json
import math
from collections.abc import Mapping

from gnomon.domain.invocation import Failing, Result, TargetFailure, Usage

OUTPUT_BYTES = (
    16 * 1024 * 1024
)  # the cap where an agent sets no limit of its own, and above which none can go
_LARGEST_COUNT = 2**53  # exact in every JSON reader and far inside a database's integer


def nonsense(message: str) -> TargetFailure:
    """The failure of an answer that can't be read. Asking again would bring the same, so it is not tried again."""
    return TargetFailure(Failing.NONSENSE, message)


def storable(text: str) -> str:
    """Text as a database takes it: NUL becomes the replacement character, half a surrogate pair is nonsense."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise nonsense("the output holds half a surrogate pair, which is no text") from error
    return text.replace("\x00", "\ufffd")


def excerpt(text: str, characters: int = 200) -> str:
    """The beginning of a target's text, on one line, without anything that could act in a log or a terminal."""
    cut = text.strip()[:characters]
    return "".join(c if c.isprintable() else " " for c in cut) + (
        "…" if len(text.strip()) > characters else ""
    )


def read_json(data: bytes, where: str) -> object:
    """The JSON value in ``data``; ``where`` names it in the failure."""
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        shown = excerpt(data[:400].decode(errors="replace"), 80)
        raise nonsense(f"{where} is not JSON ({type(error).__name__}): {shown}") from error
    return value


def read_mapping(answer: object, where: str, *, default: str | None = None) -> Result:
    """The result in ``{"output": text, "usage"?: {…}}``; ``default`` is the output where the key is missing."""
    if not isinstance(answer, Mapping):
        raise nonsense(f"{where} is {_kind(answer)}, not an object with output")
    output = answer.get("output", default)
    if output is None:
        raise nonsense(f"{where} has no output")
    if not isinstance(output, str):
        raise nonsense(f"the output of {where} is {_kind(output)}, not text")
    return Result(storable(output), read_usage(answer.get("usage"), where))


def read_usage(raw: object, where: str) -> Usage | None:
    """The usage in ``{"model_calls"?, "input_tokens"?, "output_tokens"?, "cost"?}``; unknown keys are passed over."""
    if raw is None or isinstance(raw, Usage):
        return raw
    if not isinstance(raw, Mapping):
        raise nonsense(f"the usage of {where} is {_kind(raw)}, not an object")
    cost = raw.get("cost", 0)
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < _LARGEST_COUNT:
        raise nonsense(f"the cost in the usage of {where} is not an amount of dollars")
    return Usage(
        model_calls=_count(raw, "model_calls", where),
        input_tokens=_count(raw, "input_tokens", where),
        output_tokens=_count(raw, "output_tokens", where),
        cost=float(cost),
    )


def _count(raw: Mapping[str, object], name: str, where: str) -> int:
    value = raw.get(name, 0)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value, whole = int(value), True
    if not whole or not isinstance(value, int) or not 0 <= value < _LARGEST_COUNT:
        raise nonsense(f"{name} in the usage of {where} is not a count")
    return value


def _kind(value: object) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")
