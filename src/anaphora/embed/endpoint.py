"""An embedder behind HTTP: any OpenAI-compatible server, or Ollama. No other uses a network.

A setting such as `ollama:nomic-embed-text` comes in; an `Embedder` comes out. Texts are cut into
parts as long as a small window, sent in batches, and never truncated by the server without a word.
What the endpoint is (how long its vectors are, and what they are for a few neutral sentences) is
noted with its first use, and compared with the first answer of every process: a model that was
exchanged behind its name is found out before its vectors are mixed with others.

An endpoint that does not answer is `away`: calls fail at once until it is back, which is looked for
beside them.
"""

from __future__ import annotations

import base64
import hashlib
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from anaphora.core.late_threads import begins
from anaphora.embed.base import Vector, Vectors, mean_vector, unit_rows
from anaphora.embed.chunking import rough_windows
from anaphora.embed.neutral import PAIRS
from anaphora.embed.registry import EmbedderRegistry
from anaphora.errors import (
    EmbedderChanged,
    EmbeddingError,
    EndpointDenied,
    EndpointError,
    EndpointModelUnknown,
    EndpointUnreachable,
    InvalidInput,
    MissingExtra,
)

Api = Literal["openai", "ollama"]

OPENAI_URL: Final = "https://api.openai.com/v1"
OLLAMA_URL: Final = "http://localhost:11434"
_URLS: Final[dict[Api, str]] = {"openai": OPENAI_URL, "ollama": OLLAMA_URL}
_PATHS: Final[dict[Api, str]] = {"openai": "/embeddings", "ollama": "/api/embed"}
# Raise it when texts are cut or cleaned differently.
_RECIPE: Final = "1"

WINDOW: Final = 512
"""Tokens of one part unless the setting says otherwise: the window of most small models."""

# Texts and characters of one request. Some servers take no more than 32 texts.
_BATCH: Final = 32
_BATCH_CHARACTERS: Final = 40_000
# Three in eight: rough pieces of a part that nearly always has fewer tokens than the window.
_PIECES_OF_EIGHT: Final = 3
_FEWEST: Final = 8

_CONNECT_SECONDS: Final = 3.0
_ONE_SECONDS: Final = 8.0
_MORE_SECONDS: Final = 4.0
_ATTEMPTS: Final = 4
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 20.0
_SHORT_PAUSE: Final = 2.0
_AWAY_SECONDS: Final = 15.0
_BUSY: Final = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
_TOO_LONG: Final = frozenset((400, 413, 422))
_PROBES: Final = tuple(answer for _, answer in PAIRS[:3])
_SAME: Final = 0.99
"""The cosine from which on two vectors of one text are of one model: servers round differently."""

