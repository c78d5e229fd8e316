"""Packs memories into a budget of tokens, and renders them as text for an agent.

A token is four bytes of UTF-8. What was recalled stands behind "|- " and "| ", so that no line of
it can pass for one of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from anaphora.errors import InvalidInput
from anaphora.rank.budget import token_cost
from anaphora.text.display import headed, one_line, quoted
from anaphora.text.shown_times import shown_day
from anaphora.values.context import LEAST_BUDGET, ContextMemory
from anaphora.values.conversations import Degraded

LINE_CHARACTERS: Final = 150
"""Characters of a line that says what a package holds, or lacks."""
_SIGNALS_SHOWN: Final = 2

ItemT = TypeVar("ItemT")


def check_budget(budget: int) -> None:
    """Raise `InvalidInput` for a budget that is too small for an answer."""
    if budget < LEAST_BUDGET:
        raise InvalidInput("budget", budget, f"expected a whole number of at least {LEAST_BUDGET}")


class TokenBudget:
    """What is left of a budget. A heading is paid for with the first thing under it."""

    def __init__(self, budget: int) -> None:
        self.tokens = budget
        self._paid: set[str] = set()

    def pay(self, text: str, heading: str = "", keep: int = 0) -> bool:
        """Take the cost of `text` (a line or several) if at least `keep` tokens stay."""
        cost = token_cost(text + "\n")
        if heading and heading not in self._paid:
            cost += token_cost("\n" + heading + "\n")
        if cost > self.tokens - keep:
            return False
        self.tokens -= cost
        if heading:
            self._paid.add(heading)
        return True

    def take(
        self,
        items: Iterable[ItemT],
        text: Callable[[ItemT], str],
        heading: str,
        most: int,
        keep: int = 0,
        complete: Callable[[list[ItemT]], list[ItemT]] | None = None,
    ) -> list[ItemT]:
        """The items that fit, at most `most`, in their order; too large ones are skipped.

        `complete` adds to those that fit; then they are taken with that.
        """
        begun = self.tokens, set(self._paid)
        fitting: list[ItemT] = []
        for candidate in items:
            if len(fitting) == most:
                break
            if self.pay(text(candidate), heading, keep):
                fitting.append(candidate)
        if complete is None or (completed := complete(fitting)) == fitting:
            return fitting
        self.tokens, self._paid = begun
        return self.take(completed, text, heading, most, keep)


def with_tokens(memories: Iterable[ContextMemory]) -> tuple[ContextMemory, ...]:
    """The memories, each with what it costs."""
    return tuple(replace(memory, tokens=token_cost(rendered_memory(memory))) for memory in memories)


def rendered_part(heading: str, items: Iterable[str]) -> list[str]:
    """The lines of a part: its heading and its items; none where there are none."""
    part_items = list(items)
    return ["", heading, *part_items] if part_items else []


def rendered_memory(memory: ContextMemory) -> str:
    """A memory's head, and its words."""
    if memory.path and memory.importance is None:
        head = format_location(memory.path, memory.start_line, memory.end_line)
        title = one_line(memory.title)
        head += f" {title}" if title and title != memory.path else ""
    else:
        facts = [memory.kind.replace("_", " ")]
        if memory.importance is not None:
            facts.append(f"importance {memory.importance}")
        if memory.created_at is not None:
            facts.append(shown_day(memory.created_at))
        title = one_line(memory.title)
        head = ", ".join(facts) + (f": {title}" if title and title not in memory.text else "")
    return f"{headed(head + format_signals(memory.signals))}\n{quoted(memory.text)}"


def rendered_degraded(part: Degraded) -> str:
    """One line that says what was unavailable."""
    return headed(f"Unavailable: {part}", LINE_CHARACTERS)


def rendered_left_out(count: int, whole: str) -> str:
    """One line that says how many parts of a whole did not fit."""
    return headed(f"{count} more of {whole} did not fit")


def format_signals(signals: Mapping[str, float]) -> str:
    """The signals of a score in brackets; "" where there are none."""
    if not signals:
        return ""
    parts = (f"{name} {strength:.{_SIGNALS_SHOWN}f}" for name, strength in signals.items())
    return f" ({', '.join(parts)})"


def format_location(path: str, start: int | None, end: int | None) -> str:
    """A path with its lines, if they are known."""
    if start is None:
        return one_line(path)
    return f"{one_line(path)}:{start}" + (f"-{end}" if end not in (None, start) else "")
