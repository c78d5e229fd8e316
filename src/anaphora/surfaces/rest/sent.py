"""What a request sends to an endpoint: names in its path, `query` and `body`, validated at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from inspect import signature
from typing import Any, Final, get_args, get_origin

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from starlette.requests import Request

from anaphora.surfaces.rest.problems import Problem

_JSON: Final = re.compile(r"application/(?:[^/]*\+)?json", re.IGNORECASE)
_PARTS: Final = ("query", "body")


class SentParts:
    """The parts that an endpoint declares. Without a `query`, `other` says what the URL may have.

    The framework would solve the endpoint's dependencies first, and validate part by part.
    """

    def __init__(self, endpoint: Callable[..., Any], other: type[BaseModel]) -> None:
        declared = signature(endpoint, eval_str=True).parameters
        kinds = {name: part.annotation for name, part in declared.items() if name != "request"}
        self._passed = [name for name in _PARTS if name in kinds]
        names: dict[str, Any] = {n: (kind, ...) for n, kind in kinds.items() if n not in _PARTS}
        parts: dict[str, Any] = {
            "path": (create_model("Path", **names), ...),
            "query": (other, ...),
        }
        parts |= {name: (kinds[name], ...) for name in self._passed}
        sent = create_model("Sent", **parts)
        query: Any = sent.model_fields["query"].annotation
        # Of other parameters in the URL the last one of a name counts.
        self._lists = {n for n, field in query.model_fields.items() if _has_list(field.annotation)}
        self._validate = TypeAdapter(sent).validate_python

    async def read(self, request: Request) -> dict[str, Any]:
        """The arguments of the endpoint. Raises `RequestValidationError`, and `Problem`."""
        parameters = request.query_params
        sent: dict[str, Any] = {
            "path": request.path_params,
            "query": {
                n: parameters.getlist(n) if n in self._lists else parameters[n] for n in parameters
            },
        }
        if "body" in self._passed and (content := await request.body()):
            sent["body"] = _parse(content, request.headers.get("content-type", ""))
        try:
            valid = self._validate(sent, from_attributes=True)
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_url=False)) from None
        return {**dict(valid.path), **{name: getattr(valid, name) for name in self._passed}}


def _parse(content: bytes, media_type: str) -> Any:
    """The body as JSON; the bytes, which no model takes, if they are declared as something else."""
    if not _JSON.fullmatch(media_type.partition(";")[0].strip()):
        return content
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        mistake = {"loc": ("body", error.pos), "msg": "JSON decode error"}
        raise RequestValidationError([mistake]) from None
    except (ValueError, RecursionError):
        raise Problem(400, "unreadable", "There was an error parsing the body") from None


def _has_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(map(_has_list, get_args(annotation)))
