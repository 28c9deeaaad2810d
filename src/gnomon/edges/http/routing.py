"""How a route is described for the OpenAPI document: what it takes, gives, and every problem it can answer with.

The models of ``models.py`` describe; what reads a body is the domain's form, which collects every fault at once.
"""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from gnomon.edges.http.problems import MEANINGS, MEDIA_TYPE

_REF = "#/components/schemas/{model}"
PROBLEM = {"$ref": "#/components/schemas/Problem"}
_ALWAYS = (400, 401, 403, 406, 422, 503)
_WITH_BODY = (413, 415)
_UNWRITTEN: list[tuple[dict[str, Any], type[BaseModel]]] = []


def described(
    summary: str,
    *,
    gives: type[BaseModel] | None = None,
    takes: type[BaseModel] | None = None,
    body_required: bool = True,
    status: int | None = None,
    problems: Iterable[int] = (),
) -> dict[str, Any]:
    """The keywords of a route's decorator. ``status`` is the one of success: 200 with a body, 204 without.

    The problems that every guarded route can answer with are added by themselves, those of a body where it takes one.
    """
    found = {*_ALWAYS, *problems, *(_WITH_BODY if takes is not None else ())}
    described: dict[str, Any] = {
        "summary": summary,
        "status_code": status or (200 if gives is not None else 204),
        "response_model": gives,
        "responses": {code: problem(code) for code in sorted(found)},
    }
    if takes is not None:
        schema: dict[str, Any] = {}
        _UNWRITTEN.append((schema, takes))
        described["openapi_extra"] = {
            "requestBody": {"required": body_required, "content": {"application/json": {"schema": schema}}}
        }
    return described


def problem(status: int) -> dict[str, Any]:
    """The description of one problem answer."""
    return {"description": MEANINGS[status], "content": {MEDIA_TYPE: {"schema": PROBLEM}}}


def write_schemas() -> None:
    """Write the schema of each body into the description of its route.

    Here and not where the route is described: to write them takes longer than the routes, and a process is hardly ever
    asked for them.
    """
    while _UNWRITTEN:
        schema, model = _UNWRITTEN.pop()
        schema.update(model.model_json_schema(ref_template=_REF))


def hoisted(document: dict[str, Any], extra: Iterable[type[BaseModel]]) -> dict[str, Any]:
    """The OpenAPI document with the schemas of its bodies and of ``extra`` moved to its components."""
    schemas: dict[str, Any] = document.setdefault("components", {}).setdefault("schemas", {})
    for model in extra:
        _place(schemas, model.model_json_schema(ref_template=_REF))
    for operations in document["paths"].values():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {})
            for form in content.values():
                if "title" in form["schema"]:
                    form["schema"] = _place(schemas, form["schema"])
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return document


def _place(schemas: dict[str, Any], schema: dict[str, Any]) -> dict[str, str]:
    own = {name: value for name, value in schema.items() if name != "$defs"}
    schemas.update(schema.get("$defs", {}))
    schemas[own["title"]] = own
    return {"$ref": _REF.format(model=own["title"])}
