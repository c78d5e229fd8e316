"""What a server writes to standard error: one line a record, and no traceback.

A traceback quotes what was being worked on. An error that a library logs becomes an incident, and
its line has the id. A thread that an error ends, and a callback that one is lost in, do the same.

A message can quote a memory, a request, a token or a path. A line keeps the words of our own calls
and the numbers in them, an error by its type and code; of other libraries it says where they
logged. Only the logger `SERVER` may write texts: its calls pass ids, routes and names of types.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final

from anaphora.core.display import one_line
from anaphora.core.incidents import STOPS, describe, report

SERVER: Final = "anaphora.server"
"""The logger of what a server says of itself: how it started, and slow and failed requests."""

_LINE: Final = 500
_HIDDEN: Final = "…"
# Libraries whose messages are constant, but for their arguments.
_CONSTANT: Final = ("anaphora", "uvicorn")
_QUOTE: Final = re.compile(r"""['"<]""")


class LineHandler(logging.Handler):
    """Writes each record as one line. `surface` names where its incidents come from."""

    def __init__(self, environ: Mapping[str, str], surface: str) -> None:
        super().__init__()
        self._environ = environ
        self._surface = surface

    def emit(self, record: logging.LogRecord) -> None:
        """Write it; an error of writing fails nothing."""
        with suppress(Exception):
            sys.stderr.write(f"anaphora: {self._line(record)}\n")
            sys.stderr.flush()

    def _line(self, record: logging.LogRecord) -> str:
        message = one_line(_message(record).partition("\n")[0], _LINE)
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            message += self._reported(error, record.name)
        level = record.levelname.lower()
        return message if record.levelno <= logging.INFO else f"{level}: {message}"

    def _reported(self, error: BaseException, operation: str) -> str:
        if isinstance(error, STOPS):
            return ""
        incident = report(self._environ, error, surface=self._surface, operation=operation)
        return f" (incident {incident.id}: {incident.summary})"


def _message(record: logging.LogRecord) -> str:
    """What may be written of a message."""
    library = record.name.partition(".")[0]
    if isinstance(record.msg, BaseException):
        return describe(record.msg)
    if library == "asyncio":
        # It has what failed as a repr behind constant words.
        return _QUOTE.split(str(record.msg).partition("\n")[0])[0].strip()
    if library not in _CONSTANT:
        return f"{record.name} logged at {record.module}:{record.lineno}"
    if not isinstance(record.args, tuple) or not record.args:
        return str(record.msg)
    try:
        return str(record.msg) % tuple(_shown(value, record.name) for value in record.args)
    except (TypeError, ValueError):
        # A number was expected where one is hidden.
        return str(record.msg)


def _shown(value: object, logger: str) -> object:
    """An argument of a message, as far as it can quote nothing."""
    if isinstance(value, BaseException):
        return describe(value)
    if value is None or isinstance(value, int | float | datetime):
        return value
    return value if logger == SERVER and isinstance(value, str) else _HIDDEN


@contextmanager
def server_logs(environ: Mapping[str, str], surface: str) -> Iterator[None]:
    """While a server runs, its logs, warnings and the ends of its threads are lines with ids.

    Within another call it changes nothing.
    """
    if any(isinstance(known, LineHandler) for known in logging.getLogger().handlers):
        yield
        return
    handler, root, own = (
        LineHandler(environ, surface),
        logging.getLogger(),
        logging.getLogger(SERVER),
    )
    level, thread_hook, lost_hook = own.level, threading.excepthook, sys.unraisablehook
    root.addHandler(handler)
    logging.captureWarnings(True)
    own.setLevel(logging.INFO)
    threading.excepthook = _reporting(environ, surface, "thread")
    sys.unraisablehook = _reporting(environ, surface, "callback")
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = thread_hook, lost_hook
        logging.captureWarnings(False)
        own.setLevel(level)
        root.removeHandler(handler)


def log_start(**facts: object) -> None:
    """Log how a server started, in one line."""
    logging.getLogger(SERVER).info(
        "started: %s", ", ".join(f"{name} {value}" for name, value in facts.items())
    )


def _reporting(environ: Mapping[str, str], surface: str, operation: str) -> Callable[[Any], None]:
    """A hook of the interpreter for an error that nothing catches."""

    def handle(raised: Any) -> None:
        error = raised.exc_value
        if error is None or isinstance(error, STOPS):
            return
        incident = report(environ, error, surface=surface, operation=operation)
        with suppress(Exception):
            words = f"an error ended a {operation} (incident {incident.id}: {incident.summary})"
            sys.stderr.write(f"anaphora: {words}\n")

    return handle
