"""How a route calls the memory: in a bounded number of threads, in the caller's namespace.

In: a request that was let in, and a function of the facade. Out: what it returns. A call whose
caller went away before it began is not made; one that has begun is finished in its thread, so that
nothing is half-done. Too many waiting calls are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from anaphora.aio_workers import Workers
from anaphora.memory import Memory
from anaphora.store.tokens import Token, Tokens
from anaphora.surfaces.rest.options import ServerOptions
from anaphora.surfaces.rest.problems import Problem
from anaphora.surfaces.wire import dumps

__all__ = ["Caller", "Service", "answer", "caller_of", "service_of"]

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the namespace that the request names, and the token that it came with."""

    namespace: str
    token: Token | None


@dataclass(slots=True)
class Service:
    """What all requests share."""

    memory: Memory
    tokens: Tokens
    options: ServerOptions
    workers: Workers = field(init=False)

    def __post_init__(self) -> None:
        pool = ThreadPoolExecutor(self.options.workers, thread_name_prefix="anaphora-rest")
        self.workers = Workers(pool)

    async def do(self, call: Callable[P, ResultT], *args: P.args, **kwargs: P.kwargs) -> ResultT:
        """What `call` returns or raises, from a worker thread."""
        if len(self.workers.running) >= self.options.workers + self.options.waiting:
            raise Problem(
                503, "busy", "too many calls are waiting for this memory", {"Retry-After": "1"}
            )
        return await self.workers.do(call, *args, **kwargs)

    def view(self, namespace: str) -> Memory:
        """The memory in one namespace."""
        if namespace == self.memory.namespace:
            return self.memory
        return self.memory.scoped(namespace)


def service_of(request: Request) -> Service:
    """What the application was made with."""
    service: Service = request.app.state.service
    return service


def caller_of(request: Request) -> Caller:
    """Who was let in with this request."""
    caller: Caller = request.scope["anaphora.caller"]
    return caller


async def answer(
    request: Request,
    call: Callable[[Memory], Any],
    status: int | Callable[[Any], int] = 200,
) -> Response:
    """What `call` gives for the caller's namespace, as the JSON of every surface."""
    service = service_of(request)
    namespace = caller_of(request).namespace

    def work() -> tuple[Any, str]:
        # Made into text here, so that the event loop is free for other requests.
        value = call(service.view(namespace))
        return value, dumps(value, indent=None)

    value, text = await service.do(work)
    code = status if isinstance(status, int) else status(value)
    return Response(text, code, media_type="application/json")
