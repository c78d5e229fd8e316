"""The OpenAPI document: what the framework derives, and what it cannot know.

In: the application. Out: its document, with the refusals that any route may give, the filter
language, the namespace header and the token. It describes; it checks nothing.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from anaphora.surfaces.rest.problems import MEDIA_TYPE, TITLES
from anaphora.surfaces.rest.shapes import ProblemShape

__all__ = ["document"]

# What may come before or after a route's own work, on every route.
_ANYWHERE: Final[tuple[int, ...]] = (400, 401, 403, 404, 408, 413, 421, 422, 429, 500, 503, 504)
_WITH_MODEL: Final = (501, 502)
_WITH_DISK: Final = (507,)
_METHODS: Final = frozenset({"get", "post", "patch", "delete"})

_TEXT: dict[str, Any] = {"type": "string"}
_TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
_NUMBER: dict[str, Any] = {"type": "number"}
_ORDERED: dict[str, Any] = {"type": ["string", "number"]}
_FLAG: dict[str, Any] = {"type": "boolean"}


def document(app: FastAPI) -> dict[str, Any]:
    """The document of this application, made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description=app.description,
            routes=app.routes,
        )
        parts = made.setdefault("components", {})
        schemas = parts.setdefault("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        schemas["Problem"] = ProblemShape.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        schemas.update(schemas["Problem"].pop("$defs", {}))
        schemas["Filter"] = _filter()
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{}, {"token": []}]
        for path, item in made["paths"].items():
            for method, operation in item.items():
                if method in _METHODS:
                    _complete(path, operation)
        app.openapi_schema = _with_filters(made)
    return app.openapi_schema


def _complete(path: str, operation: dict[str, Any]) -> None:
    parameters = operation.setdefault("parameters", [])
    for parameter in parameters:
        if parameter["name"] == "filters":
            # A JSON text in the URL: the one way in which OpenAPI can say so.
            parameter.pop("schema")
            schema = {"$ref": "#/components/schemas/Filter"}
            parameter["content"] = {"application/json": {"schema": schema}}
    parameters.append(
        {
            "name": "Anaphora-Namespace",
            "in": "header",
            "required": False,
            "description": "The namespace to work in; without it the default one.",
            "schema": {"type": "string"},
        }
    )
    operation["responses"].pop("422", None)
    statuses = _ANYWHERE
    if path.startswith(("/v1/deep", "/v1/extract", "/v1/dream")):
        statuses += _WITH_MODEL
    statuses += _WITH_DISK
    for status in statuses:
        if str(status) not in operation["responses"]:
            operation["responses"][str(status)] = {
                "description": TITLES[status],
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }


def _with_filters(part: Any) -> Any:
    """The same, where a body has a filter with the language of filters."""
    if isinstance(part, list):
        return [_with_filters(one) for one in part]
    if not isinstance(part, dict):
        return part
    if "x-filter" in part:
        return {"anyOf": [{"$ref": "#/components/schemas/Filter"}, {"type": "null"}]}
    return {name: _with_filters(one) for name, one in part.items()}


def _filter() -> dict[str, Any]:
    """The filter language of docs/filters.md."""
    own = {"$ref": "#/components/schemas/Filter"}
    ordered = ("eq", "ne", "gt", "gte", "lt", "lte")
    text = _field(_TEXT, {**dict.fromkeys((*ordered, "contains", "startswith"), _TEXT)})
    time = _field(_TIME, dict.fromkeys(ordered, _TIME))
    number = _field(_NUMBER, dict.fromkeys(ordered, _NUMBER))
    scalar = {"type": ["string", "number", "boolean"]}
    payload = _field(
        scalar,
        {
            **dict.fromkeys(("eq", "ne", "contains"), scalar),
            **dict.fromkeys(("gt", "gte", "lt", "lte"), _ORDERED),
            "startswith": _TEXT,
        },
    )
    listed = {"type": "array", "items": _TEXT, "minItems": 1}
    tags = _field(
        listed,
        {"eq": listed, "ne": listed, "contains": _TEXT, "startswith": _TEXT},
        member=_TEXT,
    )
    fields = {
        **dict.fromkeys(("id", "category", "type", "path", "parent", "source"), text),
        **dict.fromkeys(("created_at", "last_reinforced", "expires_at"), time),
        "reinforce_count": number,
        "tags": tags,
    }
    junction = {"type": "array", "items": own, "minItems": 1, "maxItems": 100}
    return {
        "title": "Filter",
        "description": "Which memories count. Several fields must all hold; see docs/filters.md.",
        "type": "object",
        "properties": {"AND": junction, "OR": junction, "NOT": own, **fields},
        "patternProperties": {r"^payload(\.[A-Za-z0-9_-]+){1,8}$": payload},
        "additionalProperties": False,
        "minProperties": 1,
    }


def _field(
    value: dict[str, Any], operators: dict[str, Any], member: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A plain value (equality), or operators that must all hold."""
    known = {
        **operators,
        "in": {"type": "array", "items": member or value, "minItems": 1},
        "exists": _FLAG,
    }
    having = {
        "type": "object",
        "properties": known,
        "additionalProperties": False,
        "minProperties": 1,
    }
    return {"anyOf": [value, having]}
