"""How a route calls the memory: in a bounded number of threads, in the caller's namespace.

Each kind of call (`Kind`) has its own threads, so that none waits behind another kind. A call whose
client disconnects before it starts is dropped; one that has started is finished in its thread, so
that nothing is half-done. If too many calls wait, more are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from anaphora.api.memory import Memory
from anaphora.api.workers import Workers
from anaphora.ingest.secrets.masking import mask
from anaphora.store.tokens import Token, Tokens
from anaphora.surfaces.access import may
from anaphora.surfaces.rest.options import ServerOptions
from anaphora.surfaces.rest.problems import Problem, problem_of_any
from anaphora.surfaces.wire import dumps
from anaphora.system.incidents import STOPS
from anaphora.system.permits import Permits

Kind: TypeAlias = Literal[
    "question", "large", "change", "project", "deep", "document", "import", "long"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
READS: Final = "__anaphora_reads__"
"""Marks an endpoint that only reads although it is a POST."""
KIND: Final = "__anaphora_kind__"
"""Marks an endpoint with the kind of its calls."""
DEADLINE: Final = "anaphora.deadline"
"""The scope in which a request ends, which the route may extend."""
VERBATIM_HEADER: Final = "anaphora-verbatim"
"""With "true", a program of the server's own user gets turns with their secrets."""
EVENTS_TYPE: Final = "text/event-stream"
_END: Final = ""
_THREADS: Final[Mapping[Kind, int]] = {
    "large": 2,
    "deep": 4,
    "document": 4,
    "import": 4,
    "long": 4,
}
_LARGE: Final = 64 * 1024
_LONG: Final = frozenset(("deep", "document", "import", "long"))

