"""What the modules of the facade have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from anaphora.values.conversations import Degraded, ImportReport, Recall
from anaphora.values.deep import DeepAnswer
from anaphora.values.memories import Remembered
from anaphora.values.projects import RecallPackage, WarmUp

if TYPE_CHECKING:
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices
    from anaphora.values.audit import AuditAction

FoundT = TypeVar("FoundT")
NoticedT = TypeVar("NoticedT", bound=Recall[Any] | Remembered | ImportReport)
AnswerT = TypeVar("AnswerT", bound=Recall[Any] | RecallPackage | WarmUp | DeepAnswer)


class NamespaceView:
    """One namespace of an open home."""

    _container: Container
    namespace: str

    def _services(self) -> NamespaceServices:
        return self._container.namespace(self.namespace)

    def _told(self, lane: str, found: FoundT, question: str = "") -> FoundT:
        """What was recalled, once the audit trail has it, where one is kept."""
        self._tell_audit("recalled", lane, found, question)
        return found

    def _noticed(self, done: NoticedT, notices: tuple[str, ...]) -> NoticedT:
        """What was done or recalled, with what the user should know besides."""
        return replace(done, notices=(*done.notices, *notices)) if notices else done

    def _with_language(self, found: NoticedT, question: str) -> NoticedT:
        """The answer, saying once where the embedder reads little of what is kept or asked."""
        notices = self._container.languages.of_question(self._services(), question)
        return self._noticed(found, notices)

    def _tell_audit(
        self, action: AuditAction, lane: str, found: object = (), question: str = ""
    ) -> None:
        trail = self._services().audit
        if trail.is_on():
            from anaphora.container.auditing import tell_answer

            tell_answer(trail, action, lane, found, question)

    def _asked(self, ask: Callable[[NamespaceServices], AnswerT]) -> AnswerT:
        """The answer; of the local model, and saying so, where an endpoint is away or goes away."""
        services = self._services()
        found = ask(services)
        if self._container.stand_in is None:
            return found
        now = self._services()
        if now is not services:
            found = ask(now)
        return self._with_stand_in(now, found)

    def _with_stand_in(self, services: NamespaceServices, found: AnswerT) -> AnswerT:
        """The answer of these services, saying so where a local model stood in for an endpoint."""
        why = self._container.instead(services)
        if not why:
            return found
        return replace(found, degraded=(*found.degraded, Degraded("embeddings", why)))
