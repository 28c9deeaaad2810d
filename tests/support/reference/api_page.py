"""`docs/reference/api.md`, made from the OpenAPI document that the program serves. Knows no route by name."""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from gnomon.domain.scopes import Scope
from gnomon.edges.http.problems import MEANINGS
from gnomon.settings import Settings
from gnomon.wiring import open_center
from support.reference.codes import codes_table
from support.reference.markdown import cell, table

Json = Mapping[str, Any]
HEAD = """
# The HTTP API

Everything is under `/v1`, but for `/healthz`, `/readyz`, `/metrics`, `/openapi.json` and `/docs`. This page is made from
`/openapi.json`.

## Forms

- JSON in and out, snake_case. Instants are RFC 3339 in UTC, up to microseconds; durations are numbers of seconds,
  `…_seconds`. An unknown field is refused.
- Ids are a type prefix and a sortable random part: `sch_…`, `run_…`, `agt_…`. Where an agent, a team or a calendar is
  named, its slug will do.
- `Authorization: Bearer KEY` on every request under `/v1`. Each route declares one scope.
- Lists take `limit` and `cursor` and answer `{"items": […], "next_cursor": …}`; a null cursor is the end.
- `Idempotency-Key` on a POST that creates: the same key and body get the first answer again, with
  `Idempotent-Replayed: true`; another body is refused; a first request that still goes on is a conflict. Answers are
  kept for 24 hours.
- Agents, teams, calendars and schedules carry an `ETag`. An edit with `If-Match` is refused with 412 where somebody
  else was faster; without it the last one wins.
- A PATCH replaces the fields that it names; null brings a default back.
- Every answer has an `X-Request-Id`; a request may bring its own.
"""


def api_page() -> str:
    """The whole page."""
    document = _document()
    lines = [HEAD.strip(), "", "## Routes"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            lines += ["", *_operation(method.upper(), path, operation)]
    lines += ["", "## Scopes", "", *_scopes(document)]
    lines += ["", "## Shapes", "", "A field in bold is always there, or must be given."]
    for name, schema in sorted(document["components"]["schemas"].items()):
        lines += ["", *_shape(name, schema)]
    lines += ["", "## Problems", "", *_problems()]
    return "\n".join(lines) + "\n"


def _document() -> Any:
    async def read() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            settings = Settings(database_url=f"sqlite:///{folder}/reference.db")
            center = await open_center(settings, dispatch=False, work=False)
            try:
                return center.app.openapi()
            finally:
                await center.stop()

    return asyncio.run(read())


def _operation(method: str, path: str, operation: Json) -> Iterator[str]:
    yield f"### {method} {path}"
    yield ""
    yield f"{operation['summary']}. {_prose(operation.get('description'))}".strip()
    yield ""
    scope = operation.get("x-scope")
    yield f"Scope: `{scope}`." if scope else "Open to all."
    body = operation.get("requestBody")
    if body is not None:
        yield f"Takes {_type(body['content']['application/json']['schema'])}."
    yield f"Gives {_gives(operation['responses'])}."
    problems = [code for code in operation["responses"] if int(code) >= 400 and scope]
    if problems:
        yield f"Problems: {', '.join(problems)}."
    rows = [
        (f"`{each['name']}`", each["in"], _prose(each.get("description")))
        for each in operation.get("parameters", [])
    ]
    if rows:
        yield ""
        yield from table(("parameter", "in", "meaning"), rows)


def _gives(responses: Json) -> str:
    told = []
    for code, answer in responses.items():
        if int(code) < 400:
            content: Json = answer.get("content", {})
            form: Json = next(iter(content.values()), {})
            schema = form.get("schema", {})
            kind = next(iter(content), "")
            shown = _type(schema) if schema else ""
            told.append(f"{code} {shown or kind}".strip())
    return ", ".join(told)


def _scopes(document: Json) -> Iterator[str]:
    """Every scope with the routes that want it."""
    wanted: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            wanted.setdefault(operation.get("x-scope", ""), []).append(f"`{method.upper()} {path}`")
    yield "`noun:*` is all of one noun, `*` is everything. A scope without a route belongs to a part to come."
    yield ""
    rows = ((f"`{scope.value}`", "<br>".join(wanted.get(scope.value, []))) for scope in Scope)
    yield from table(("scope", "opens"), rows)


def _shape(name: str, schema: Json) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    if schema.get("description"):
        yield _prose(schema["description"])
        yield ""
    if "enum" in schema:
        yield f"One of {', '.join(f'`{value}`' for value in schema['enum'])}."
        return
    required = set(schema.get("required", ()))
    rows = [
        (f"**`{field}`**" if field in required else f"`{field}`", _type(each), _meaning(each))
        for field, each in schema.get("properties", {}).items()
    ]
    yield from table(("field", "type", "meaning"), rows)


def _meaning(schema: Json) -> str:
    words = [_prose(schema.get("description"))]
    if schema.get("default") is not None:
        words.append(f"Default `{schema['default']}`.")
    return " ".join(word for word in words if word)


def _type(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    kind: str = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "null"}
    return words.get(kind, kind) + _bounds(schema)


def _bounds(schema: Json) -> str:
    if schema.get("format") == "date-time":
        return ", an instant"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f", {low:,.10g} to {high:,.10g}"
    longest = schema.get("maxLength")
    return f", at most {longest:,} characters" if longest is not None else ""


def _prose(text: str | None) -> str:
    """A docstring's text on one line, in Markdown's own marks, without the numbers of the specification."""
    return cell(text or "")


def _problems() -> Iterator[str]:
    yield "Errors are `application/problem+json` in the shape [Problem](#problem)."
    yield ""
    yield from table(("status", "meaning"), ((str(code), text) for code, text in sorted(MEANINGS.items())))
    yield ""
    yield from codes_table()