ResultT = TypeVar("ResultT")
EndpointT = TypeVar("EndpointT", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RestCaller:
    """The namespace that a request names, and the token that it came with."""

    namespace: str
    token: Token | None


@dataclass(slots=True)
class Service:
    """The state that all requests share."""

    memory: Memory
    tokens: Tokens
    options: ServerOptions
    workers: dict[Kind, Workers] = field(init=False)
    permits: Permits = field(init=False)
    _threads: dict[Kind, int] = field(init=False)

    def __post_init__(self) -> None:
        self.permits = Permits(self.options.computing)
        self._threads = {kind: _THREADS.get(kind, self.options.workers) for kind in KINDS}
        self.workers = {
            kind: Workers(
                ThreadPoolExecutor(self._threads[kind], thread_name_prefix=f"rest-{kind}")
            )
            for kind in KINDS
        }

    async def run(self, kind: Kind, call: Callable[[], ResultT]) -> ResultT:
        """Run `call` in a worker thread for this kind and return its result."""
        return await self.begin(kind, call)

    def begin(self, kind: Kind, call: Callable[[], ResultT]) -> asyncio.Future[ResultT]:
        """Start `call` without waiting. Cancelled before it starts, it never runs."""
        waiting = self.options.long_waiting if kind in _THREADS else self.options.waiting
        if len(self.workers[kind].running) >= self._threads[kind] + waiting:
            raise Problem(
                503, "busy", "too many calls are waiting for this memory", {"Retry-After": "1"}
            )

        def run() -> ResultT:
            try:
                return call()
            except STOPS as error:
                # A worker must not exit.
                raise RuntimeError("a call tried to end the program") from error

        return self.workers[kind].begin(run)

    def running(self) -> int:
        """The number of calls in progress or waiting."""
        return sum(len(workers.running) for workers in self.workers.values())

    def finish(self) -> None:
        """Wait for the calls in progress."""
        for workers in self.workers.values():
            workers.finish(lambda _: None)

    def view(self, namespace: str) -> Memory:
        """The memory in one namespace."""
        is_own = namespace == self.memory.namespace
        return self.memory if is_own else self.memory.scoped(namespace)


def service_of(request: Request) -> Service:
    """The service of the application."""
    service: Service = request.app.state.service
    return service


def caller_of(request: Request) -> RestCaller:
    """The authenticated caller of a request."""
    caller: RestCaller = request.scope["anaphora.caller"]
    return caller


def opens_all(request: Request) -> bool:
    """Whether the caller has access to the whole home rather than some namespaces."""
    return may(caller_of(request).token, "whole_home")


def reads_verbatim(request: Request) -> bool:
    """Whether secrets in turns stay unmasked, as a program of the server's own user may ask."""
    asks = request.headers.get(VERBATIM_HEADER) == "true"
    return asks and may(caller_of(request).token, "verbatim")


async def answer(
    request: Request,
    call: Callable[[Memory], Any],
    status: Callable[[Any], int] = lambda _: 200,
) -> Response:
    """Respond with the result of `call` in the caller's namespace, as JSON."""
    service = service_of(request)
    namespace, kind = caller_of(request).namespace, kind_of(request)
    verbatim = reads_verbatim(request)

    def work() -> tuple[Any, str]:
        # Serialised in the worker thread, so that the event loop stays free for other requests.
        with service.permits.held() if kind == "question" else nullcontext():
            payload = call(service.view(namespace))
            return payload, dumps(payload if verbatim else mask(payload), indent=None)

    async def _wait_for_disconnect() -> None:
        # The body was read before.
        while (await request.receive())["type"] != "http.disconnect":
            pass

    # Cancelled if the client disconnects before it starts.
    working = service.begin(kind, work)
    disconnect_task = asyncio.ensure_future(_wait_for_disconnect())
    disconnect_task.add_done_callback(lambda _: working.cancel())
    try:
        payload, body = await working
    except asyncio.CancelledError:
        if not disconnect_task.done():
            raise
        # Raises if an unread body was too large.
        disconnect_task.result()
        raise ClientDisconnect from None
    finally:
        disconnect_task.cancel()
    return Response(body, status(payload), media_type="application/json")


def reads(route: Any, method: str) -> bool:
    """Whether a request by this method to this route changes nothing."""
    return method in {"GET", "HEAD"} or getattr(route.endpoint, READS, False)


def in_threads_of(kind: Kind | None) -> Callable[[EndpointT], EndpointT]:
    """Mark an endpoint with the kind of its calls; None if it depends on the request."""

    def mark(endpoint: EndpointT) -> EndpointT:
        setattr(endpoint, KIND, kind)
        return endpoint

    return mark


def is_long(scope: Scope) -> bool:
    """Whether the route of a request may take long: it asks a model, or processes a whole namespace
    or folder."""
    return _kind_of_route(scope) in _LONG


def _kind_of_route(scope: Scope) -> Kind | None:
    return getattr(getattr(scope.get("route"), "endpoint", None), KIND, None)


def kind_of(request: Request) -> Kind:
    """The kind of threads that a request is answered in."""
    kind = _kind_of_route(request.scope)
    if kind is not None:
        return kind
    if not reads(request.scope["route"], request.method):
        return "change"
    # Long questions are analysed word by word before any search.
    declared_length = request.headers.get("content-length", "")
    is_large = not declared_length.isdecimal() or int(declared_length) > _LARGE
    return "large" if request.method == "POST" and is_large else "question"


def streamed(request: Request, call: Callable[[Callable[[Any], None]], Any]) -> StreamingResponse:
    """Server-sent events of `call(on_step)`: each `step`, and `answer` or `problem` at the end.

    A silent stream gets a comment regularly, so that proxies keep it open. A client that
    disconnects stops nothing: the result of the call is stored.
    """
    return StreamingResponse(_events(request, call), media_type=EVENTS_TYPE)


async def _events(
    request: Request, call: Callable[[Callable[[Any], None]], Any]
) -> AsyncIterator[str]:
    service, verbatim = service_of(request), reads_verbatim(request)
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[str]()

    def tell(name: str, content: Any) -> None:
        # Serialised in the worker thread; one-line JSON contains no line breaks.
        masked_content = content if verbatim else mask(content)
        text = f"event: {name}\ndata: {dumps(masked_content, indent=None)}\n\n"
        loop.call_soon_threadsafe(waiting.put_nowait, text)

    running = asyncio.ensure_future(
        service.run("deep", lambda: call(lambda step: tell("step", step)))
    )
    running.add_done_callback(lambda _: loop.call_soon(waiting.put_nowait, _END))
    try:
        yield ": the steps come as they happen\n\n"
        while True:
            try:
                text = await asyncio.wait_for(waiting.get(), service.options.heartbeat)
            except TimeoutError:
                text = ": still at it\n\n"
            if text == _END:
                break
            yield text
        try:
            payload = running.result()
            masked_payload = payload if verbatim else mask(payload)
            text = f"event: answer\ndata: {dumps(masked_payload, indent=None)}\n\n"
        except (asyncio.CancelledError, *STOPS):
            raise
        except BaseException as error:  # noqa: BLE001 - the stream ends with a problem document
            body = problem_of_any(error, request.scope).body
            text = f"event: problem\ndata: {bytes(body).decode()}\n\n"
        yield text
    finally:
        # Cancelling the future does not end a call in progress.
        running.cancel()