_UNREADABLE: Final = str.maketrans({0: " ", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")})
_BLANK: Final = "."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask, for which model, and how: what a setting says."""

    api: Api
    url: str
    model: str
    dimensions: int | None = None
    window: int = WINDOW
    query_prefix: str = ""
    document_prefix: str = ""

    @property
    def shown(self) -> str:
        """The URL without what could be a secret."""
        return self.url.partition("?")[0]

    @property
    def key(self) -> str:
        """What its vectors depend on, as far as the setting tells; not where the server is."""
        special = (self.dimensions, self.window, self.query_prefix, self.document_prefix)
        if special == (None, WINDOW, "", ""):
            return f"{self.api}:{_RECIPE}:{self.model}"
        digest = hashlib.sha256(repr(special).encode()).hexdigest()[:8]
        return f"{self.api}:{_RECIPE}:{self.model}:{digest}"


def parse_endpoint(setting: str) -> Endpoint | None:
    """`openai:MODEL`, `openai:URL#MODEL` or the same with `ollama`, and `?name=value&…` after it.

    None for a setting of another kind. Raises InvalidInput for one that cannot be used.
    """
    api, colon, rest = setting.partition(":")
    if not colon or api not in _URLS:
        return None
    url, mark, model = rest.rpartition("#")
    model, _, options = model.partition("?")
    if not mark and "://" in model:
        raise _bad(setting, "name the model after the URL: URL#MODEL")
    if not model.strip():
        raise _bad(setting, "it names no model")
    url = (url or _URLS[api]).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _bad(setting, "expected a URL that begins with http:// or https://")
    if parts.username or parts.password or parts.query:
        # The setting is written into the home.
        raise InvalidInput(
            "embedder",
            f"{api}:…#{model}",
            "its key belongs in ANAPHORA_EMBEDDER_KEY, not in the URL",
        )
    return Endpoint(api, url, model.strip(), **_options(setting, options))


def _options(setting: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        if name in {"dimensions", "window"}:
            if not value.isdecimal() or int(value) < 1:
                raise _bad(setting, f"{name} must be a whole number above 0")
            found[name] = int(value)
        elif name in {"query", "document"}:
            found[f"{name}_prefix"] = value
        else:
            raise _bad(setting, f"{name} is none of dimensions, window, query and document")
    return found


def _bad(setting: str, why: str) -> InvalidInput:
    return InvalidInput("embedder", setting, why)


@dataclass(frozen=True, slots=True)
class KnownEndpoint:
    """What was noted of an endpoint at its first use."""

    name: str
    dimensions: int
    probes: Vectors


def known_endpoint(
    endpoint: Endpoint, key: str | None, registry: EmbedderRegistry, *, anew: bool = False
) -> KnownEndpoint:
    """What is known of the endpoint; asked of itself where nothing is, and noted.

    With `anew` it is always asked, and gets another name where its vectors are no longer the same.
    Raises EndpointError when it has to be asked and does not answer.
    """
    noted = registry.get("endpoints", endpoint.key)
    known = _noted(endpoint, noted)
    if known is not None and not anew:
        return known
    client = _Client(endpoint, key)
    try:
        rows = client.embed(_probe_texts(endpoint))
    finally:
        client.close()
    probes = unit_rows(np.stack(rows))
    generation = noted.get("generation", 1) if known is not None else 1
    if known is not None:
        if _alike(known.probes, probes):
            return known
        generation += 1
    record = {
        "dimensions": int(probes.shape[1]),
        "generation": generation,
        "probes": base64.b64encode(probes.astype("<f4").tobytes()).decode(),
    }
    registry.put("endpoints", endpoint.key, record)
    found = _noted(endpoint, record)
    assert found is not None
    return found


def _noted(endpoint: Endpoint, record: dict[str, Any]) -> KnownEndpoint | None:
    try:
        dimensions, generation = int(record["dimensions"]), int(record["generation"])
        flat = np.frombuffer(base64.b64decode(record["probes"]), "<f4").astype(np.float32)
        probes = flat.reshape(len(_PROBES), dimensions)
    except (KeyError, TypeError, ValueError):
        return None
    again = f":{generation}" if generation > 1 else ""
    return KnownEndpoint(f"{endpoint.key}:{dimensions}{again}", dimensions, probes)


def _probe_texts(endpoint: Endpoint) -> list[str]:
    return [endpoint.document_prefix + text for text in _PROBES]


def _alike(one: Vectors, other: Vectors) -> bool:
    return one.shape == other.shape and bool((np.einsum("ij,ij->i", one, other) >= _SAME).all())


class EndpointEmbedder:
    """The embedder behind an endpoint. Safe to share between threads.

    Every call may raise EndpointError; then the endpoint is `away`, and so for some seconds, in
    which calls raise at once and nobody waits.
    """

    def __init__(self, endpoint: Endpoint, known: KnownEndpoint, key: str | None) -> None:
        self._endpoint = endpoint
        self._known = known
        self._client = _Client(endpoint, key, known.dimensions)
        self._lock = threading.Lock()
        self._away: EndpointError | None = None
        self._look_at = 0.0
        self._looking = False
        self._compared = False
        self._pieces = max(_FEWEST, endpoint.window * _PIECES_OF_EIGHT // 8)

    @property
    def name(self) -> str:
        """API, recipe, model and dimensions."""
        return self._known.name

    @property
    def dimensions(self) -> int:
        """As the endpoint's vectors are."""
        return self._known.dimensions

    @property
    def away(self) -> EndpointError | None:
        """Why the endpoint is unavailable, None while it is available.

        Asking also has somebody look, beside the caller, whether it is back.
        """
        with self._lock:
            if self._away is None:
                return None
            due = not self._looking and time.monotonic() >= self._look_at
            self._looking |= due
            reason = self._away
        if due and not begins(threading.Thread(target=self._look, daemon=True)):
            self._looking = False
        return reason

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order: shape (parts, dimensions) each, unit rows."""
        parts = [self._parts(text) for text in texts]
        flat = [part for own in parts for part in own]
        prefix = self._endpoint.document_prefix
        rows: list[Vectors] = []
        for batch in _batches(flat):
            # One text is somebody who waits: `remember`.
            rows += self._asked(batch, prefix, _ATTEMPTS if len(texts) > 1 else 2)
        found = iter(rows)
        return [np.concatenate([next(found) for _ in own]) for own in parts]

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (dimensions,): the normalised mean of its parts."""
        rows = self._asked(self._parts(text), self._endpoint.query_prefix, 1)
        return mean_vector(np.concatenate(rows))

    def query_key(self, text: str) -> Hashable:
        """The text as it is sent: word pieces are known where the model is."""
        return text.translate(_UNREADABLE)

    def look(self) -> None:
        """Find out whether the endpoint answers, and as it did; `away` says what was found."""
        try:
            # Nothing but the comparison, which is made anew after every absence.
            self._asked([], "", 1, even_away=True)
        except EmbeddingError:
            return

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def _look(self) -> None:
        try:
            self.look()
        finally:
            self._looking = False

    def _parts(self, text: str) -> list[str]:
        found = rough_windows(text.translate(_UNREADABLE), self._pieces)
        return [block[spans[0][0] : spans[-1][1]] for block, spans in found] or [_BLANK]

    def _asked(
        self, texts: Sequence[str], prefix: str, attempts: int, *, even_away: bool = False
    ) -> list[Vectors]:
        """The vectors of parts: several for one that was too long after all."""
        if self._away is not None and not even_away:
            raise self._away.with_traceback(None)
        try:
            if not self._compared:
                self._compare(attempts)
            found = self._sent(texts, prefix, attempts) if texts else []
        except EndpointError as error:
            with self._lock:
                self._away, self._look_at = error, time.monotonic() + _AWAY_SECONDS
                self._compared = False
            raise
        self._away = None
        return found

    def _compare(self, attempts: int) -> None:
        rows = unit_rows(np.stack(self._client.embed(_probe_texts(self._endpoint), attempts)))
        if not _alike(rows, self._known.probes):
            raise EmbedderChanged(
                self._endpoint.shown,
                self._endpoint.model,
                "the model behind this name has changed; `anaphora reindex --embedder …` with the "
                "same embedder makes all vectors anew",
            )
        self._compared = True

    def _sent(self, texts: Sequence[str], prefix: str, attempts: int) -> list[Vectors]:
        try:
            rows = self._client.embed([prefix + text for text in texts], attempts)
            return [unit_rows(row[None, :]) for row in rows]
        except _RefusedText:
            if len(texts) > 1:
                # Who of them it was is found out by halves.
                middle = len(texts) // 2
                halves = (texts[:middle], texts[middle:])
                return [row for half in halves for row in self._sent(half, prefix, attempts)]
            halved = self._halved(texts[0])
            return [np.concatenate([*self._sent(halved, prefix, attempts)])]

    def _halved(self, text: str) -> list[str]:
        """A part whose tokens were more than it looked like, cut between two of its words."""
        spans = [span for _, some in rough_windows(text, len(text)) for span in some]
        if len(spans) < _FEWEST:
            raise EmbeddingError(f"{self.name} does not take a text of {len(text)} characters")
        middle = spans[len(spans) // 2][0]
        return [text[:middle], text[middle:]]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == _BATCH or size + len(text) > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


class _RefusedText(EmbeddingError):
    """The endpoint does not take these texts; others may do."""


class _Client:
    """One endpoint over HTTP: requests, what their answers mean, and when they are sent again."""

    def __init__(
        self,
        endpoint: Endpoint,
        key: str | None,
        dimensions: int | None = None,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise MissingExtra("embedders", "httpx") from error
        self._endpoint = endpoint
        self._key = key
        self._dimensions = dimensions
        self._pause = pause
        self._failed = httpx.HTTPError
        # The last is of a client that was closed meanwhile.
        self._hopeless = (
            httpx.ConnectError, httpx.TimeoutException, httpx.UnsupportedProtocol, RuntimeError
        )  # fmt: skip
        self._timeout = httpx.Timeout
        # Proxies of the environment are the user's own wish; redirects could lead elsewhere.
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {}, follow_redirects=False
        )

    def close(self) -> None:
        self._http.close()

    def embed(self, texts: Sequence[str], attempts: int = _ATTEMPTS) -> list[Vector]:
        """A vector for each text, as the endpoint gives it.

        An endpoint that is busy is asked again, up to so many times in all.
        """
        seconds = _ONE_SECONDS + _MORE_SECONDS * (len(texts) - 1)
        timeout = self._timeout(seconds, connect=_CONNECT_SECONDS)
        url = self._endpoint.url + _PATHS[self._endpoint.api]
        for attempt in range(1, attempts + 1):
            try:
                answer = self._http.post(url, json=self._body(texts), timeout=timeout)
            except self._hopeless as error:
                raise self._unreachable(str(error) or type(error).__name__) from error
            except self._failed as error:
                # A connection that was kept and is gone: the next one is new.
                if attempt == attempts:
                    raise self._unreachable(str(error) or type(error).__name__) from error
                continue
            if answer.status_code not in _BUSY or attempt == attempts:
                return self._read(answer, len(texts))
            longest = _LONGEST_PAUSE if attempts > 2 else _SHORT_PAUSE
            self._pause(min(longest, _asked_pause(answer, _FIRST_PAUSE * 2 ** (attempt - 1))))
        raise AssertionError("the last attempt returns or raises")

    def _body(self, texts: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._endpoint.model, "input": list(texts)}
        if self._endpoint.api == "ollama":
            # It would cut a text that is too long, and say nothing.
            body["truncate"] = False
        if self._endpoint.dimensions is not None:
            body["dimensions"] = self._endpoint.dimensions
        return body

    def _read(self, answer: Any, count: int) -> list[Vector]:
        if answer.status_code != 200:
            raise self._refusal(answer)
        try:
            found = self._vectors(answer.json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unreachable("its answer holds no embeddings") from error
        if len(found) != count or not all(np.isfinite(row).all() for row in found):
            raise self._unreachable("its answer has not one vector for each text")
        lengths = {len(row) for row in found}
        wanted = self._dimensions or self._endpoint.dimensions or max(lengths, default=0)
        if lengths != {wanted}:
            given = ", ".join(map(str, sorted(lengths)))
            raise EmbedderChanged(
                self._endpoint.shown,
                self._endpoint.model,
                f"its vectors have {given} dimensions, expected {wanted}",
            )
        return found

    def _vectors(self, found: Any) -> list[Vector]:
        if self._endpoint.api == "ollama":
            rows = found["embeddings"]
        else:
            rows = [one["embedding"] for one in sorted(found["data"], key=lambda one: one["index"])]
        vectors = [np.asarray(row, np.float32) for row in rows]
        if any(row.ndim != 1 or not len(row) for row in vectors):
            raise ValueError("these are no vectors")
        return vectors

    def _refusal(self, answer: Any) -> EmbeddingError:
        code, said = answer.status_code, self._said(answer)
        where = (self._endpoint.shown, self._endpoint.model)
        if code in {401, 403}:
            hint = "it does not accept the key" if self._key else "it wants a key"
            return EndpointDenied(*where, f"{hint} (ANAPHORA_EMBEDDER_KEY); it answered {code}")
        if code == 404:
            known = "model" in said.lower()
            reason = said if known else "there is nothing at this URL; does it end in /v1?"
            return EndpointModelUnknown(*where, reason)
        if code in _TOO_LONG:
            return _RefusedText(f"{self._endpoint.model} at {self._endpoint.shown}: {said}")
        return self._unreachable(f"it answered {code}: {said}")

    def _said(self, answer: Any) -> str:
        """What the endpoint said, short, and without the key if it should repeat that."""
        try:
            found = answer.json()
            error = found.get("error", found)
            said = str(error.get("message", error) if isinstance(error, dict) else error)
        except (ValueError, AttributeError):
            said = str(answer.text)
        return (said.replace(self._key, "…") if self._key else said)[:200]

    def _unreachable(self, reason: str) -> EndpointUnreachable:
        return EndpointUnreachable(self._endpoint.shown, self._endpoint.model, reason)


def _asked_pause(answer: Any, otherwise: float) -> float:
    """How long the endpoint wants to be left alone, in seconds."""
    try:
        wanted = float(answer.headers.get("retry-after", otherwise))
    except ValueError:
        wanted = otherwise
    return otherwise if math.isnan(wanted) else max(wanted, 0.0)
