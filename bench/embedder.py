"""An embedder whose vectors are kept, and whose time is measured.

In: texts. Out: the vectors of another embedder, under its name, so that nothing downstream can
tell. A text is embedded once; with a folder its vectors are there for the next run too. `spent`
says what embedding took, so that it can be taken off.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.base import Embedder
from anaphora.embed.service import spec_for
from bench.compare.vectors import SEAM, clock, joined

__all__ = ["KeptEmbedder"]

Floats = NDArray[np.float32]

_STORED, _ASKED = "stored", "asked"
# Texts embedded before they are written down: a run that is interrupted loses no more.
_STEP: Final = 512


class KeptEmbedder:
    """An `Embedder` that is asked once for each text; safe for several threads.

    `folder` keeps vectors for the next run, None in memory alone. With `ask_anew` each question is
    embedded again, as its time is to be measured. `spent` is what all calls took until now. The
    vector of a text with a seam, which is a generated one, is made of those of its halves.
    """

    def __init__(
        self,
        embedder: str | Embedder = "minilm",
        folder: Path | None = None,
        *,
        ask_anew: bool = False,
    ) -> None:
        self._spec = spec_for(embedder)
        self._ask_anew = ask_anew
        self._lock = threading.RLock()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        place = ":memory:" if folder is None else str(folder / "vectors.sqlite")
        self._rows = sqlite3.connect(place, check_same_thread=False)
        self._rows.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, data BLOB)")
        self._inner: Embedder | None = None
        self.spent = np.zeros(2)

    @property
    def name(self) -> str:
        """The identity of the embedder that does the work."""
        return self._spec.name

    @property
    def dimensions(self) -> int:
        """The length of its vectors."""
        return self._spec.dimensions

    def embed(self, texts: Sequence[str]) -> list[Floats]:
        """As the embedder inside: (parts, dimensions) of each text."""
        with self._lock:
            began = clock()
            halves = dict.fromkeys(half for text in texts for half in text.split(SEAM))
            missing = [half for half in halves if self._read(_STORED, half) is None]
            for start in range(0, len(missing), _STEP):
                step = missing[start : start + _STEP]
                for text, rows in zip(step, self._model().embed(step), strict=True):
                    self._write(_STORED, text, rows)
                self._rows.commit()
            vectors = [self._known(text) for text in texts]
            self.spent += clock() - began
            return vectors

    def embed_query(self, text: str) -> Floats:
        """As the embedder inside: (dimensions,)."""
        with self._lock:
            began = clock()
            rows = None if self._ask_anew else self._read(_ASKED, text)
            if rows is None:
                rows = self._model().embed_query(text)[None, :]
                if not self._ask_anew:
                    self._write(_ASKED, text, rows)
                    self._rows.commit()
            self.spent += clock() - began
            vector: Floats = rows[0]
            return vector

    def query_key(self, text: str) -> Hashable:
        """The text itself: the embedder inside knows more texts to be equal, but must be loaded."""
        return text

    def close(self) -> None:
        """Let go of the file."""
        self._rows.close()

    def _model(self) -> Embedder:
        if self._inner is None:
            self._inner = self._spec.load()
        return self._inner

    def _key(self, use: str, text: str) -> bytes:
        spelled = "\0".join((self.name, use, text)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(spelled, digest_size=20).digest()

    def _read(self, use: str, text: str) -> Floats | None:
        query = "SELECT data FROM vectors WHERE key = ?"
        row = self._rows.execute(query, (self._key(use, text),)).fetchone()
        if row is None:
            return None
        return np.frombuffer(row[0], np.float32).reshape(-1, self.dimensions)

    def _known(self, text: str) -> Floats:
        rows = [own for half in text.split(SEAM) if (own := self._read(_STORED, half)) is not None]
        return rows[0] if len(rows) == 1 else joined([own[0] for own in rows])[None]

    def _write(self, use: str, text: str, rows: Floats) -> None:
        data = np.ascontiguousarray(rows, np.float32).tobytes()
        query = "INSERT OR REPLACE INTO vectors VALUES (?, ?)"
        self._rows.execute(query, (self._key(use, text), data))
