"""Calls in threads of their own, begun at any time: also once the main thread has ended.

Python's own pools refuse work then, while other threads still run; from Python 3.12 on no thread
starts any more, and the calls are made in the calling thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from anaphora.system.late_threads import begins

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@contextmanager
def lasting_thread(call: Callable[[], ResultT], name: str) -> Iterator[Future[ResultT]]:
    """Begin a call in a thread that lives until the block is left, whenever the call ends.

    To a kernel that is told to end a process with its parent, the parent is the thread.
    """
    future: Future[ResultT] = Future()
    over = threading.Event()

    def work() -> None:
        _settle(future, call)
        over.wait()

    thread = threading.Thread(target=work, name=name)
    if not begins(thread):
        _settle(future, call)
        yield future
        return
    try:
        yield future
    finally:
        over.set()
        thread.join()


def call_each(
    call: Callable[[ItemT], ResultT], arguments: Sequence[ItemT], most: int, name: str
) -> list[ResultT]:
    """`call` of each argument, in their order, at most `most` at once. Raises the first error.

    All of them have ended when this returns or raises.
    """
    futures: list[Future[ResultT]] = [Future() for _ in arguments]
    waiting = iter(zip(futures, arguments, strict=True))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                pair = next(waiting, None)
            if pair is None:
                return
            future, argument = pair
            _settle(future, partial(call, argument))

    threads = [
        threading.Thread(target=work, name=f"{name}-{number}")
        for number in range(min(most, len(arguments)))
    ]
    begun = [thread for thread in threads if begins(thread)]
    if not begun:
        work()
    for thread in begun:
        thread.join()
    return [future.result() for future in futures]


def _settle(future: Future[ResultT], call: Callable[[], ResultT]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - raised again by `Future.result`
        future.set_exception(error)
