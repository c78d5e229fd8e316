"""The frozen values of the deep lane: a question, the steps to its answer, and their cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from anaphora.errors import InvalidInput
from anaphora.values.conversations import Degraded, Excerpt

__all__ = [
    "BUDGET_LIMITS",
    "Budget",
    "CostSnapshot",
    "DeepAnswer",
    "DeepSource",
    "DeepStep",
    "DreamReport",
    "Extracted",
    "Gap",
    "GapStatus",
    "Link",
    "Scope",
    "SubCall",
    "TokenCount",
    "TraceSummary",
]

Scope = Literal["recent_sessions", "current_session", "all_sessions"]
GapStatus = Literal["open", "closed", "expired"]
BUDGET_LIMITS = ("iterations", "sub_calls", "tokens", "seconds", "dollars")
_WHOLE = {"iterations": 1, "sub_calls": 0, "tokens": 0}


@dataclass(frozen=True, slots=True)
class Budget:
    """What one deep question may spend at most. Each is checked before what would break it.

    `iterations` are the programs that the model may write and run; after the last one it is asked
    once for an answer from what it has seen, unless it has submitted one. `seconds` is wall time of
    the whole, `execution_seconds` of one run of code, host calls included; None is the configured
    limit (`ANAPHORA_EXECUTION_SECONDS`, else 10). `dollars` None means no limit in money; where a
    model's price is unknown, only the other limits hold. Raises `InvalidInput` that names the field
    which cannot be a limit.
    """

    iterations: int = 5
    sub_calls: int = 20
    tokens: int = 200_000
    seconds: float = 120.0
    execution_seconds: float | None = None
    dollars: float | None = 0.5

    def __post_init__(self) -> None:
        for name, least_number in _WHOLE.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least_number:
                reason = f"expected a whole number, {least_number} or more"
                raise InvalidInput(f"budget.{name}", value, reason)
        for name in ("seconds", "execution_seconds", "dollars"):
            value = getattr(self, name)
            if name != "seconds" and value is None:
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0:
                raise InvalidInput(f"budget.{name}", value, "expected a number, 0 or more")


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens that one role (the model that writes code, or the one that reads) took and gave."""

    input: int = 0
    output: int = 0
    calls: int = 0
    dollars: float | None = 0.0

    def __add__(self, other: TokenCount) -> TokenCount:
        """Both together; `dollars` is None where those of one are."""
        return TokenCount(
            self.input + other.input,
            self.output + other.output,
            self.calls + other.calls,
            _dollars(self.dollars, other.dollars),
        )


@dataclass(frozen=True, slots=True)
class CostSnapshot:
    """What was spent so far. `estimated_dollars` is None where a price is unknown, never 0 then.

    `code` is the model that writes code, `sub` the one that answers `llm_query`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    estimated_dollars: float | None = 0.0
    iterations: int = 0
    sub_calls: int = 0
    seconds: float = 0.0
    code: TokenCount = field(default_factory=TokenCount)
    sub: TokenCount = field(default_factory=TokenCount)

    def __add__(self, other: CostSnapshot) -> CostSnapshot:
        """What both cost together; `estimated_dollars` is None where those of one are."""
        return CostSnapshot(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            _dollars(self.estimated_dollars, other.estimated_dollars),
            self.iterations + other.iterations,
            self.sub_calls + other.sub_calls,
            self.seconds + other.seconds,
            self.code + other.code,
            self.sub + other.sub,
        )


def _dollars(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, slots=True)
class DeepSource:
    """A turn, memory or section of a document that an answer stands on.

    `id` is "conversation#index" for a turn; `role` is who said it, of a document what it is called
    and where in it the section stands.

    `score`, of what a search found, is the chance, 0 to 1, that what was asked for stands there,
    or for a turn at most 5 turns beside it: one scale for both. `excerpt`: the text is the passage
    of a long turn that bears on the question; None: it is all of it.
    """

    kind: Literal["turn", "memory", "document"]
    id: str
    text: str = ""
    conversation_id: str | None = None
    index: int | None = None
    role: str | None = None
    ts: datetime | None = None
    score: float | None = None
    excerpt: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class SubCall:
    """One question to the model that reads. `cached` ones were asked before, and cost nothing."""

    prompt: str
    answer: str
    tokens: int = 0
    cached: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class DeepStep:
    """One iteration: what the model wrote, what came of it, what it cost.

    `kind` is "shortcut", "cache", "code", "submit", "extraction" or "limit".
    """

    number: int
    kind: str
    thought: str = ""
    code: str = ""
    output: str = ""
    error: str | None = None
    sub_calls: tuple[SubCall, ...] = ()
    seconds: float = 0.0
    cost: CostSnapshot = field(default_factory=CostSnapshot)


@dataclass(frozen=True, slots=True)
class DeepAnswer:
    """What deep recall found. `answer` is "" where nothing was found.

    `complete` is False when a limit ended it (`limit` says which one); `supported` is False when it
    cites what does not exist, or nothing. Without a model, or where it failed, `sources` are the
    best evidence, and `note` and `degraded` say why. `gap_id` is the blind spot that was
    registered.
    """

    question: str
    answer: str
    sources: tuple[DeepSource, ...] = ()
    complete: bool = True
    shortcut: bool = False
    cached: bool = False
    supported: bool = False
    steps: tuple[DeepStep, ...] = ()
    cost: CostSnapshot = field(default_factory=CostSnapshot)
    gap_id: str | None = None
    limit: str | None = None
    note: str = ""
    trace_id: str | None = None
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """A question that memory could not answer: a target for the next dream."""

    id: str
    question: str
    created_at: datetime
    expires_at: datetime
    kind: str = "knowledge_gap"
    priority: float = 0.85
    status: GapStatus = "open"
    asked: int = 1
    closed_at: datetime | None = None
    closed_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was taken out of a conversation: ids of memories, all with their turns as provenance.

    `skipped` says why nothing was done ("unchanged", "too_short", "no_model") or what ended it
    early: a limit's name, or "malformed" or "cut" for a reply of the model that could not be read.
    What was not read is read the next time.
    """

    conversation_id: str
    added: tuple[str, ...] = ()
    reinforced: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    skipped: str | None = None
    cost: CostSnapshot = field(default_factory=CostSnapshot)

    @property
    def unread(self) -> bool:
        """Whether the model's reply was none that could be read."""
        return self.skipped in {"malformed", "cut"}


@dataclass(frozen=True, slots=True)
class Link:
    """Two memories that a dream found to say the same, or to stand close."""

    first: str
    second: str
    kind: str
    strength: float


@dataclass(frozen=True, slots=True)
class DreamReport:
    """What one cycle did. It never deletes: gaps are closed or expire, memories are linked."""

    explored: tuple[Gap, ...] = ()
    closed: tuple[Gap, ...] = ()
    expired: tuple[Gap, ...] = ()
    stored: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    extracted: tuple[Extracted, ...] = ()
    with_model: bool = False
    seconds: float = 0.0
    cost: CostSnapshot = field(default_factory=CostSnapshot)
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A trace that was kept: `memory.trace(id)` gives it with all its steps."""

    id: str
    question: str
    made_at: datetime
