"""The asynchronous face of `DeepQuestions`, for `aio.py`.

In: the arguments of its methods. Out: the same values, awaited. It holds no logic of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from anaphora.api.aio_workers import Workers, in_loop
from anaphora.api.memory import Memory
from anaphora.core.arguments import checks_arguments
from anaphora.values.deep import (
    Budget,
    DeepAnswer,
    DeepStep,
    DreamReport,
    Extracted,
    Gap,
    GapStatus,
    Scope,
    TraceSummary,
)


@checks_arguments
class AsyncDeepQuestions:
    """Deep recall, what it could not find, and what it takes out of finished sessions."""

    _memory: Memory
    _workers: Workers

    async def deep_recall(
        self,
        question: str,
        *,
        scope: Scope = "recent_sessions",
        conversation_id: str | None = None,
        include_memory: bool = True,
        budget: Budget | None = None,
        on_step: Callable[[DeepStep], None] | None = None,
    ) -> DeepAnswer:
        """As `Memory.deep_recall`."""
        return await self._workers.do(
            self._memory.deep_recall,
            question,
            scope=scope,
            conversation_id=conversation_id,
            include_memory=include_memory,
            budget=budget,
            on_step=in_loop(on_step),
        )

    async def gaps(self, status: GapStatus | None = "open") -> tuple[Gap, ...]:
        """As `Memory.gaps`."""
        return await self._workers.do(self._memory.gaps, status)

    async def extract(self, conversation_id: str, *, budget: Budget | None = None) -> Extracted:
        """As `Memory.extract`."""
        return await self._workers.do(self._memory.extract, conversation_id, budget=budget)

    async def dream(self, *, model: bool = True, budget: Budget | None = None) -> DreamReport:
        """As `Memory.dream`."""
        return await self._workers.do(self._memory.dream, model=model, budget=budget)

    async def end_session(self, conversation_id: str) -> int:
        """As `Memory.end_session`."""
        return await self._workers.do(self._memory.end_session, conversation_id)

    async def run_jobs(self) -> DreamReport:
        """As `Memory.run_jobs`."""
        return await self._workers.do(self._memory.run_jobs)

    async def traces(self, limit: int = 20) -> tuple[TraceSummary, ...]:
        """As `Memory.traces`."""
        return await self._workers.do(self._memory.traces, limit)

    async def trace(self, id: str) -> DeepAnswer:  # noqa: A002 - the field's own name
        """As `Memory.trace`."""
        return await self._workers.do(self._memory.trace, id)
