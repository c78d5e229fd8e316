"""What deep recall needs to answer over a real home: its evidence, a sandbox, scripted models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anaphora import Budget, Memory, ModelRole, Scope
from anaphora.features.deep.evidence.scope import NamespaceEvidence
from anaphora.features.deep.loop import DeepLoop, LoopResult, OnStep
from anaphora.features.deep.sandbox.base import Engine
from anaphora.features.deep.sandbox.monty import MontyEngine
from anaphora.features.deep.services import DeepServices
from anaphora.testing import ScriptedModel
from anaphora.testing.scripted import Scripted


def evidence_of(memory: Memory) -> NamespaceEvidence:
    """The evidence of the namespace of an open memory."""
    return memory._services().feature(DeepServices).recall.lane


@dataclass(frozen=True)
class LoopOver:
    """A loop, and the evidence that its questions look at."""

    loop: DeepLoop
    evidence: NamespaceEvidence

    def run(
        self,
        question: str,
        *,
        scope: Scope = "recent_sessions",
        conversation_id: str | None = None,
        include_memory: bool = True,
        budget: Budget | None = None,
        on_step: OnStep | None = None,
    ) -> LoopResult:
        """Answer a question within a scope."""
        scoped = self.evidence.within(scope, conversation_id, include_memory=include_memory)
        return self.loop.run(question, scoped, budget, on_step)


def loop_over(
    memory: Memory,
    code: Sequence[Scripted] | ModelRole,
    sub: Sequence[Scripted] | ModelRole | None = None,
    *,
    engine: Engine | None = None,
    **options: Any,
) -> LoopOver:
    """A loop over a home; models are scripts, or models."""
    reading = None if sub is None else _model(sub)
    loop = DeepLoop(_model(code), reading, engine or MontyEngine(), **options)
    return LoopOver(loop, evidence_of(memory))


def _model(given: Sequence[Scripted] | ModelRole) -> ModelRole:
    return ScriptedModel(given) if isinstance(given, list | tuple) else given  # type: ignore[return-value]
