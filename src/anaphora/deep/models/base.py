"""The interface to language models: messages in, a reply and its cost out.

`remote.py` calls the providers; `scripted.py` has a test double. Nothing here reads the
environment, and no key is ever part of a printed value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from anaphora.rank.budget import token_cost

# What a provider adds around a message: role, separators.
_AROUND_MESSAGE = 4


@dataclass(frozen=True, slots=True)
class Message:
    """One message to a model. Only the first of a list may be "system"."""

    role: Literal["system", "user", "assistant"]
    text: str


def start_talk(system: str, user: str) -> list[Message]:
    """The beginning of a talk: the system prompt, and the first request."""
    return [Message("system", system), Message("user", user)]


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


estimate_tokens = token_cost
"""Tokens of a text, as everywhere in this package: UTF-8 bytes / 4, rounded up."""


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Tokens of a prompt, estimated before it is sent."""
    return sum(estimate_tokens(message.text) + _AROUND_MESSAGE for message in messages)
