"""A client of several servers: takes the next one for each request, and passes over a dead one.

In: requests. Out: answers, and a `Tally` of all clients: times and statuses by operation, refused
connections, requests that had no answer. `Lost` is raised for those: whether such a request was
carried out, nobody can know from its connection.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.several.servers import Server

__all__ = ["Answer", "Client", "Lost", "NoServer", "Tally"]

# Servers close a connection that was silent for 15 s: one that is nearly as old is not used.
_FRESH_SECONDS = 8.0
_TIMEOUT = 90.0


class Lost(Exception):
    """A request that was sent, to a server that did not answer any more."""


class NoServer(Exception):
    """Every server refused the connection."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said; `done` is the moment on the monotonic clock."""

    status: int
    body: Any
    server: int
    done: float

    @property
    def good(self) -> bool:
        """Whether it did what was asked."""
        return self.status < 300


@dataclass(slots=True)
class Tally:
    """What all clients saw. Safe to share between threads."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, what: str, answer: Answer, seconds: float) -> None:
        """Note an answer."""
        with self._lock:
            self.seconds[what].append(seconds)
            self.statuses[what, answer.status] += 1
            if answer.status >= 500:
                said = f"{what} on server {answer.server}: {answer.status} {answer.body}"
                self.failed.append(said)

    def missing(self, server: int, *, refused: bool) -> None:
        """Note that a server did not answer, or refused the connection."""
        with self._lock:
            (self.refused if refused else self.lost)[server] += 1

    def mistake(self, words: str) -> None:
        """Note a wrong answer."""
        with self._lock:
            self.wrong.append(words)

    @property
    def requests(self) -> int:
        """How many were answered."""
        return sum(self.statuses.values())


class Client:
    """One client with a connection to each server. Not to be shared between threads.

    `sticky` sends a namespace to one server as long as that one lives.
    """

    def __init__(
        self, servers: Sequence[Server], tally: Tally, first: int = 0, *, sticky: bool = False
    ) -> None:
        self._servers = servers
        self._tally = tally
        self._next = first
        self._sticky = sticky
        self._open: dict[int, tuple[http.client.HTTPConnection, float]] = {}

    def ask(
        self,
        what: str,
        namespace: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        server: int | None = None,
    ) -> Answer:
        """The answer of the next server that takes the connection, or of the one that is named.

        Raises `Lost`, or `NoServer` when none takes it.
        """
        for number in [server] if server is not None else self._order(namespace):
            connection = self._connection(number)
            if connection is None:
                continue
            begun = time.monotonic()
            answer = self._exchange(connection, number, namespace, (method, path, body))
            self._tally.answered(what, answer, answer.done - begun)
            return answer
        raise NoServer(what)

    def close(self) -> None:
        """Close every connection."""
        for connection, _ in self._open.values():
            connection.close()
        self._open.clear()

    def _order(self, namespace: str) -> list[int]:
        count = len(self._servers)
        self._next += 1
        first = sum(namespace.encode()) if self._sticky else self._next
        return [(first + step) % count for step in range(count)]

    def _connection(self, number: int) -> http.client.HTTPConnection | None:
        known, used = self._open.pop(number, (None, 0.0))
        if known is not None and time.monotonic() - used < _FRESH_SECONDS:
            return known
        if known is not None:
            known.close()
        port = self._servers[number].port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT)
        try:
            connection.connect()
        except ConnectionRefusedError:
            self._tally.missing(number, refused=True)
            return None
        return connection

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        number: int,
        namespace: str,
        request: tuple[str, str, Any],
    ) -> Answer:
        method, path, body = request
        headers = {"Anaphora-Namespace": namespace}
        given = None
        if body is not None:
            given = json.dumps(body)
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, given, headers)
            response = connection.getresponse()
            said = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._tally.missing(number, refused=False)
            raise Lost(f"server {number}: {error!r}") from error
        now = time.monotonic()
        self._open[number] = (connection, now)
        return Answer(response.status, json.loads(said) if said else None, number, now)
