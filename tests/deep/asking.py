"""A home whose models are scripts: opened again and again, at a time that the test sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anaphora import Memory, Message
from anaphora.testing import ScriptedModel

TEA = "What does Ada drink in total?"
PAIRS = [
    ("Why did we drop C++?", "Why did we drop C#?"),
    ("How often \N{DOG FACE}?", "How often \N{CAT FACE}?"),
    ("How often -5 degrees?", "How often +5 degrees?"),
    ("How often $5?", "How often 5%?"),
    ("How many A/B tests?", "How many A-B tests?"),
    ("How often sch\u00f6n?", "How often schon?"),
    ("When did ~/.config change?", "When did config change?"),
]
"""Questions that differ in one sign, or in what looks like one."""


def submits(answer: str, *sources: str) -> str:
    """A reply whose program submits this."""
    return f"```python\nsubmit({answer!r}, {list(sources)!r})\n```"


def finds(query: str) -> str:
    """A reply whose program answers with the best hit for a query, or says that there is none."""
    return (
        f"```python\nhits = [h for h in search({query!r}, limit=5) if 'lapsang' in h['text']]\n"
        "if hits:\n    submit(hits[0]['text'], [hits[0]['id']])\n"
        "else:\n    submit('NOT_FOUND', [])\n```"
    )


class Script:
    """A model that says one thing, which a test may change; `asked` counts its calls."""

    def __init__(self, said: str = "", name: str = "scripted") -> None:
        self.said = said
        self.model = ScriptedModel(self._reply, name=name)

    def _reply(self, messages: Sequence[Message]) -> str:
        if "three other ways to search" in messages[0].text:
            return "lapsang\nbeverage\ntea of the evening"
        return self.said

    @property
    def calls(self) -> int:
        """How often it was asked to write or to read."""
        return sum("three other ways to search" not in one[0].text for one in self.model.asked)


Opening = Callable[..., Memory]


def opening(home: Path, clock: Any, **more: Any) -> Opening:
    """A function that opens the home with a script as its model, or with none."""

    def open_one(script: Script | None = None, **options: Any) -> Memory:
        return Memory.open(
            home,
            embedder="hashing",
            model=script.model if script else None,
            clock=clock,
            **{**more, **options},
        )

    return open_one


def tell(memory: Memory, conversation_id: str = "tea") -> None:
    """A short conversation about tea."""
    store = memory.conversations
    store.append_user(conversation_id, "Ada drinks lapsang tea in the evening, always has.")
    store.append_assistant(conversation_id, "Noted: lapsang in the evening.")
    store.append_user(conversation_id, "Bob is allergic to walnuts and lives in Ghent now.")
    store.append_assistant(conversation_id, "I will keep walnuts away from Bob in Ghent.")
