"""The schemas and functions of routes that are derived from the descriptions of calls.

A parameter in the path of the request, in its query (GET and DELETE) or in its body gets its type
from the annotation of the method, and its bounds and description from `calls.parameters`.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from fastapi import Path
from pydantic import AliasChoices, BaseModel, Field, create_model

from anaphora.api.memory import Memory
from anaphora.calls.operation import IN_PROCESS, Operation
from anaphora.calls.parameters import CallParameter, Parameter
from anaphora.errors import FilterError
from anaphora.surfaces.rest.schemas import Body, DayOrTime, Filters, Parameters, Time
from anaphora.surfaces.rest.shapes import ENVELOPES
from anaphora.surfaces.wire import times_between
from anaphora.values.conversations import READ_AWAITED, ConfigurableCount

_FORMER: Final = {"question": "query"}
"""Names that members of a body had before: programs that say them go on working."""


def path_parameter(described: Parameter) -> Any:
    """A text in the path of a request, with its meaning and bounds."""
    return Path(description=described.meaning, **_text_bounds(described))


class DerivedRoute:
    """What a route needs, out of the description of a call that has a `summary`."""

    def __init__(self, operation: Operation, bodies: Mapping[type, type[Body]]) -> None:
        http = operation.http
        if http is None or not http.summary:
            raise TypeError(f"{operation.name}: no route is derived from it")
        self.operation, self.http = operation, http
        in_url = not http.has_body
        self._parameters: dict[str, CallParameter] = {}
        self.path_types: dict[str, Any] = {}
        members: dict[str, Any] = {}
        for name, parameter in operation.parameters.items():
            if name in IN_PROCESS or name in http.folders:
                continue
            request_name = http.renamed.get(name, name)
            self._parameters[request_name] = parameter
            if request_name in http.path_names:
                self.path_types[request_name] = Annotated[str, path_parameter(parameter.described)]
            else:
                members[request_name] = _member(parameter, bodies, in_url=in_url)
        base = Parameters if in_url else Body
        model_name = http.body or _pascal(operation.name) + ("Query" if in_url else "Body")
        self.model: type[BaseModel] | None = (
            create_model(model_name, __base__=base, __doc__=http.summary + ".", **members)
            if members
            else None
        )
        described_days = (parameter.described.day for parameter in self._parameters.values())
        self._takes_days = any(described_days)

    @property
    def name(self) -> str:
        """The name of the route, by which generated clients name their functions."""
        return self.http.name or self.operation.name

    @property
    def description(self) -> str:
        """What the call does: the first paragraph of its docstring, without its errors."""
        paragraph = (inspect.getdoc(self.operation.function) or "").partition("\n\n")[0]
        sentences = re.split(r"(?<=[.;]) (?=[A-Z`])", " ".join(paragraph.split()))
        return " ".join(part for part in sentences if not part.startswith("Raises"))

    @property
    def answer(self) -> Any:
        """The type of the answer, as the OpenAPI document has it."""
        shape = self.operation.returned
        if get_origin(shape) in (tuple, list):
            shape = list[get_args(shape)[0]]  # type: ignore[misc]
        shape = ENVELOPES.get(shape, shape)
        if not self.http.part:
            return shape
        name = self.http.answer or _pascal(self.operation.name) + "Answer"
        return _part_model(name, self.http.part, shape)

    def arguments(self, in_path: Mapping[str, str], request: BaseModel | None) -> dict[str, Any]:
        """The arguments of the call, out of the path and the validated query or body."""
        fields = request.given() if isinstance(request, Body) else dict(request or {})
        arguments = {}
        for request_name, argument in {**in_path, **fields}.items():
            parameter = self._parameters[request_name]
            # Without a count, the server's configuration holds.
            if argument is not None or not isinstance(parameter.default, ConfigurableCount):
                arguments[parameter.name] = argument
        if "read" in arguments and arguments["read"] is None:
            arguments["read"] = READ_AWAITED
        if isinstance(arguments.get("filters"), str):
            arguments["filters"] = _filter_of(arguments["filters"])
        return arguments

    def call(
        self, memory: Memory, arguments: dict[str, Any], function: Callable[..., Any] | None
    ) -> Any:
        """The result of the call, or of the `function` that stands for it, as it is answered."""
        if self._takes_days:
            arguments |= times_between(arguments, memory.local_time)
        if function is None:
            answer = getattr(memory, self.operation.name)(**arguments)
        else:
            answer = function(memory, **arguments)
        return {self.http.part: answer} if self.http.part else answer


def _filter_of(text: str) -> dict[str, Any]:
    try:
        filters = json.loads(text)
    except (ValueError, RecursionError):
        raise FilterError("filters", text, "expected a filter in JSON") from None
    if not isinstance(filters, dict):
        raise FilterError("filters", text, "expected a JSON object")
    return filters


def _member(
    parameter: CallParameter, bodies: Mapping[type, type[Body]], *, in_url: bool
) -> tuple[Any, Any]:
    """The type and the default of a member of a request."""
    described, default = parameter.described, parameter.default
    # Without a count, the server's configuration holds.
    is_configured = isinstance(default, ConfigurableCount)
    optional = parameter.optional or is_configured
    if is_configured or (optional and default is ...):
        default = None
    # Programs send an empty field of a form as an empty text.
    is_free = in_url and optional and parameter.annotation is str
    kind = bodies.get(parameter.annotation) or _request_type(
        parameter, Parameter() if is_free else described, in_url=in_url
    )
    if optional and kind is not Filters:
        kind = Union[kind, None]  # noqa: UP007 - of a type that is only known here
    if isinstance(default, tuple):
        default = list(default)
    former = None if in_url else _FORMER.get(parameter.name)
    names = AliasChoices(parameter.name, former) if former else None
    return kind, Field(default, description=described.meaning or None, validation_alias=names)


def _request_type(parameter: CallParameter, described: Parameter, *, in_url: bool) -> Any:
    annotation = parameter.annotation
    if get_origin(annotation) is Mapping:
        if parameter.name != "filters":
            return dict[str, Any]
        return str if in_url else Filters
    if annotation is datetime:
        return DayOrTime if described.day else Time
    is_union = get_origin(annotation) in (Union, UnionType)
    parts = get_args(annotation) if is_union else (annotation,)
    several = next((part for part in parts if get_origin(part) in (Iterable, Sequence)), None)
    if several is None:
        return _bounded(annotation, described)
    member = _bounded(get_args(several)[0], described.member or Parameter())
    rows: Any = Annotated[
        list[member],  # type: ignore[valid-type]
        Field(min_length=_whole(described.least), max_length=_whole(described.most)),
    ]
    # Where none is no answer, one text is the same as a list of it.
    return str | rows if str in parts and described.least else rows


def _bounded(kind: Any, described: Parameter) -> Any:
    """The type with the bounds of a parameter."""
    if kind is str:
        bounds = _text_bounds(described)
    elif kind in (int, float):
        limits = {"ge": described.least, "le": described.most}
        bounds = {name: limit for name, limit in limits.items() if limit is not None}
    else:
        return kind
    return Annotated[kind, Field(**bounds)] if bounds else kind


def _text_bounds(described: Parameter) -> dict[str, Any]:
    bounds = {
        "min_length": _whole(described.least),
        "max_length": _whole(described.most),
        "pattern": described.pattern or None,
    }
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


@cache
def _part_model(name: str, part: str, shape: Any) -> type[BaseModel]:
    """The schema of an answer that is one member of an object. Several calls may share it."""
    members: dict[str, Any] = {part: (shape, ...)}
    return create_model(name, __doc__=f"`{part}` is the answer.", **members)


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
