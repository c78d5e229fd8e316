"""The interface to language models: messages in, a reply and its cost out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Message:
    """One message to a model. Only the first of a list may be "system"."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered. `dollars` is None where its price is not known, never 0 then.

    `estimated` says that the server reported no usage, and that tokens are counted by
    `estimate_tokens` instead. `cut` says that it ended at the limit of output tokens.
    """

    text: str
    input_tokens: int
    output_tokens: int
    dollars: float | None
    estimated: bool = False
    cut: bool = False


@runtime_checkable
class ModelRole(Protocol):
    """A model in one of the two roles: writing code, or answering `llm_query`."""

    @property
    def name(self) -> str:
        """What it is called, provider included; it is part of the key of cached answers."""
        ...

    def ask(self, messages: Sequence[Message], *, max_output: int, timeout: float) -> Reply:
        """The answer to `messages`, of at most `max_output` tokens, within `timeout` seconds.

        Safe to call from several threads. Raises `ModelError` and `ModelTimeout`.
        """
        ...

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Dollars for so many tokens; None where the price is not known."""
        ...
