"""An embedder behind HTTP: any OpenAI-compatible server, or Ollama. No other uses a network.

It is made from a setting such as `ollama:nomic-embed-text`. Texts are cut into parts of the length
of a small window, sent in batches, and never silently truncated by the server. The dimensions of
its vectors, and its vectors for a few neutral sentences, are recorded at the first use and compared
with the first answer in every process: a model that was replaced under the same name is detected
before its vectors are mixed with others.

An endpoint that does not answer is `away`: calls fail at once until a check in the background finds
it back.
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
from anaphora.ingest.secrets.masking import mask_text
from anaphora.system.addresses import AddressLook
from anaphora.system.late_threads import begins

Api = Literal["openai", "ollama"]

OPENAI_URL: Final = "https://api.openai.com/v1"
OLLAMA_URL: Final = "http://localhost:11434"
_URLS: Final[dict[Api, str]] = {"openai": OPENAI_URL, "ollama": OLLAMA_URL}
_PATHS: Final[dict[Api, str]] = {"openai": "/embeddings", "ollama": "/api/embed"}
# To be raised when texts are cut or cleaned differently.
_RECIPE: Final = "1"

WINDOW: Final = 512
"""Default number of tokens in a part: the window of most small models."""

# Texts and characters per request. Some servers take no more than 32 texts.
_BATCH: Final = 32
_BATCH_CHARACTERS: Final = 40_000
# Rough pieces per eight tokens of the window, so that a part nearly always fits.
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
"""From this cosine, two vectors of one text are of the same model: servers round differently."""

_UNREADABLE: Final = str.maketrans({0: " ", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")})
_BLANK: Final = "."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The content of a setting: URL, model and options."""

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
        """Identifies the parts of the setting that the vectors depend on, without the URL."""
        special = (self.dimensions, self.window, self.query_prefix, self.document_prefix)
        if special == (None, WINDOW, "", ""):
            return f"{self.api}:{_RECIPE}:{self.model}"
        digest = hashlib.sha256(repr(special).encode()).hexdigest()[:8]
        return f"{self.api}:{_RECIPE}:{self.model}:{digest}"


def parse_endpoint(setting: str) -> Endpoint | None:
    """`openai:MODEL`, `openai:URL#MODEL` or the same with `ollama`, and `?name=value&…` after it.

    None for a setting of another kind. Raises InvalidInput for an unusable one.
    """
    api, colon, address = setting.partition(":")
    if not colon or api not in _URLS:
        return None
    url, mark, model = address.rpartition("#")
    model, _, query = model.partition("?")
    if not mark and "://" in model:
        raise _bad(setting, "name the model after the URL: URL#MODEL")
    if not model.strip():
        raise _bad(setting, "it names no model")
    url = (url or _URLS[api]).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _bad(setting, "expected a URL that begins with http:// or https://")
    if parts.username or parts.password or parts.query:
        # The setting is stored in the home, in clear.
        raise InvalidInput(
            "embedder",
            f"{api}:…#{model}",
            "its key belongs in ANAPHORA_EMBEDDER_KEY, not in the URL",
        )
    options: dict[str, Any] = {}
    for name, content in parse_qsl(query, keep_blank_values=True):
        if name in {"dimensions", "window"}:
            if not content.isdecimal() or int(content) < 1:
                raise _bad(setting, f"{name} must be a whole number above 0")
            options[name] = int(content)
        elif name in {"query", "document"}:
            options[f"{name}_prefix"] = content
        else:
            raise _bad(setting, f"{name} is none of dimensions, window, query and document")
    return Endpoint(api, url, model.strip(), **options)


def _bad(setting: str, why: str) -> InvalidInput:
    return InvalidInput("embedder", setting, why)


@dataclass(frozen=True, slots=True)
class KnownEndpoint:
    """The properties of an endpoint that were recorded at its first use."""

    name: str
    dimensions: int
    probes: Vectors


