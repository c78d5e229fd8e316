"""What the models share: the beginning of a talk, and estimates of its tokens.

`remote.py` calls the providers; `scripted.py` has a test double. Nothing here reads the
environment, and no key is ever part of a printed value.
"""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.rank.budget import message_cost, token_cost
from anaphora.values.models import Message


def start_talk(system: str, user: str) -> list[Message]:
    """The beginning of a talk: the system prompt, and the first request."""
    return [Message("system", system), Message("user", user)]


estimate_tokens = token_cost
"""Tokens of a text, as everywhere in this package: UTF-8 bytes / 4, rounded up."""


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Tokens of a prompt, estimated before it is sent."""
    return sum(message_cost(message.text) for message in messages)
