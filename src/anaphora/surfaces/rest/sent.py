"""What a request sends to an endpoint: names in its path, `query` and `body`, validated at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Annotated, Any, Final, get_args, get_origin

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from starlette.requests import Request

from anaphora.surfaces.rest.problems import Problem

_JSON: Final = re.compile(r"application/(?:[^/]*\+)?json", re.IGNORECASE)


class SentParts:
    """The parts that an endpoint declares. Without a `query`, `unknown` says what the URL may have.

    The framework would validate each part by itself, and solve the endpoint's dependencies first.
    """

    def __init__(self, endpoint: Callable[..., Any], unknown: type[BaseModel] | None) -> None:
        declared = signature(endpoint, eval_str=True).parameters.values()
        kinds = {part.name: part.annotation for part in declared if part.name != "request"}
        self._passed = [name for name in ("query", "body") if name in kinds]
        query, body = kinds.pop("query", unknown), kinds.pop("body", None)
        query = get_args(query)[0] if get_origin(query) is Annotated else query
        self._has_body = body is not None
        # Of other parameters in the URL the last one of a name counts.
        self._lists = {
            name
            for name, field in ({} if query is None else query.model_fields).items()
            if _takes_list(field.annotation)
        }
        path: dict[str, Any] = {name: (kind, ...) for name, kind in kinds.items()}
        parts: dict[str, Any] = {"path": create_model("Path", **path), "query": query, "body": body}
        self._validate = TypeAdapter(
            create_model(
                "Sent", **{name: (kind, ...) for name, kind in parts.items() if kind is not None}
            )
        ).validate_python

    async def read(self, request: Request) -> dict[str, Any]:
        """The arguments of the endpoint. Raises `RequestValidationError`, and `Problem`."""
        sent: dict[str, Any] = {"path": request.path_params}
        parameters = request.query_params
        sent["query"] = {
            name: parameters.getlist(name) if name in self._lists else parameters[name]
            for name in parameters
        }
        if self._has_body and (content := await request.body()):
            sent["body"] = _parse(content, request.headers.get("content-type", ""))
        try:
            valid = self._validate(sent, from_attributes=True)
        except ValidationError as error:
            mistakes = error.errors(include_url=False, include_input=False, include_context=False)
            raise RequestValidationError(mistakes) from None
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


def _takes_list(annotation: Any) -> bool:
    if isinstance(annotation, type) or get_origin(annotation) is None:
        return False
    return get_origin(annotation) in {list, Sequence} or any(map(_takes_list, get_args(annotation)))
