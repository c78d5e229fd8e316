"""Deep recall over a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from anaphora.calls.arguments import checked
from anaphora.container.view import ServerView

if TYPE_CHECKING:
    from anaphora.features.deep.values import Budget, DeepAnswer, DeepStep, Gap, GapStatus, Scope


class RemoteDeepCalls(ServerView):
    """Those calls of deep recall that are more than a request."""

    @checked
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
        """As `Memory.deep_recall`; a conversation that is not there raises `NotFound`."""
        arguments = {
            "question": question,
            "scope": scope,
            "conversation_id": conversation_id,
            "include_memory": include_memory,
            "budget": budget,
        }
        if on_step is None:
            return self._ask("deep_recall", arguments)  # type: ignore[no-any-return]
        from anaphora.features.deep.values import DeepStep

        return self._ask_in_steps("deep_recall", arguments, DeepStep, on_step)  # type: ignore[no-any-return]

    @checked
    def gaps(self, status: GapStatus | None = "open") -> tuple[Gap, ...]:
        """As `Memory.gaps`."""
        return self._ask("gaps", {"status": status or "all"})  # type: ignore[no-any-return]
