"""The connection to a server: requests with a token and a namespace, time-outs, and retries.

Retried are requests that were refused before they began (429, and 503 with "busy"), and repeatable
ones: reads, and writes that add nothing the second time. A server that answered before and now
refuses connections is being restarted, for an upgrade: the client waits. A change that may have
been made is not retried: its error says so (`ServerUnreachable.sent`). It is the only module here
with HTTP.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias
from urllib.parse import urlsplit

from anaphora.calls.counting import Calls
from anaphora.calls.limits import limited, within_limit
from anaphora.client.problems import error_of
from anaphora.errors import (
    AnaphoraError,
    InvalidInput,
    MissingExtra,
    ServerError,
    ServerUnreachable,
)
from anaphora.system.bounded import Unbounded, pieces_of, read_json

if TYPE_CHECKING:
    import httpx
    from httpx import Client

    HttpClient: TypeAlias = Client

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_AWAY: Final = frozenset((502, 503, 504))
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 10.0
_RESTART_PAUSE: Final = 1.0
_PIECE: Final = 1 << 18
_TRANSFER: Final = 60.0
"""Seconds for an answer to arrive, in addition to those in which it must begin."""
_log = logging.getLogger("anaphora")


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `repeatable`: may be done twice. `long`: may take minutes.

    `also` is another status of a good answer. `verbatim`: secrets in turns unmasked. `recalls`: a
    `Cancellation` may abandon it, as it changes nothing.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    file: BinaryIO | None = None
    repeatable: bool = False
    long: bool = False
    also: int = 200
    verbatim: bool = True
    recalls: bool = False


@dataclass(frozen=True, slots=True)
class Patience:
    """The time limits: `quick` and `long` seconds for an answer, `retries` more attempts.

    `restart` are the seconds to wait for a server that has answered before to listen again; with no
    `retries`, none.
    """

    quick: float = 60.0
    long: float = 900.0
    retries: int = 2
    sleep: Callable[[float], None] = time.sleep
    restart: float = 30.0


class ServerConnection:
    """What all views on one server share. Safe to share between threads."""

    def __init__(
        self,
        url: str,
        token: str | None,
        patience: Patience,
        http_client: HttpClient | None = None,
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise MissingExtra("client", "httpx") from error
        self.url = _check_url(url)
        self.handlers: dict[str, list[Callable[[Any], None]]] = {"remember": [], "recall": []}
        self._calls = Calls()
        self._patience = patience
        if token is not None and (not token or not token.isascii() or not token.isprintable()):
            # Never shown: it may be nearly the right one.
            raise InvalidInput("token", None, "expected what `anaphora token create` shows")
        self._token = token
        self._http = httpx
        self._own = http_client is None
        self._has_answered = False
        # Proxies of the environment are the user's choice; redirects could lead elsewhere.
        self._client = http_client or httpx.Client(follow_redirects=False)

    def ask(self, namespace: str, request: Request) -> Any:
        """The JSON of the answer. Raises the error that a refusal stands for, `ServerError`."""
        with self._calls:
            answer = self._answer(namespace, request)
            return self._json(answer, answer.content)

    def events(self, namespace: str, request: Request, on_event: Callable[[str, Any], None]) -> Any:
        """The data of the last event; `on_event` is told the name and data of those before it."""
        with self._calls, self._stream(namespace, request, accept=_EVENTS) as answer:
            for name, text in _read_events(_lines(self._pieces(answer, request))):
                payload = self._json(answer, text.encode())
                if name == "answer":
                    return payload
                if name == "problem":
                    status = payload.get("status") if isinstance(payload, dict) else None
                    raise error_of(self.url, int(status or 500), payload)
                on_event(name, payload)
        raise ServerUnreachable(self.url, "its answer ended before its end", sent=True)

    def download(self, namespace: str, request: Request, file: BinaryIO) -> Mapping[str, str]:
        """Write what comes to `file`; the headers of the answer."""
        with self._calls, self._stream(namespace, request, accept="*/*") as answer:
            for piece in answer.iter_bytes(_PIECE):
                file.write(piece)
            return dict(answer.headers)

    def tell(self, event: str, value: Any) -> None:
        """Tell the listeners of an event; one that raises is logged, and fails no call."""
        for handler in list(self.handlers[event]):
            try:
                handler(value)
            except Exception:  # noqa: BLE001 - an error of a listener must not fail the call
                _log.exception("a listener to %r failed: %r", event, handler)

    def close(self, timeout: float | None) -> None:
        """Let no other call begin, wait for those under way, and let go of the connections."""
        if self._calls.finish(timeout) and self._own:
            self._client.close()

    def _answer(self, namespace: str, request: Request) -> httpx.Response:
        """The answer of the last attempt, which is a good one."""
        retries, pause = self._patience.retries, _FIRST_PAUSE
        restart = self._patience.restart if retries else 0.0
        start = request.file.tell() if request.file is not None else 0
        while True:
            try:
                answer = self._send_once(namespace, request)
                self._has_answered = True
                if answer.is_success or answer.status_code == request.also:
                    return answer
                error_to_raise, retryable = self._read_refusal(answer, request)
            except ServerUnreachable as error:
                answer, error_to_raise = None, error
                retryable = request.repeatable or not error.sent
                if not error.sent and self._has_answered and restart > 0:
                    # Nothing was sent: this does not count as an attempt.
                    restart -= _RESTART_PAUSE
                    self._patience.sleep(_RESTART_PAUSE)
                    continue
            if not retryable or retries <= 0:
                raise error_to_raise
            retries -= 1
            # The server's `retry-after` counts, within limits.
            retry_after = answer.headers.get("retry-after", "") if answer is not None else ""
            seconds = min(_LONGEST_PAUSE, float(retry_after)) if retry_after.isdecimal() else pause
            self._patience.sleep(seconds)
            pause = min(_LONGEST_PAUSE, pause * 4)
            if request.file is not None:
                request.file.seek(start)

    def _read_whole(self, built: httpx.Request, request: Request) -> httpx.Response:
        return self._read_pieces(self._client.send(built, stream=True), request)

    def _send_once(self, namespace: str, request: Request) -> httpx.Response:
        built = self._build(namespace, request, _JSON)
        try:
            if not request.recalls:
                return self._read_whole(built, request)
            with limited(None):
                return within_limit(lambda: self._read_whole(built, request))
        except self._http.HTTPError as error:
            raise self._unreachable(error) from error

    def _read_pieces(self, answer: httpx.Response, request: Request) -> httpx.Response:
        """The same answer, read, without the headers about its encoding."""
        try:
            content = b"".join(self._pieces(answer, request))
        finally:
            answer.close()
        headers = [
            (name, header)
            for name, header in answer.headers.multi_items()
            if name not in ("content-encoding", "content-length", "transfer-encoding")
        ]
        return self._http.Response(
            answer.status_code, headers=headers, content=content, request=answer.request
        )

    def _pieces(self, answer: httpx.Response, request: Request) -> Iterator[bytes]:
        """The bytes of an answer, within bounds. ServerError for one that has none."""
        seconds = self._patience.long if request.long else self._patience.quick
        if answer.is_stream_consumed:
            # The user's own HTTP client has read it.
            yield answer.content
            return
        try:
            yield from pieces_of(answer, seconds + _TRANSFER)
        except Unbounded as error:
            raise ServerError(self.url, str(error), answer.status_code) from error

    @contextmanager
    def _stream(self, namespace: str, request: Request, *, accept: str) -> Iterator[httpx.Response]:
        try:
            answer = self._client.send(self._build(namespace, request, accept), stream=True)
            try:
                if not answer.is_success:
                    raise self._read_refusal(self._read_pieces(answer, request), request)[0]
                yield answer
            finally:
                answer.close()
        except self._http.HTTPError as error:
            raise self._unreachable(error) from error

    def _build(self, namespace: str, request: Request, accept: str) -> httpx.Request:
        seconds = self._patience.long if request.long else self._patience.quick
        # A server's header may hold any characters, sent as UTF-8.
        headers = {b"Accept": accept.encode(), b"Accept-Encoding": b"gzip"}
        headers |= {b"Anaphora-Namespace": namespace.encode()}
        # Only effective for the user's own token: with others, secrets in turns are masked.
        headers[b"Anaphora-Verbatim"] = b"true" if request.verbatim else b"false"
        if self._token is not None:
            headers[b"Authorization"] = b"Bearer " + self._token.encode()
        content: Any = request.file
        if request.body is not None:
            headers[b"Content-Type"] = _JSON.encode()
            try:
                # Beyond ASCII all is escaped: a lone surrogate is one that the server can refuse.
                content = json.dumps(request.body, allow_nan=False).encode()
            except (TypeError, ValueError, RecursionError) as error:
                reason = f"expected what JSON can hold ({error})"
                raise InvalidInput("payload", None, reason) from None
        elif content is not None:
            headers[b"Content-Type"] = b"application/octet-stream"
        return self._client.build_request(
            request.method,
            self.url + request.path,
            params={
                name: str(parameter).lower() if isinstance(parameter, bool) else parameter
                for name, parameter in request.query.items()
            },
            headers=headers,
            content=content,
            timeout=self._http.Timeout(seconds, connect=min(10.0, seconds)),
        )

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        never = (self._http.ConnectError, self._http.ConnectTimeout, self._http.PoolTimeout)
        sent = not isinstance(error, never)
        is_late = isinstance(error, self._http.TimeoutException)
        words = str(error) or type(error).__name__
        return ServerUnreachable(
            self.url, f"it did not answer in time ({words})" if is_late else words, sent=sent
        )

    def _read_refusal(self, answer: httpx.Response, request: Request) -> tuple[AnaphoraError, bool]:
        """The error of a refusal, and whether asking again may help."""
        status = answer.status_code
        if answer.is_redirect:
            # To follow it would send the token to another server.
            to = answer.headers.get("location", "")
            return ServerError(self.url, f"it redirects to {to}: use that address", status), False
        try:
            problem = read_json(answer.content)
        except ValueError:
            problem = None
        name = problem.get("type", "") if isinstance(problem, dict) else ""
        never_begun = status == 429 or str(name).endswith(":busy")
        # An error of the memory itself is the same the next time.
        is_away = status in _AWAY and not (isinstance(problem, dict) and problem.get("error"))
        retryable = never_begun or (request.repeatable and is_away)
        return error_of(self.url, status, problem), retryable

    def _json(self, answer: httpx.Response, content: bytes) -> Any:
        try:
            return read_json(content)
        except ValueError as error:
            reason = "its answer is none of an Anaphora server"
            raise ServerError(self.url, reason, answer.status_code) from error


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    """The lines of a text that comes in pieces."""
    waiting: list[bytes] = []
    for piece in pieces:
        *complete, remainder = piece.split(b"\n")
        for line in complete:
            yield b"".join([*waiting, line]).removesuffix(b"\r").decode(errors="replace")
            waiting = []
        waiting.append(remainder)
    yield b"".join(waiting).decode(errors="replace")


def _read_events(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """The name and data of each server-sent event; a comment is none."""
    name, data_lines = "", list[str]()
    for line in lines:
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data_lines.append(line[5:].removeprefix(" "))
        elif not line and data_lines:
            yield name, "\n".join(data_lines)
            name, data_lines = "", []


def _check_url(url: str) -> str:
    reason = "expected the address of a server, as https://memory.example.org"
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InvalidInput("url", url, reason)
    if parts.query or parts.fragment or parts.username is not None:
        # The link that a server prints has its token behind the #.
        raise InvalidInput("url", None, f"{reason}; the token is an argument of its own")
    return url.rstrip("/")
