"""Which languages an embedder reads: words weigh more in a text that its vectors say little of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from anaphora.core.languages.language import ENGLISH, language_of


@dataclass(frozen=True, slots=True)
class EmbedderTraits:
    """`reads` are the codes of the languages that the embedder was trained for, none for all."""

    reads: tuple[str, ...] = ()

    def understands(self, text: str) -> bool:
        """Whether a text is in a language that it reads, as far as can be told."""
        return not self.reads or language_of(text) in ("", *self.reads)


_FAMILIES: Final = {
    family: EmbedderTraits(reads=(ENGLISH,)) for family in ("anaphora-l6:", "minilm-l6-v2:")
}


def traits_of(embedder: str) -> EmbedderTraits:
    """The traits of an embedder by its name; an unknown one is taken to read all languages."""
    found = (one for family, one in _FAMILIES.items() if embedder.startswith(family))
    return next(found, EmbedderTraits())
