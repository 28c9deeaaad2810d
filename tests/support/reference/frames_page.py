"""``docs/reference/frames.md``: every frame of the WebSocket ``/v1/connect``, both ways (CONTRACT, "WebSocket")."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from gnomon.edges.ws.frames import HEARD, SAID
from support.reference.markdown import cell, table

_SIDES: tuple[tuple[str, str, Mapping[str, type[BaseModel]]], ...] = (
    ("From the instance", "Fields that are not named here are passed over.", HEARD),
    ("From the centre", "A newer centre may say more: pass over what you don't know.", SAID),
)


def frames_page() -> str:
    """The page."""
    lines = [
        "# Frames",
        "",
        "What is said over `/v1/connect`, one JSON object in each message. How a conversation goes is in the",
        "[guide](../guide/instances.md); `/v1/connect/schema` gives these as JSON schemas.",
    ]
    for title, told, models in _SIDES:
        lines += ["", f"## {title}", "", told]
        for name, model in models.items():
            lines += ["", f"### {name}", "", *_described(model)]
    return "\n".join(lines) + "\n"


def _described(model: type[BaseModel]) -> Iterator[str]:
    schema = model.model_json_schema()
    yield cell(schema["description"])
    needed = schema.get("required", [])
    rows = [
        (
            f"`{name}`",
            _type(field, schema.get("$defs", {})),
            "yes" if name in needed else "",
            cell(field.get("description", "")),
        )
        for name, field in schema["properties"].items()
        if name != "type"
    ]
    if rows:
        yield ""
        yield from table(("field", "type", "needed", "meaning"), rows)


def _type(field: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    if "$ref" in field:
        inner = shared[field["$ref"].rpartition("/")[2]]
        return "object: " + ", ".join(f"`{name}`" for name in inner["properties"])
    if "anyOf" in field:
        return " or ".join(_type(part, shared) for part in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of ({_type(field['items'], shared)})"
    if field.get("format") == "date-time":
        return "instant"
    return str(field.get("type", "any"))
