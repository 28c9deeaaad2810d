"""The API's own description: ``/openapi.json``, and the same as a page without a script or an asset from elsewhere."""

from collections.abc import Callable
from html import escape
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from gnomon.edges.http.auth import public

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
details { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: .4rem 0 }
summary { cursor: pointer } code { font: .9em ui-monospace, monospace }
b { display: inline-block; min-width: 4.5rem; font: 600 .8em ui-monospace, monospace }
td { padding: .1rem 1rem .1rem 0; vertical-align: top }
"""


def routes(openapi: Callable[[], dict[str, Any]]) -> APIRouter:
    """The two routes."""
    router = APIRouter(dependencies=[public()], include_in_schema=False)

    @router.get("/openapi.json")
    async def document() -> Response:
        return JSONResponse(openapi())

    @router.get("/docs")
    async def page() -> Response:
        return Response(
            render(openapi()), media_type="text/html", headers={"Content-Security-Policy": _POLICY}
        )

    return router


def render(document: dict[str, Any]) -> str:
    """The page."""
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width"><title>Gnomon API</title>',
        f"<style>{_STYLE}</style><h1>Gnomon API</h1>",
        '<p>The same for programs: <a href="/openapi.json">openapi.json</a>.</p>',
        "<p>Send your key as <code>Authorization: Bearer KEY</code>.</p>",
    ]
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append(
                _operation(path, method, operation)
            )
    for tag, entries in by_tag.items():
        parts += [f"<h2>{escape(tag.capitalize())}</h2>", *entries]
    return "\n".join(parts)


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    rows = [
        (f"<code>{escape(given['name'])}</code>", f"{given['in']}: {given.get('description', '')}")
        for given in operation.get("parameters", ())
    ]
    bodies = operation.get("requestBody", {}).get("content", {}).values()
    rows += [("body", form["schema"].get("$ref", "").rpartition("/")[2] or "JSON") for form in bodies]
    if "x-scope" in operation:
        rows.append(("scope", operation["x-scope"]))
    rows += [(status, answer.get("description", "")) for status, answer in operation["responses"].items()]
    table = "".join(f"<tr><td>{name}</td><td>{escape(text)}</td></tr>" for name, text in rows)
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code> — {escape(operation['summary'])}"
        f"</summary><table>{table}</table></details>"
    )
