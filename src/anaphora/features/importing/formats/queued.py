"""Prompts that Claude Code put into its queue while it worked, and what became of each.

A prompt is put in (`enqueue`), and leaves as the next prompt (`dequeue`), into the work under way
(`remove`, with a reason that says so) or back into the input line (`popAll`; `remove` otherwise).
What went to the model stands in a record of its own as well, nearly always: the queue speaks for
those that do not. Operations name prompts by their words, or not at all: then the oldest goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from anaphora.store.hashing import digest

_MOST: Final = 100
"""Prompts that are followed at once: no session has as many ahead of it."""
_WENT_IN: Final = re.compile(r"absorbed|delivered|consumed|sent|submitted|processed")
# Commands without words, and blocks that programs enqueue.
_NOT_TYPED: Final = re.compile(
    r"\s*(?:/\S+\s*\Z|<(?P<tag>[a-z]\w*[-_][\w-]*)[\s>].*</(?P=tag)>\s*\Z)", re.DOTALL
)


@dataclass(slots=True)
class QueuedPrompt:
    """A prompt of the queue, verbatim. `held`: a record holds its words, or a program wrote it."""

    text: str
    lines: str
    key: str
    ts: datetime | None
    held: bool
    state: Literal["waiting", "sent", "taken back"] = "waiting"
    counted: bool = False


@dataclass(slots=True)
class PromptQueue:
    """The queue of one session while its transcript is read."""

    _prompts: list[QueuedPrompt] = field(default_factory=list)

    def move(self, record: Mapping[str, object], words: str, ts: datetime | None) -> str | None:
        """Take an operation with these words; the key of a prompt that went in with no record yet.

        The place of the operation is that of the prompt, should none come.
        """
        match record.get("operation"):
            case "enqueue":
                at = str(record.get("timestamp"))
                is_typed = bool(words.strip()) and not _NOT_TYPED.match(words)
                key = f"queued:{digest(at, words)}"
                self._prompts.append(
                    QueuedPrompt(words, _strip_lines(words), key, ts, held=not is_typed)
                )
            case "dequeue":
                return self._release(words, "sent")
            case "remove":
                went_in = _WENT_IN.match(str(record.get("reason")))
                return self._release(words, "sent" if went_in else "taken back")
            case "popAll":
                if self._find_waiting(words) is not None and words:
                    self._release(words, "taken back")
                else:
                    for prompt in self._prompts:
                        prompt.state = "taken back" if prompt.state == "waiting" else prompt.state
        return None

    def claim(self, text: str) -> None:
        """Note that a record holds this text: each prompt in it needs no other."""
        if not self._prompts:
            return
        unclaimed_text = f"\n{_strip_lines(text)}\n"
        for prompt in sorted(self._prompts, key=lambda prompt: prompt.state == "taken back"):
            mark = f"\n{prompt.lines}\n"
            if not prompt.held and mark in unclaimed_text:
                prompt.held = True
                unclaimed_text = unclaimed_text.replace(mark, "\n", 1)
        self._drop_done()

    @property
    def is_long(self) -> bool:
        """Whether it is time to say what went in: no record of the oldest will come any more."""
        return len(self._prompts) >= _MOST

    def sent_alone(self) -> Iterator[QueuedPrompt]:
        """The prompts that went in and that no record holds; each once."""
        for prompt in self._prompts:
            if prompt.state == "sent" and not prompt.held:
                prompt.held = True
                yield prompt

    def count_not_sent(self) -> int:
        """How many prompts were taken back, or wait; each is counted once."""
        unsent = [prompt for prompt in self._prompts if prompt.state != "sent" and not prompt.held]
        count = sum(not prompt.counted for prompt in unsent)
        for prompt in unsent:
            prompt.counted = True
        self._drop_done()
        # Of so many that wait the oldest are forgotten: they are counted.
        del self._prompts[: -_MOST // 2]
        return count

    def _drop_done(self) -> None:
        self._prompts = [
            prompt for prompt in self._prompts if not prompt.held or prompt.state == "waiting"
        ]

    def _find_waiting(self, words: str) -> QueuedPrompt | None:
        lines = _strip_lines(words)
        waiting = (prompt for prompt in self._prompts if prompt.state == "waiting")
        return next((prompt for prompt in waiting if not lines or prompt.lines == lines), None)

    def _release(self, words: str, state: Literal["sent", "taken back"]) -> str | None:
        prompt = self._find_waiting(words)
        if prompt is None:
            return None
        prompt.state = state
        return prompt.key if state == "sent" and not prompt.held else None


def _strip_lines(text: str) -> str:
    """A text without the space around its lines: operations and records differ in it."""
    return "\n".join(line.strip() for line in text.strip().splitlines())
