"""Routes made of functions that take a memory, and the checks before them.

GET only reads; every other route that only reads must be marked (`reads`), so that a new one cannot
be forgotten.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar, cast

from fastapi import APIRouter, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from anaphora.api.memory import Memory
from anaphora.calls.operation import operations_of
from anaphora.calls.parameters import PARAMETERS
from anaphora.surfaces.access import may
from anaphora.surfaces.rest.calls import (
    DEADLINE,
    READS,
    Kind,
    answer,
    caller_of,
    in_threads_of,
    is_long,
    reads,
    service_of,
)
from anaphora.surfaces.rest.derived import DerivedRoute, path_parameter
from anaphora.surfaces.rest.problems import Problem
from anaphora.surfaces.rest.schemas import Body, NoQuery, Parameters
from anaphora.surfaces.rest.sent import SentParts

MemoryId = Annotated[str, path_parameter(PARAMETERS["id"])]
ConversationId = Annotated[str, path_parameter(PARAMETERS["conversation_id"])]
CallT = TypeVar("CallT", bound=Callable[..., Any])


class LaneRouter(APIRouter):
    """The routes of one lane, which refuse changes by read-only tokens.

    Unless `closed` is False, they also refuse unknown parameters in the URL.
    """

    def __init__(self, lane: str, prefix: str = "/v1", *, closed: bool = True) -> None:
        super().__init__(
            prefix=prefix,
            tags=[lane],
            route_class=_LaneRoute if closed else _OpenRoute,
            # Generated clients name their functions by it.
            generate_unique_id_function=lambda route: route.name,
        )

    def answers(
        self,
        route: str,
        summary: str,
        model: Any,
        status: int = 200,
        *,
        or_else: tuple[int, Callable[[Any], bool]] | None = None,
        reads: bool = False,
        kind: Kind | None = None,
        shown: bool = True,
    ) -> Callable[[CallT], CallT]:
        """Declare a route such as "GET /gaps" that answers with a function's result.

        The function's other parameters are those of the request, or the request itself. `model` is
        the schema of the answer. Its status is `status`, or that of `or_else` if its condition
        holds. `reads` marks a route that changes nothing, `kind` the threads that answer it
        and whether it may take long; `shown` includes it in the OpenAPI document.
        """
        method, path = route.split()
        codes = sorted({status, or_else[0]} if or_else else {status})

        def made(call: CallT) -> CallT:
            endpoint = _endpoint(
                call, lambda value: or_else[0] if or_else and or_else[1](value) else status
            )
            setattr(endpoint, READS, reads)
            in_threads_of(kind)(endpoint)
            self.add_api_route(
                path,
                endpoint,
                methods=[method],
                status_code=status,
                summary=summary,
                responses={code: {"model": model} for code in codes},
                include_in_schema=shown,
            )
            return call

        return made

    def offer(
        self,
        owner: type,
        *names: str,
        calls: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        bodies: Mapping[type, type[Body]] = MappingProxyType({}),
        hidden_at: str = "",
    ) -> None:
        """Add the routes that are derived from the calls of a class, or from those named.

        `calls` are functions that stand for a call, with the memory as their first argument;
        `bodies` the schemas of arguments that are values. With `hidden_at` the route is at that
        path, too, and not in the OpenAPI document.
        """
        routes = [
            DerivedRoute(described, bodies)
            for name, described in operations_of(owner).items()
            if described.http is not None and described.http.summary
            if not names or name in names
        ]
        for route in routes:
            http, operation = route.http, route.operation
            self.answers(
                f"{http.method} {hidden_at or http.path.removeprefix(self.prefix)}",
                http.summary,
                route.answer,
                201 if http.creates else 200,
                reads=operation.right == "read",
                kind=cast("Kind | None", http.threads or None),
                shown=not hidden_at,
            )(_derived_call(route, calls.get(operation.name)))


def _derived_call(route: DerivedRoute, function: Callable[..., Any] | None) -> Callable[..., Any]:
    """A function as `LaneRouter.answers` takes it."""
    memory = Parameter("memory", Parameter.POSITIONAL_OR_KEYWORD, annotation=Memory)
    part = "body" if route.http.has_body else "query"
    types = {**route.path_types, **({} if route.model is None else {part: route.model})}

    def call(memory: Memory, **sent: Any) -> Any:
        request = sent.pop(part, None)
        return route.call(memory, route.arguments(sent, request), function)

    call.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            memory,
            *(
                Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind)
                for name, kind in types.items()
            ),
        ]
    )
    call.__name__, call.__doc__ = route.name, route.description
    return call


def _endpoint(call: Callable[..., Any], status: Callable[[Any], int]) -> Callable[..., Any]:
    """Adapt the function to the framework: it takes a request and returns a response."""
    parameters = [Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    _, *declared = signature(call, eval_str=True).parameters.values()
    for parameter in declared:
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, Parameters):
            # A model of URL parameters.
            kind = Annotated[kind, Query()]
        if kind is not Request:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind))
    asks = len(parameters) <= len(declared)

    async def endpoint(request: Request, **sent: Any) -> Response:
        if asks:
            sent["request"] = request
        return await answer(request, lambda memory: call(memory, **sent), status)

    endpoint.__signature__ = Signature(parameters, return_annotation=Response)  # type: ignore[attr-defined]
    endpoint.__name__, endpoint.__doc__ = call.__name__, call.__doc__
    return endpoint


class _LaneRoute(APIRoute):
    """A route that refuses changes by read-only tokens before it reads the body.

    It gives calls that may take long more time, and refuses unknown parameters in the URL.
    """

    other: ClassVar[type[BaseModel]] = NoQuery

    def __init__(self, path: str, endpoint: Callable[..., Any], **declared: Any) -> None:
        super().__init__(path, endpoint, **declared)
        self._sent = SentParts(endpoint, self.other)
        self.app = self._respond

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        if not reads(self, request.method) and not may(caller_of(request).token, "change"):
            raise Problem(403, "read_only", "this token is read-only")
        if is_long(scope):
            seconds = service_of(request).options.long_seconds
            scope[DEADLINE].reschedule(get_running_loop().time() + seconds)
        response = await self.endpoint(request, **await self._sent.read(request))
        await response(scope, receive, send)


class _OpenRoute(_LaneRoute):
    """A route that takes any parameters in the URL."""

    other = BaseModel