def known_endpoint(
    endpoint: Endpoint, key: str | None, registry: EmbedderRegistry, *, anew: bool = False
) -> KnownEndpoint:
    """The properties of the endpoint: recorded ones, else requested from it and recorded.

    With `anew` it is always asked, and gets another name if its vectors have changed. Raises
    EndpointError if it has to be asked and does not answer.
    """
    endpoint_record = registry.get("endpoints", endpoint.key)
    stored_endpoint = _read_known(endpoint, endpoint_record)
    if stored_endpoint is not None and not anew:
        return stored_endpoint
    client = _Client(endpoint, key)
    try:
        rows = client.embed(_probe_texts(endpoint))
    finally:
        client.close()
    probes = unit_rows(np.stack(rows))
    generation = endpoint_record.get("generation", 1) if stored_endpoint is not None else 1
    if stored_endpoint is not None:
        if _are_alike(stored_endpoint.probes, probes):
            return stored_endpoint
        generation += 1
    record = {
        "dimensions": int(probes.shape[1]),
        "generation": generation,
        "probes": base64.b64encode(probes.astype("<f4").tobytes()).decode(),
    }
    registry.put("endpoints", endpoint.key, record)
    new_endpoint = _read_known(endpoint, record)
    assert new_endpoint is not None
    return new_endpoint


def _read_known(endpoint: Endpoint, record: dict[str, Any]) -> KnownEndpoint | None:
    try:
        dimensions, generation = int(record["dimensions"]), int(record["generation"])
        flat = np.frombuffer(base64.b64decode(record["probes"]), "<f4").astype(np.float32)
        probes = flat.reshape(len(_PROBES), dimensions)
    except (KeyError, TypeError, ValueError):
        return None
    suffix = f":{generation}" if generation > 1 else ""
    return KnownEndpoint(f"{endpoint.key}:{dimensions}{suffix}", dimensions, probes)


def _probe_texts(endpoint: Endpoint) -> list[str]:
    return [endpoint.document_prefix + text for text in _PROBES]


def _are_alike(first: Vectors, second: Vectors) -> bool:
    return first.shape == second.shape and bool(
        (np.einsum("ij,ij->i", first, second) >= _SAME).all()
    )


