"""The interface of embedders: texts in, unit vectors out.

An embedder turns a text into one vector or, if the text is longer than its window, into several
(its parts). It never cuts a text silently, never stores anything and never uses a network.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float32]
"""Shape (dimensions,), length 1."""

Vectors: TypeAlias = npt.NDArray[np.float32]
"""Shape (parts, dimensions), at least one row, every row of length 1."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to call from several threads at once.

    One whose vectors do not depend on what else is in a run may have `embed_queries(texts)`, which
    gives what `embed_query` gives for each: then questions that wait at the same moment share one.
    """

    @property
    def name(self) -> str:
        """The identity that vectors remember: model, recipe version and hash.

        Two embedders with equal names give comparable vectors; with different names, never.
        """

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of stored texts, in the order of `texts`: shape (parts, dimensions) each.

        Raises EmbeddingError when a text cannot be embedded.
        """

    def embed_query(self, text: str) -> Vector:
        """The one vector of a question, shape (dimensions,): the mean of its parts, normalised."""

    def query_key(self, text: str) -> Hashable:
        """A key that is equal for texts that this embedder cannot tell apart."""


_FINAL_MARKS: Final = " \t\n.?!\u2026\u3002\uff1f\uff01\u061f"
"""Marks that end a sentence, in scripts that have them."""


def without_final_marks(text: str) -> str:
    """A text without its final marks; a text of marks only is returned unchanged."""
    return text.rstrip(_FINAL_MARKS) or text


def unit_rows(rows: npt.NDArray[np.float32]) -> Vectors:
    """Scale every row to length 1. Takes and gives shape (n, dimensions); a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled_rows: Vectors = (rows / np.where(lengths == 0.0, 1.0, lengths)).astype(
        np.float32, copy=False
    )
    return scaled_rows


def mean_vector(parts: Vectors) -> Vector:
    """One unit vector for a text of several parts: their mean, normalised.

    If opposite parts cancel out to zero, the first part is used.
    """
    rows = parts
    if len(parts) > 1:
        mean = parts.mean(axis=0, keepdims=True)
        rows = unit_rows(mean) if mean.any() else parts
    first_row: Vector = rows[0]
    return first_row
