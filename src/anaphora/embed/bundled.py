"""The bundled embedder: two networks with one space of vectors, chosen by the text.

English is read by a small network (`minilm.py`), every other text by a multilingual one of twice
the layers, which was trained to give a translation the vector of its English. So texts and
questions of any of their languages are compared by one cosine, and English costs what it costs
alone. `language/english.py` says which network reads a text, by the text alone.

The multilingual network is loaded when the first text asks for it (some 0.4 s), never before: a
home of English alone has one network in memory. Safe to share between threads.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from pathlib import Path

from anaphora.embed.base import Vector, Vectors, mean_vector
from anaphora.embed.minilm import (
    DIMENSIONS,
    MINILM,
    MULTILINGUAL,
    MiniLM,
    read_manifest,
    verify_file,
)
from anaphora.embed.wordpiece import common_words
from anaphora.errors import EmbeddingError
from anaphora.language.english import is_english


def bundled_name(english: Path = MINILM, multilingual: Path = MULTILINGUAL) -> str:
    """The embedder's name, of those of both networks: model, recipe version and hash.

    Raises EmbeddingError if a manifest cannot be read.
    """
    return f"{read_manifest(english).name}+{read_manifest(multilingual).name}"


def verify_networks() -> None:
    """Check all files of both networks, also of the one that no text has asked for yet.

    Raises as `verify_file`.
    """
    for manifest in map(read_manifest, (MINILM, MULTILINGUAL)):
        for file in manifest.files:
            verify_file(manifest, file)


class Bundled:
    """The bundled embedder with its English network loaded (about 0.2 s).

    `threads` is how many cores a list of texts may use, by default two at most. Raises
    ModelIntegrityError if a file is not the one that was shipped, EmbeddingError if a model cannot
    be read or loaded; of the multilingual network for each text that it should read.
    """

    def __init__(
        self,
        english: Path = MINILM,
        multilingual: Path = MULTILINGUAL,
        *,
        threads: int | None = None,
    ) -> None:
        self._name = bundled_name(english, multilingual)
        self._threads = threads
        self._english = MiniLM(english, threads=threads)
        self._folder = multilingual
        self._multilingual: MiniLM | EmbeddingError | None = None
        self._loading = threading.Lock()

    @property
    def name(self) -> str:
        """Model, recipe version and hash of both networks; stored with the vectors."""
        return self._name

    @property
    def dimensions(self) -> int:
        """384."""
        return DIMENSIONS

    @property
    def is_multilingual(self) -> bool:
        """Whether the multilingual network is loaded: some text asked for it."""
        return isinstance(self._multilingual, MiniLM)

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order: shape (parts, 384) each, unit rows."""
        in_others = [at for at, text in enumerate(texts) if not is_english(text, common_words())]
        if not in_others:
            return self._english.embed(texts)
        vectors = dict(
            zip(in_others, self._other().embed([texts[at] for at in in_others]), strict=True)
        )
        in_english = [at for at in range(len(texts)) if at not in vectors]
        english_texts = [texts[at] for at in in_english]
        vectors |= zip(in_english, self._english.embed(english_texts), strict=True)
        return [vectors[at] for at in range(len(texts))]

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (384,): the normalised mean of its parts."""
        return mean_vector(self.embed([text])[0])

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions that wait at the same moment, the same to the bit as alone."""
        return list(map(mean_vector, self.embed(texts)))

    def query_key(self, text: str) -> Hashable:
        """The network and the word pieces: spellings that it cannot tell apart have one key."""
        if is_english(text, common_words()):
            return self._english.query_key(text)
        return MULTILINGUAL.name, self._other().query_key(text)

    def _other(self) -> MiniLM:
        """The multilingual network. A failure is kept: its files are read and checked once."""
        with self._loading:
            if self._multilingual is None:
                try:
                    self._multilingual = MiniLM(self._folder, threads=self._threads)
                except EmbeddingError as error:
                    self._multilingual = error
            if isinstance(self._multilingual, EmbeddingError):
                raise self._multilingual.with_traceback(None)
            return self._multilingual
