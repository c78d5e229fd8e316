"""Secrets in a question: what deep recall writes down is without them.

In: a question. Out: `Secrets`, which take them out of it and of every text that may repeat them.
The question itself is asked as it is, of the models that the user configured. Nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from anaphora.ingest.secrets.redacting import redact, secrets_in

_LEAST: Final = 4
"""Characters: what is shorter stands in many words, and is taken out only where it is known."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Texts to take out, each with the mark that stands for it. True when there are any."""

    marks: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, question: str) -> Secrets:
        """The secrets in a question."""
        found = secrets_in(question)
        # The longest first: one may be a part of another.
        longest = sorted(found, key=len, reverse=True)
        return cls({one: f"[redacted:{found[one]}]" for one in longest})

    def __bool__(self) -> bool:
        return bool(self.marks)

    def out_of(self, text: str) -> str:
        """`text` without them; of a question that has none, as it is."""
        if not self.marks:
            return text
        text = redact(text).text
        for secret, mark in self.marks.items():
            if len(secret) >= _LEAST:
                text = text.replace(secret, mark)
        return text


NO_SECRETS: Final = Secrets()
