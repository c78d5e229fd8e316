"""The facade of deep recall: questions, gaps, dreams, and what ended sessions leave to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from anaphora.calls.operation import AuditRule, Http, ids_of, operation, with_stand_in
from anaphora.calls.parameters import Parameter, name_parameter
from anaphora.calls.tracing import span
from anaphora.container.view import NamespaceView
from anaphora.features.deep.services import DeepServices

if TYPE_CHECKING:
    from anaphora.features.deep.values import (
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

_LIMITS: Final = Parameter("The limits of the call.")


class DeepCalls(NamespaceView):
    """Deep recall, what it could not find, and what it takes out of finished sessions."""

    @property
    def _deep(self) -> DeepServices:
        return self._services().feature(DeepServices)

    @operation(
        "read",
        audit=AuditRule("recalled", "deep", lambda answer: ids_of(answer.sources)),
        question="question",
        http=Http("POST /v1/deep", long=True),
    )
    def deep_recall(
        self,
        question: str,
        *,
        scope: Scope = "recent_sessions",
        conversation_id: str | None = None,
        include_memory: bool = True,
        budget: Budget | None = None,
        on_step: Callable[[DeepStep], None] | None = None,
    ) -> DeepAnswer:
        """An answer to `question` with its sources, found by a model that writes its own search.

        `scope` is "recent_sessions" (the 10 newest conversations), "current_session" (that of
        `conversation_id`) or "all_sessions". Where the search is sure of the evidence, it comes
        back itself (`shortcut`) and no model is asked; an answer of the last hour comes back while
        its evidence is what it was (`cached`). `budget` bounds what is spent: at a limit the best
        partial answer comes back with `complete=False`. Without a model, `sources` are the best
        evidence and `note` says how to configure one; where a model fails or says nothing of use
        they are the same, `note` and `degraded` say why, and no gap is claimed. An answer that
        cites what does not exist is not `supported`. A question without a useful answer becomes a
        gap (`gap_id`). `on_step` is told every step as it ends. Raises `InvalidInput`, `NoModel`
        for a model without its key, `MissingExtra` without the sandbox, `StoreError` and its kinds.
        """
        with span("deep_recall", scope=scope):
            # Not asked again where an endpoint goes away meanwhile: a model was paid for it.
            services = self._services()
            if conversation_id is not None:
                conversation_id = services.conversation.threads.standing_id(conversation_id)
            answer = services.feature(DeepServices).recall.recall(
                question,
                scope=scope,
                conversation_id=conversation_id,
                include_memory=include_memory,
                budget=budget,
                on_step=on_step,
            )
        return with_stand_in(self, services, answer)

    @operation("read", http=Http("GET /v1/gaps"))
    def gaps(self, status: GapStatus | None = "open") -> tuple[Gap, ...]:
        """Questions that memory could not answer, the most asked first; None: of every status."""
        return self._deep.gaps.list(status)

    @operation(
        "write",
        http=Http(
            "POST /v1/extract", "Extract facts", long=True, threads="deep", body="ExtractWish"
        ),
        parameters={"budget": _LIMITS},
    )
    def extract(self, conversation_id: str, *, budget: Budget | None = None) -> Extracted:
        """Take at most 20 lasting facts out of a conversation, each bound to the turns that say it.

        Only what is new since the last time is read. `skipped` says why nothing was done (without a
        model, "no_model"), or what ended it early: a limit, or "malformed" or "cut" for a reply
        that could not be read. What was not read then is read the next time. Raises `NotFound`,
        `ModelError`, `StoreError` and its kinds.
        """
        services = self._services()
        models = services.feature(DeepServices).tools.models()
        with span("extract"):
            conversation_id = services.conversation.threads.standing_id(conversation_id)
            return services.feature(DeepServices).extract.extract(
                conversation_id, models.sub if models else None, budget
            )

    @operation(
        "write",
        http=Http("POST /v1/dream", "Run one dream", long=True, threads="deep", body="DreamWish"),
        parameters={
            "model": Parameter("Whether a model may be called; without one a cycle costs nothing."),
            "budget": _LIMITS,
        },
    )
    def dream(self, *, model: bool = True, budget: Budget | None = None) -> DreamReport:
        """One cycle: queued extractions, open gaps explored over what is known now, links.

        With a model, gaps are answered by the loop within `budget`, and what it finds is kept as a
        memory bound to its sources; without one, or with `model=False`, a gap is closed when the
        evidence is surely there. It never deletes. Raises `StoreError` and its kinds.
        """
        with span("dream"):
            return self._deep.dream_cycle.run(model=model, budget=budget)

    @operation(
        "write",
        http=Http(
            "POST /v1/conversations/{conversation_id}/end",
            "End a session",
            part="jobs",
            answer="Waiting",
        ),
    )
    def end_session(self, conversation_id: str) -> int:
        """Say that a session has ended: queue its extraction (with a model) and a dream.

        Returns how many jobs are waiting now; `run_jobs` runs them, in any process, at any time.
        """
        from anaphora.store.threads.ids import check_id

        services = self._services()
        with_model = services.feature(DeepServices).tools.models() is not None
        ended_id = services.conversation.threads.standing_id(check_id(conversation_id))
        services.jobs.queue_session_jobs(ended_id, extract=with_model)
        return len(services.jobs.list_pending())

    @operation("write", http=Http("POST /v1/jobs", "Run queued jobs", long=True, threads="deep"))
    def run_jobs(self) -> DreamReport:
        """Run what ended sessions have queued: extractions, then a dream that asks no model.

        An empty report when nothing waits. A job whose model fails stays, for three tries.
        """
        with span("run_jobs"):
            return self._deep.dream_cycle.run_jobs()

    @operation("read", http=Http("GET /v1/traces", "How answers were found"))
    def traces(self, limit: int = 20) -> tuple[TraceSummary, ...]:
        """How answers were found: the newest of what was kept, at most `limit`."""
        return self._deep.traces.list(limit)

    @operation(
        "read",
        http=Http("GET /v1/traces/{trace_id}", "One trace", renamed={"id": "trace_id"}),
        parameters={"id": name_parameter("The trace.")},
    )
    def trace(self, id: str) -> DeepAnswer:  # noqa: A002 - the field's own name
        """An answer with all its steps, to be shown again. Raises `NotFound`."""
        return self._deep.traces.get(id)
