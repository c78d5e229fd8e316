"""The OpenAPI document: what the framework derives, completed by what it cannot know.

That is the refusals that any route may give, distinguished by type, the filter language, the
namespace header, the token, the meaning of each parameter, and which fields are always present.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from anaphora.calls.parameters import FILTER_EXAMPLE, PARAMETERS
from anaphora.container.feature import registered, search_kinds
from anaphora.store.filters import KINDS
from anaphora.surfaces.rest.problems import MEDIA_TYPE, NAMES, TITLES, TYPE
from anaphora.surfaces.rest.shapes import PROBLEM_SHAPES

# Statuses that any route may answer before or after its own work.
_ANYWHERE: Final[tuple[int, ...]] = (400, 401, 403, 404, 408, 413, 421, 422, 429, 500, 503, 504)
_WITH_MODEL: Final = (501, 502)
_WITH_DISK: Final = (507,)
_SCHEMAS: Final = "#/components/schemas/"


@cache
def _value_types() -> dict[str, type]:
    """The values that answers consist of, by name."""
    kernel = ("conversations", "memories", "search", "sessions")
    names = [f"anaphora.values.{module}" for module in kernel]
    names += [feature.values for feature in registered() if feature.values]
    return {
        name: kind
        for module in names
        for name, kind in vars(import_module(module)).items()
        if isinstance(kind, type) and is_dataclass(kind)
    }


_METHODS: Final = frozenset({"get", "post", "patch", "delete"})

# Valid namespace names, except ".", ".." and blanks, which are answered with 400.
_NAMESPACE: Final = r"^[^/\\\x00-\x1f\x7f-\x9f]{1,1024}$"


_FIELDS: Final = [
    name
    for kind in ("text", "tags", "time", "number")
    for name, its in KINDS.items()
    if its == kind
]
_CONDITION: Final = {"type": "object", "minProperties": 1}
_JUNCTION: Final = {"type": "array", "items": _CONDITION, "minItems": 1, "maxItems": 100}
_FILTER: Final = {
    "title": "Filter",
    "description": (
        "Which memories count. A field has a value (equality) or operators (eq, ne, gt, gte, "
        "lt, lte, in, contains, startswith, exists); several must all hold. Fields: "
        f"{', '.join(_FIELDS)}, payload.<name>, lineage (descendant_of, ancestor_of or the id "
        "of a memory). What cannot be meant is refused, its place named."
    ),
    "type": "object",
    "properties": {"AND": _JUNCTION, "OR": _JUNCTION, "NOT": _CONDITION},
    "additionalProperties": True,
    "examples": [
        json.loads(FILTER_EXAMPLE),
        {"payload.framework": "vitest", "created_at": {"gte": "2026-01-01T00:00:00Z"}},
    ],
}
"""The filter language in outline: in full it is nested too deeply for most tools."""


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of this application, built once."""
    if app.openapi_schema is None:
        openapi = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description=app.description,
            routes=app.routes,
        )
        parts = openapi.setdefault("components", {})
        schemas = parts.setdefault("schemas", {})
        for unused_schema in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused_schema, None)
        # `Problem` is one of several forms, distinguished by its `type`.
        mapping: dict[str, str] = {}
        named = {name for names in PROBLEM_SHAPES.values() for name in names}
        for shape, names in PROBLEM_SHAPES.items():
            types = [TYPE + name for name in names or NAMES if names or name not in named]
            schema = shape.model_json_schema(ref_template=f"{_SCHEMAS}{{model}}")
            schemas.update(schema.pop("$defs", {}))
            schema["properties"]["type"] = {"type": "string", "enum": types}
            schemas[shape.__name__] = schema
            mapping |= dict.fromkeys(types, _SCHEMAS + shape.__name__)
        schemas["Problem"] = {
            "title": "Problem",
            "description": "A problem document (RFC 9457).",
            "oneOf": [{"$ref": _SCHEMAS + shape.__name__} for shape in PROBLEM_SHAPES],
            "discriminator": {"propertyName": "type", "mapping": mapping},
        }
        for name, schema in schemas.items():
            kind = _value_types().get(name)
            if kind is not None and "properties" in schema:
                # The fields of frozen values are always present.
                schema["required"] = list(schema["properties"])
                schema.setdefault("description", inspect.cleandoc(kind.__doc__ or ""))
        # Features add kinds of hits. The call itself refuses others.
        kinds = list(search_kinds())
        schemas["SearchHit"]["properties"]["kind"]["enum"] = kinds
        question = schemas["SearchQuestion"]["properties"]
        question["kinds"]["anyOf"][0]["items"]["enum"] = kinds
        schemas["Filter"] = _FILTER
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        openapi["security"] = [{}, {"token": []}]
        bodies = set[str]()
        for path, path_item in openapi["paths"].items():
            for method, operation in path_item.items():
                if method in _METHODS:
                    _complete_operation(path, operation)
                contents = operation.get("requestBody", {}).get("content", {}).values()
                bodies |= {content.get("schema", {}).get("$ref", "") for content in contents}
        for reference in bodies - {""}:
            _explain(reference.rsplit("/", 1)[1], schemas)
        app.openapi_schema = _with_filters(openapi)
    return app.openapi_schema


def _complete_operation(path: str, operation: dict[str, Any]) -> None:
    parameters = operation.setdefault("parameters", [])
    for parameter in parameters:
        shared = PARAMETERS.get(parameter["name"])
        if shared is not None:
            parameter.setdefault("description", shared.meaning)
        # It stands beside the schema.
        parameter["schema"].pop("description", None)
        if parameter["name"] == "filters":
            # JSON in a URL parameter can only be declared through `content`.
            parameter.pop("schema")
            schema = {"$ref": "#/components/schemas/Filter"}
            parameter["content"] = {"application/json": {"schema": schema}}
    parameters.append(
        {
            "name": "Anaphora-Namespace",
            "in": "header",
            "required": False,
            "description": "The namespace to work in; without it the default one.",
            "schema": {"type": "string", "pattern": _NAMESPACE},
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


def _explain(name: str, schemas: dict[str, Any]) -> None:
    """Describe the fields of a request schema, and of the schemas within it."""
    for field, schema in schemas[name].get("properties", {}).items():
        shared = PARAMETERS.get(field)
        # Older OpenAPI readers ignore siblings of a $ref.
        if shared is not None and "$ref" not in schema:
            schema.setdefault("description", shared.meaning)
        for inner_schema in _references(schema):
            _explain(inner_schema, schemas)


def _references(part: Any) -> set[str]:
    if isinstance(part, list):
        return set().union(*map(_references, part))
    if not isinstance(part, dict):
        return set()
    names = {part["$ref"].rsplit("/", 1)[1]} if "$ref" in part else set()
    return names.union(*map(_references, part.values()))


def _with_filters(part: Any) -> Any:
    """Replace the marked filters of bodies with a reference to the filter language."""
    if isinstance(part, list):
        return [_with_filters(child) for child in part]
    if not isinstance(part, dict):
        return part
    if "x-filter" in part:
        kinds = [{"$ref": "#/components/schemas/Filter"}, {"type": "null"}]
        return {"description": part.get("description", ""), "anyOf": kinds}
    return {name: _with_filters(child) for name, child in part.items()}
