"""What an embedder's cosines mean: one is not the other's; the ranking was made for ours.

Two embedders of the same worth place their cosines elsewhere: unrelated texts lie at 0.05 for one
and at 0.75 for another. Neutral questions and answers tell where an embedder has texts that have
nothing to do with each other; a straight line through these and through what is the very same
brings its cosines to where the bundled model has them, for a question and a text and for two texts.
A line changes no order among cosines: what changes is how much they count beside words, what is
close enough to be linked, and what is no evidence at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.neutral import PAIRS
from anaphora.errors import EmbeddingError

if TYPE_CHECKING:
    from anaphora.embed.base import Embedder

FloatT = TypeVar("FloatT", np.float32, np.float64)

_LEAST_SPREAD: Final = 1e-3
"""An embedder to which everything is the same is left as it is."""


@dataclass(frozen=True, slots=True)
class Line:
    """From an embedder's cosines to the bundled model's: `scale` · cosine + `shift`."""

    scale: float = 1.0
    shift: float = 0.0

    @property
    def identity(self) -> bool:
        """Whether nothing changes: so for the bundled one, to the last bit."""
        return self.scale == 1.0 and self.shift == 0.0

    def applied(self, cosines: NDArray[FloatT]) -> NDArray[FloatT]:
        """Cosines of any shape as the bundled model would have them, from -1 to 1.

        0 stays 0 and NaN NaN: both say that nothing is known of a text.
        """
        if self.identity:
            return cosines
        kind = cosines.dtype.type
        mapped = np.clip(cosines * kind(self.scale) + kind(self.shift), kind(-1.0), kind(1.0))
        return np.where(cosines == 0.0, cosines, mapped)

    def applied_to(self, cosine: float) -> float:
        """The same for one cosine."""
        return cosine if self.identity else min(1.0, self.scale * cosine + self.shift)

    def undone(self, cosine: float) -> float:
        """Which of the embedder's own cosines the bundled model would have as this one."""
        return cosine if self.identity else (cosine - self.shift) / self.scale


@dataclass(frozen=True, slots=True)
class Calibration:
    """The lines of one embedder: `asked` for a question and a text, `alike` for two texts."""

    asked: Line = Line()
    alike: Line = Line()


UNCHANGED: Final = Calibration()


@dataclass(frozen=True, slots=True)
class Places:
    """Where an embedder has neutral texts, as mean cosines: questions and the answers of others
    (`apart`), and two answers (`told`)."""

    apart: float
    told: float


MINILM: Final = Places(apart=0.1, told=0.146)
"""Where the bundled model has them, as `places` finds it."""


def measured(embedder: Embedder) -> Calibration:
    """The lines from this embedder's cosines to the bundled model's.

    Raises EmbeddingError when it cannot embed the neutral texts.
    """
    found = places(embedder)
    if min(1.0 - found.apart, 1.0 - found.told) < _LEAST_SPREAD:
        return UNCHANGED
    return Calibration(_to(found.apart, MINILM.apart), _to(found.told, MINILM.told))


def places(embedder: Embedder) -> Places:
    """Where an embedder has the neutral texts. Raises EmbeddingError when it cannot embed them."""
    answers = np.stack([rows[0] for rows in embedder.embed([answer for _, answer in PAIRS])])
    asked = np.stack([embedder.embed_query(question) for question, _ in PAIRS])
    if asked.shape != answers.shape or not np.isfinite([asked, answers]).all():
        raise EmbeddingError(f"{embedder.name} gave no vectors for plain sentences")
    asked, answers = asked.astype(np.float64), answers.astype(np.float64)
    return Places(_between(asked @ answers.T), _between(answers @ answers.T))


def _between(cosines: NDArray[np.float64]) -> float:
    """The mean of a square but for its diagonal."""
    return float((cosines.sum() - np.trace(cosines)) / (cosines.size - len(cosines)))


def _to(unrelated: float, minilm: float) -> Line:
    """The line that brings unrelated texts to where ours has them, and leaves the same at 1."""
    scale = (1.0 - minilm) / (1.0 - unrelated)
    return Line(round(scale, 6), round(1.0 - scale, 6))
