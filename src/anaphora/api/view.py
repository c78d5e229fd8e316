"""The base class of the facade's modules."""

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


def cut_logs(view: NamespaceView) -> None:
    """Cut the write-ahead logs of a view's home, for a process that has nothing else to do."""
    view._container.cut_logs()


class NamespaceView:
    """One namespace of an open home."""

    _container: Container
    namespace: str

    def _services(self) -> NamespaceServices:
        return self._container.namespace(self.namespace)

    def _told(self, lane: str, found: FoundT, question: str = "") -> FoundT:
        """Record what was recalled in the audit trail, if there is one, and return it."""
        self._tell_audit("recalled", lane, found, question)
        return found

    def _noticed(self, done: NoticedT, notices: tuple[str, ...]) -> NoticedT:
        """Add notices for the user to a result."""
        return replace(done, notices=(*done.notices, *notices)) if notices else done

    def _with_language(self, found: NoticedT, question: str) -> NoticedT:
        """Add a notice, once, if the embedder hardly understands the languages in use."""
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
        """The answer; if the endpoint is unavailable, from the local model, with a note."""
        services = self._services()
        answer = ask(services)
        if self._container.stand_in is None:
            return answer
        current_services = self._services()
        if current_services is not services:
            answer = ask(current_services)
        return self._with_stand_in(current_services, answer)

    def _with_stand_in(self, services: NamespaceServices, found: AnswerT) -> AnswerT:
        """Add a note if a local model replaced the endpoint."""
        why = self._container.instead(services)
        if not why:
            return found
        return replace(found, degraded=(*found.degraded, Degraded("embeddings", why)))
