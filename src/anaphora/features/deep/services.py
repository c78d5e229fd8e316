"""The services of deep recall in one namespace."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from anaphora.container.feature import FeatureServices
from anaphora.container.services import service

if TYPE_CHECKING:
    from anaphora.container.home import Container
    from anaphora.features.deep.dreaming.extract import FactExtractor
    from anaphora.features.deep.dreaming.jobs import DreamCycle
    from anaphora.features.deep.persisted.answers import TraceStore
    from anaphora.features.deep.persisted.forgetting import DeepForgetting
    from anaphora.features.deep.persisted.gaps import GapStore
    from anaphora.features.deep.recall import DeepRecall
    from anaphora.features.deep.tools import DeepTools
    from anaphora.recall.identifiers import Identifier
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.values.conversations import Check
    from anaphora.values.memories import SurvivingSource


def tools_of(container: Container) -> DeepTools:
    """The models and the sandbox of a home. `InvalidInput` for a model that is none."""
    from anaphora.features.deep.tools import DeepTools

    return container.shared(DeepTools, lambda: DeepTools(container.settings, *container.models))


class DeepServices(FeatureServices):
    """Deep recall in one namespace: answers, traces, gaps, and facts from conversations."""

    name = "deep recall"

    @property
    def tools(self) -> DeepTools:
        """The models and the sandbox of the home."""
        return tools_of(self.services.container)

    @service
    def forgetting(self) -> DeepForgetting:
        """Takes what is forgotten out of what deep recall keeps."""
        from anaphora.features.deep.persisted.forgetting import DeepForgetting

        services = self.services
        return DeepForgetting(
            services.table_rows,
            services.memory.records,
            lambda: services.conversation.threads,
            services.memory.settle_index,
        )

    @service
    def gaps(self) -> GapStore:
        """Questions without an answer."""
        from anaphora.features.deep.persisted.gaps import GapStore

        services = self.services
        return GapStore(services.table_rows, clock=services.clock, ids=services.ids)

    @service
    def traces(self) -> TraceStore:
        """How answers were found."""
        from anaphora.features.deep.persisted.answers import TraceStore

        return TraceStore(self.services.table_rows, self.services.clock)

    @service
    def recall(self) -> DeepRecall:
        """The deep lane."""
        from anaphora.features.deep.evidence.scope import NamespaceEvidence
        from anaphora.features.deep.persisted.answers import AnswerCache
        from anaphora.features.deep.recall import DeepRecall

        services = self.services
        evidence = NamespaceEvidence(
            services.conversation.threads,
            services.conversation.turn_index,
            services.conversation.recall_turns,
            services.memory.records,
            services.memory.recall_memories,
            services.local_clock,
            services.evidence,
        )
        tools = self.tools
        return DeepRecall(
            lane=evidence,
            rows=services.table_rows,
            answers=AnswerCache(services.table_rows, evidence, services.clock),
            gaps=self.gaps,
            traces=self.traces,
            models=tools.models,
            engine=tools.engine,
            ids=services.ids,
            timer=time.monotonic,
            execution_seconds=services.container.settings.execution_seconds,
        )

    @service
    def extract(self) -> FactExtractor:
        """Takes facts out of conversations."""
        from anaphora.features.deep.dreaming.extract import FactExtractor

        services = self.services
        return FactExtractor(
            services.conversation.threads,
            services.memory.writer,
            services.table_rows,
            services.clock,
        )

    @service
    def dream_cycle(self) -> DreamCycle:
        """Queued extractions, then a dream."""
        from anaphora.features.deep.dreaming.dream import Dreamer
        from anaphora.features.deep.dreaming.jobs import DreamCycle
        from anaphora.ingest.linking import Linker, Relinker

        services = self.services
        linker = Linker(
            services.memory.records,
            services.memory.vectors,
            services.embedder,
            services.memory.index.neighbours,
            services.container.judge.judge_features,
        )
        dream = Dreamer(
            self.recall,
            self.gaps,
            services.memory.writer,
            Relinker(linker),
            services.memory.writer.fill_vectors,
        )
        return DreamCycle(self.recall, self.extract, dream, services.jobs)

    def list_derived(self, work: RecordTransaction, record_ids: Sequence[str]) -> Iterable[str]:
        """As in `FeatureServices`."""
        return self.forgetting.list_derived(work, record_ids)

    def forget_derived(self, work: RecordTransaction, gone: ForgottenRecords, soft: bool) -> None:
        """As in `FeatureServices`."""
        self.forgetting.forget_derived(work, gone, soft)

    def forget_conversation(self, conversation_id: str) -> None:
        """As in `FeatureServices`."""
        self.forgetting.forget_conversation(conversation_id)

    def find_survivors(self, identifiers: Sequence[Identifier]) -> Iterator[SurvivingSource]:
        """As in `FeatureServices`."""
        return self.forgetting.find_holding(identifiers)

    def counts(self) -> Mapping[str, int]:
        """As in `FeatureServices`, without opening a text."""
        rows = self.services.table_rows
        return {
            "gaps": len(rows.find("gap", {"status": "open"}, only=("gap_id",))),
            "jobs": len(rows.find("session_job", only=("job_id",))),
            "traces": len(rows.find("trace", only=("trace_id",))),
        }

    def checks(self) -> Iterable[Check]:
        """As in `FeatureServices`."""
        from anaphora.features.deep.checks import deep_checks
        from anaphora.values.conversations import Check

        counts = self.counts()
        detail = (
            f"{counts['gaps']:,} open gaps, {counts['jobs']:,} jobs of ended sessions waiting, "
            f"{counts['traces']:,} traces"
        )
        return (
            Check("deep recall", ok=True, detail=detail),
            *deep_checks(self.tools),
        )
