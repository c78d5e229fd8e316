"""Which languages a model reads: words weigh more in a text that its vectors say little of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from anaphora.language.languages.language import ENGLISH, language_of

_HEAD: Final = 400
"""Characters of a text that are looked at."""
_BEYOND_LATIN: Final = "\u0370"
"""The first letter of another alphabet: what comes before is Latin, with or without marks."""


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """`reads` are the codes of the languages that the model was trained for, none for all."""

    reads: tuple[str, ...] = ()

    def understands(self, text: str) -> bool:
        """Whether a text is in a language that it reads, as far as can be told."""
        if not self.reads:
            return True
        code = language_of(text)
        if code or text[:_HEAD].isascii():
            return not code or code in self.reads
        # A text in no known language: unless it has more other letters than Latin ones.
        latin = [letter < _BEYOND_LATIN for letter in text[:_HEAD] if letter.isalpha()]
        return 2 * sum(latin) >= len(latin)


_FAMILIES: Final = {
    family: ModelTraits(reads=(ENGLISH,)) for family in ("anaphora-l6:", "minilm-l6-v2:")
}


def traits_of(embedder: str) -> ModelTraits:
    """The traits of an embedder by its name; an unknown one is taken to read all languages."""
    matches = (traits for family, traits in _FAMILIES.items() if embedder.startswith(family))
    return next(matches, ModelTraits())


READER: Final = ModelTraits(reads=(ENGLISH,))
"""The traits of the reader: of a text in another language it takes every one for no answer."""
