"""Server-sent events: steps as they happen, then the answer.

In: a call that tells its steps from a worker thread. Out: an event stream of `step`, and `answer`
or `problem` at the end. A silent stream has a comment now and then, so that nothing between takes
it for dead. A reader who goes away stops nothing: what the call finds is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from starlette.responses import StreamingResponse

from anaphora.errors import AnaphoraError
from anaphora.surfaces.rest.calls import Service
from anaphora.surfaces.rest.problems import Problem, problem, problem_of
from anaphora.surfaces.wire import dumps

MEDIA_TYPE: Final = "text/event-stream"
_END: Final = ""


def streamed(service: Service, call: Callable[[Callable[[Any], None]], Any]) -> StreamingResponse:
    """The stream of `call(on_step)`: its steps, then what it returns."""
    return StreamingResponse(_events(service, call), media_type=MEDIA_TYPE)


async def _events(
    service: Service, call: Callable[[Callable[[Any], None]], Any]
) -> AsyncIterator[str]:
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[str]()

    def tell(name: str, value: Any) -> None:
        # Made into text in the worker's thread; JSON on one line has no line break of its own.
        text = f"event: {name}\ndata: {dumps(value, indent=None)}\n\n"
        loop.call_soon_threadsafe(waiting.put_nowait, text)

    running = asyncio.ensure_future(
        service.of("long", lambda: call(lambda step: tell("step", step)))
    )
    running.add_done_callback(lambda _: loop.call_soon(waiting.put_nowait, _END))
    try:
        yield ": the steps come as they happen\n\n"
        while (text := await _next(waiting, service.options.heartbeat)) != _END:
            yield text
        yield _ended(running)
    finally:
        # Cancelling the wait does not end a call that has begun.
        running.cancel()


async def _next(waiting: asyncio.Queue[str], heartbeat: float) -> str:
    try:
        return await asyncio.wait_for(waiting.get(), heartbeat)
    except TimeoutError:
        return ": still at it\n\n"


def _ended(running: asyncio.Future[Any]) -> str:
    try:
        return f"event: answer\ndata: {dumps(running.result(), indent=None)}\n\n"
    except Problem as refused:
        said = problem(refused.status_code, refused.name, refused.detail).body
    except AnaphoraError as error:
        said = problem_of(error).body
    return f"event: problem\ndata: {bytes(said).decode()}\n\n"
