"""Maps the cosines of any embedder to those of the bundled model, which the ranking was made for.

The cosines of two equally good embedders can differ: unrelated texts have 0.05 with one and 0.75
with another. Neutral questions and answers give an embedder's cosine of unrelated texts; a straight
line through this cosine and that of identical texts maps its cosines to those of the bundled model,
separately for a question and a text, and for two texts. The line keeps the order of cosines. It
changes their weight beside words, and the thresholds for links and for evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.neutral import PAIRS
from anaphora.errors import EmbeddingError
from anaphora.values.fitted import fitted

if TYPE_CHECKING:
    from anaphora.embed.base import Embedder

FloatT = TypeVar("FloatT", np.float32, np.float64)

_LEAST_SPREAD: Final = 1e-3
"""An embedder with a smaller spread, for which all texts are alike, is not calibrated."""


@dataclass(frozen=True, slots=True)
class Line:
    """From an embedder's cosines to the bundled model's: `scale` · cosine + `shift`."""

    scale: float = 1.0
    shift: float = 0.0

    @property
    def identity(self) -> bool:
        """Whether it changes nothing, as for the bundled model."""
        return self.scale == 1.0 and self.shift == 0.0

    def apply(self, cosines: NDArray[FloatT]) -> NDArray[FloatT]:
        """Cosines of any shape as the bundled model would have them, from -1 to 1.

        0 and NaN stay as they are: both mean that nothing is known of a text.
        """
        if self.identity:
            return cosines
        kind = cosines.dtype.type
        mapped_cosines = np.clip(
            cosines * kind(self.scale) + kind(self.shift), kind(-1.0), kind(1.0)
        )
        return np.where(cosines == 0.0, cosines, mapped_cosines)

    def apply_to(self, cosine: float) -> float:
        """The same for one cosine."""
        return cosine if self.identity else min(1.0, self.scale * cosine + self.shift)

    def invert(self, cosine: float) -> float:
        """The embedder's own cosine for this cosine of the bundled model."""
        return cosine if self.identity else (cosine - self.shift) / self.scale


@dataclass(frozen=True, slots=True)
class Calibration:
    """The lines of one embedder: `asked` for a question and a text, `alike` for two texts."""

    asked: Line = Line()
    alike: Line = Line()


UNCHANGED: Final = Calibration()


@dataclass(frozen=True, slots=True)
class MeanCosines:
    """Mean cosines of neutral texts: questions and the answers to others (`apart`), and pairs of
    answers (`told`)."""

    apart: float
    told: float


MINILM: Final = MeanCosines(**fitted("calibration"))
"""Those of the bundled model, as `measure_mean_cosines` gives them."""


def measure_calibration(embedder: Embedder) -> Calibration:
    """The lines from this embedder's cosines to the bundled model's.

    Raises EmbeddingError if it cannot embed the neutral texts.
    """
    cosines = measure_mean_cosines(embedder)
    if min(1.0 - cosines.apart, 1.0 - cosines.told) < _LEAST_SPREAD:
        return UNCHANGED
    return Calibration(_to(cosines.apart, MINILM.apart), _to(cosines.told, MINILM.told))


def measure_mean_cosines(embedder: Embedder) -> MeanCosines:
    """Measure an embedder on the neutral texts. Raises EmbeddingError if it cannot embed them."""
    answers = np.stack([rows[0] for rows in embedder.embed([answer for _, answer in PAIRS])])
    questions = np.stack([embedder.embed_query(question) for question, _ in PAIRS])
    if questions.shape != answers.shape or not np.isfinite([questions, answers]).all():
        raise EmbeddingError(f"{embedder.name} gave no vectors for plain sentences")
    questions, answers = questions.astype(np.float64), answers.astype(np.float64)
    return MeanCosines(_between(questions @ answers.T), _between(answers @ answers.T))


def _between(cosines: NDArray[np.float64]) -> float:
    """The mean of a square matrix without its diagonal."""
    return float((cosines.sum() - np.trace(cosines)) / (cosines.size - len(cosines)))


def _to(unrelated: float, minilm: float) -> Line:
    """The line that maps the cosine of unrelated texts to that of MiniLM, and 1 to 1."""
    scale = (1.0 - minilm) / (1.0 - unrelated)
    return Line(round(scale, 6), round(1.0 - scale, 6))