class EndpointEmbedder:
    """The embedder behind an endpoint. Safe to share between threads.

    Every call may raise EndpointError; then the endpoint is `away` for some seconds, in which calls
    raise at once.
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
        """The length of a vector."""
        return self._known.dimensions

    @property
    def away(self) -> EndpointError | None:
        """Why the endpoint is unavailable, None while it is available.

        Reading this also starts a check in the background, at intervals, whether it is back.
        """
        with self._lock:
            if self._away is None:
                return None
            is_due = not self._looking and time.monotonic() >= self._look_at
            self._looking |= is_due
            reason = self._away
        if is_due and not begins(threading.Thread(target=self._look, daemon=True)):
            self._looking = False
        return reason

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order: shape (parts, dimensions) each, unit rows."""
        parts = [self._parts(text) for text in texts]
        flat = [part for text_parts in parts for part in text_parts]
        prefix = self._endpoint.document_prefix
        rows: list[Vectors] = []
        for batch in _batches(flat):
            # For a single text a caller is usually waiting, as in `remember`.
            rows += self._request(batch, prefix, _ATTEMPTS if len(texts) > 1 else 2)
        remaining = iter(rows)
        return [np.concatenate([next(remaining) for _ in text_parts]) for text_parts in parts]

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (dimensions,): the normalised mean of its parts."""
        rows = self._request(self._parts(text), self._endpoint.query_prefix, 1)
        return mean_vector(np.concatenate(rows))

    def query_key(self, text: str) -> Hashable:
        """The text as it is sent: only the server has the tokenizer."""
        return text.translate(_UNREADABLE)

    def look(self) -> None:
        """Check whether the endpoint answers as it did, and update `away`."""
        try:
            # Without texts only the comparison is made, which is due after every failure.
            self._request([], "", 1, even_away=True)
        except EmbeddingError:
            return

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def _look(self) -> None:
        try:
            self.look()
        finally:
            self._looking = False

    def _parts(self, text: str) -> list[str]:
        windows = rough_windows(text.translate(_UNREADABLE), self._pieces)
        return [block[spans[0][0] : spans[-1][1]] for block, spans in windows] or [_BLANK]

    def _request(
        self, texts: Sequence[str], prefix: str, attempts: int, *, even_away: bool = False
    ) -> list[Vectors]:
        """The vectors of parts: several for a part that was too long for the model."""
        if self._away is not None and not even_away:
            raise self._away.with_traceback(None)
        try:
            if not self._compared:
                probes = unit_rows(
                    np.stack(self._client.embed(_probe_texts(self._endpoint), attempts))
                )
                if not _are_alike(probes, self._known.probes):
                    raise EmbedderChanged(
                        self._endpoint.shown,
                        self._endpoint.model,
                        "the model behind this name has changed; `anaphora reindex --embedder …` "
                        "with the same embedder makes all vectors anew",
                    )
                self._compared = True
            rows = self._send(texts, prefix, attempts) if texts else []
        except EndpointError as error:
            with self._lock:
                self._away, self._look_at = error, time.monotonic() + _AWAY_SECONDS
                self._compared = False
            raise
        self._away = None
        return rows

    def _send(self, texts: Sequence[str], prefix: str, attempts: int) -> list[Vectors]:
        try:
            rows = self._client.embed([prefix + text for text in texts], attempts)
            return [unit_rows(row[None, :]) for row in rows]
        except _RefusedText as error:
            if len(texts) > 1:
                # Halving finds the refused text.
                middle = len(texts) // 2
                halves = (texts[:middle], texts[middle:])
                return [row for half in halves for row in self._send(half, prefix, attempts)]
            # A part with more tokens than estimated is cut between two of its words.
            text = texts[0]
            spans = [
                span for _, block_spans in rough_windows(text, len(text)) for span in block_spans
            ]
            if len(spans) < _FEWEST:
                raise EmbeddingError(
                    f"{self.name} does not take a text of {len(text)} characters"
                ) from error
            cut_position = spans[len(spans) // 2][0]
            rows = self._send([text[:cut_position], text[cut_position:]], prefix, attempts)
            return [np.concatenate(rows)]


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
    """The endpoint refuses these texts; it may accept others."""


class _Client:
    """The HTTP client of one endpoint: requests, retries, and the meaning of answers."""

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
        self._is_there = False
        self._failed = httpx.HTTPError
        # RuntimeError is raised by a client that was closed meanwhile.
        self._hopeless = (
            httpx.ConnectError, httpx.TimeoutException, httpx.UnsupportedProtocol, RuntimeError
        )  # fmt: skip
        self._timeout = httpx.Timeout
        # Proxies from the environment are intended; redirects could lead to another host.
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {}, follow_redirects=False
        )

    def close(self) -> None:
        self._http.close()

    def embed(self, texts: Sequence[str], attempts: int = _ATTEMPTS) -> list[Vector]:
        """A vector for each text, as given by the endpoint.

        A busy endpoint is asked again, up to `attempts` times in all.
        """
        seconds = _ONE_SECONDS + _MORE_SECONDS * (len(texts) - 1)
        timeout = self._timeout(seconds, connect=_CONNECT_SECONDS)
        url = self._endpoint.url + _PATHS[self._endpoint.api]
        body: dict[str, Any] = {"model": self._endpoint.model, "input": list(texts)}
        if self._endpoint.api == "ollama":
            # Otherwise it would silently cut a text that is too long.
            body["truncate"] = False
        if self._endpoint.dimensions is not None:
            body["dimensions"] = self._endpoint.dimensions
        self._reach()
        for attempt in range(1, attempts + 1):
            try:
                answer = self._http.post(url, json=body, timeout=timeout)
            except self._hopeless as error:
                raise self._unreachable(str(error) or type(error).__name__) from error
            except self._failed as error:
                # A kept connection was closed by the server: the next attempt opens a new one.
                if attempt == attempts:
                    raise self._unreachable(str(error) or type(error).__name__) from error
                continue
            if answer.status_code not in _BUSY or attempt == attempts:
                return self._read(answer, len(texts))
            longest = _LONGEST_PAUSE if attempts > 2 else _SHORT_PAUSE
            usual = _FIRST_PAUSE * 2 ** (attempt - 1)
            try:
                # The pause that the endpoint asks for, in seconds.
                pause = float(answer.headers.get("retry-after", usual))
            except ValueError:
                pause = usual
            self._pause(min(longest, usual if math.isnan(pause) else max(pause, 0.0)))
        raise AssertionError("the last attempt returns or raises")

    def _reach(self) -> None:
        """Look whether a server answers: a model that is being loaded may need much longer."""
        if not self._is_there:
            try:
                AddressLook(self._endpoint.url, dict(self._http.headers)).status()
            except OSError as error:
                raise self._unreachable(str(error)) from None
            self._is_there = True

    def _read(self, answer: Any, count: int) -> list[Vector]:
        if answer.status_code != 200:
            raise self._refusal(answer)
        try:
            content = answer.json()
            if self._endpoint.api == "ollama":
                rows = content["embeddings"]
            else:
                rows = [
                    row["embedding"]
                    for row in sorted(content["data"], key=lambda row: row["index"])
                ]
            vectors = [np.asarray(row, np.float32) for row in rows]
            if any(row.ndim != 1 or not len(row) for row in vectors):
                raise ValueError("these are no vectors")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unreachable("its answer holds no embeddings") from error
        if len(vectors) != count or not all(np.isfinite(row).all() for row in vectors):
            raise self._unreachable("its answer has not one vector for each text")
        lengths = {len(row) for row in vectors}
        expected_length = self._dimensions or self._endpoint.dimensions or max(lengths, default=0)
        if lengths != {expected_length}:
            lengths_shown = ", ".join(map(str, sorted(lengths)))
            raise EmbedderChanged(
                self._endpoint.shown,
                self._endpoint.model,
                f"its vectors have {lengths_shown} dimensions, expected {expected_length}",
            )
        return vectors

    def _refusal(self, answer: Any) -> EmbeddingError:
        code = answer.status_code
        try:
            content = answer.json()
            error = content.get("error", content)
            message = str(error.get("message", error) if isinstance(error, dict) else error)
        except (ValueError, AttributeError):
            message = str(answer.text)
        # The endpoint may repeat the key.
        message = mask_text(message.replace(self._key, "…") if self._key else message)[:200]
        endpoint_and_model = (self._endpoint.shown, self._endpoint.model)
        if code in {401, 403}:
            hint = "it does not accept the key" if self._key else "it wants a key"
            return EndpointDenied(
                *endpoint_and_model, f"{hint} (ANAPHORA_EMBEDDER_KEY); it answered {code}"
            )
        if code == 404:
            names_model = "model" in message.lower()
            reason = message if names_model else "there is nothing at this URL; does it end in /v1?"
            return EndpointModelUnknown(*endpoint_and_model, f"{reason} (ANAPHORA_EMBEDDER)")
        if code in _TOO_LONG:
            return _RefusedText(f"{self._endpoint.model} at {self._endpoint.shown}: {message}")
        return self._unreachable(f"it answered {code}: {message}")

    def _unreachable(self, reason: str) -> EndpointUnreachable:
        reason += " (ANAPHORA_EMBEDDER)"
        return EndpointUnreachable(self._endpoint.shown, self._endpoint.model, reason)
