"""What a server writes to standard error: one line per record, and no traceback.

A traceback quotes user data. An error that a library logs becomes an incident, and its line has the
incident's id. So do uncaught errors of threads and callbacks.

A message can quote a memory, a request, a token or a path. A line keeps the constant words of our
own log calls and their numbers, and errors by type and code; for other libraries it says only where
they logged. Only the logger `SERVER` may write texts: it gets ids, routes and names of types.
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

from anaphora.ingest.secrets.masking import mask_text
from anaphora.system.incidents import STOPS, describe, report
from anaphora.text.display import one_line

SERVER: Final = "anaphora.server"
"""The logger for a server's own messages: its start, and slow and failed requests."""

_LINE: Final = 500
_HIDDEN: Final = "…"
# Libraries with messages that are constant except for their arguments.
_CONSTANT: Final = ("anaphora", "uvicorn")
_QUOTE: Final = re.compile(r"""['"<]""")


class LineHandler(logging.Handler):
    """Writes each record as one line. `surface` names the origin of its incidents."""

    def __init__(self, environ: Mapping[str, str], surface: str) -> None:
        super().__init__()
        self._environ = environ
        self._surface = surface

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record; errors in writing are ignored."""
        with suppress(Exception):
            message = one_line(mask_text(_message(record).partition("\n")[0]), _LINE)
            error = record.exc_info[1] if record.exc_info else None
            if error is not None and not isinstance(error, STOPS):
                incident = report(
                    self._environ, error, surface=self._surface, operation=record.name
                )
                message += f" (incident {incident.id}: {incident.summary})"
            if record.levelno > logging.INFO:
                message = f"{record.levelname.lower()}: {message}"
            sys.stderr.write(f"anaphora: {message}\n")
            sys.stderr.flush()


def _message(record: logging.LogRecord) -> str:
    """The part of a message that may be written."""
    library = record.name.partition(".")[0]
    if isinstance(record.msg, BaseException):
        return describe(record.msg)
    if library == "asyncio":
        # It quotes the failed object as a repr after constant words.
        return _QUOTE.split(str(record.msg).partition("\n")[0])[0].strip()
    if library not in _CONSTANT:
        return f"{record.name} logged at {record.module}:{record.lineno}"
    if not isinstance(record.args, tuple) or not record.args:
        return str(record.msg)
    # Only arguments that cannot quote user data.
    public: tuple[type, ...] = (int, float, datetime, type(None))
    if record.name == SERVER:
        public = (*public, str)
    arguments = [
        describe(argument)
        if isinstance(argument, BaseException)
        else (argument if isinstance(argument, public) else _HIDDEN)
        for argument in record.args
    ]
    try:
        return str(record.msg) % tuple(arguments)
    except (TypeError, ValueError):
        # A number was expected, but the argument is hidden.
        return str(record.msg)


@contextmanager
def server_logs(environ: Mapping[str, str], surface: str) -> Iterator[None]:
    """While a server runs, write logs, warnings and uncaught errors as lines with incident ids.

    Nested in another call it changes nothing.
    """
    if any(isinstance(handler_, LineHandler) for handler_ in logging.getLogger().handlers):
        yield
        return
    handler, root, server = (
        LineHandler(environ, surface),
        logging.getLogger(),
        logging.getLogger(SERVER),
    )
    level, thread_hook, lost_hook = server.level, threading.excepthook, sys.unraisablehook
    root.addHandler(handler)
    logging.captureWarnings(True)
    server.setLevel(logging.INFO)
    threading.excepthook = _reporting(environ, surface, "thread")
    sys.unraisablehook = _reporting(environ, surface, "callback")
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = thread_hook, lost_hook
        logging.captureWarnings(False)
        server.setLevel(level)
        root.removeHandler(handler)


def log_start(**facts: object) -> None:
    """Log how a server started, in one line."""
    logging.getLogger(SERVER).info(
        "started: %s", ", ".join(f"{name} {fact}" for name, fact in facts.items())
    )


def _reporting(environ: Mapping[str, str], surface: str, operation: str) -> Callable[[Any], None]:
    """A hook of the interpreter for uncaught errors."""

    def handle(raised: Any) -> None:
        error = raised.exc_value
        if error is None or isinstance(error, STOPS):
            return
        incident = report(environ, error, surface=surface, operation=operation)
        with suppress(Exception):
            words = f"an error ended a {operation} (incident {incident.id}: {incident.summary})"
            sys.stderr.write(f"anaphora: {words}\n")

    return handle
