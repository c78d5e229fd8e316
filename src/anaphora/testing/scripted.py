"""A model with scripted replies: for tests, for examples, and to try programs.

It records its requests, and calls nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from anaphora.errors import ModelError
from anaphora.rank.budget import message_cost, token_cost
from anaphora.values.models import Message, Reply

Scripted = str | Reply | Exception


class ScriptedModel:
    """Gives `replies` one after the other, or what the function `replies` makes of the messages.

    A text is a reply whose tokens are estimated; an exception is raised. `prices` are dollars for
    a million tokens in and out, None for a model whose price is not known. `asked` are the
    messages of every call so far. When the script is at its end, a call raises `ModelError`.
    """

    def __init__(
        self,
        replies: Iterable[Scripted] | Callable[[Sequence[Message]], Scripted],
        *,
        name: str = "scripted",
        prices: tuple[float, float] | None = (0.0, 0.0),
    ) -> None:
        self.name = name
        self.asked: list[tuple[Message, ...]] = []
        self.limits: list[tuple[int, float]] = []
        self._prices = prices
        self._lock = threading.Lock()
        if callable(replies):
            self._next = replies
        else:
            waiting = iter(tuple(replies))
            self._next = lambda _: next(waiting, ModelError(name, "its script is at its end"))

    def ask(self, messages: Sequence[Message], *, max_output: int, timeout: float) -> Reply:
        """The next reply of the script."""
        with self._lock:
            self.asked.append(tuple(messages))
            self.limits.append((max_output, timeout))
            reply = self._next(messages)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Reply):
            return reply
        tokens = sum(message_cost(message.text) for message in messages), token_cost(reply)
        return Reply(reply, *tokens, self.price(*tokens))

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Dollars for so many tokens, by `prices`."""
        if self._prices is None:
            return None
        return (input_tokens * self._prices[0] + output_tokens * self._prices[1]) / 1e6
