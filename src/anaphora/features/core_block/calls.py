"""The facade of the core block."""

from __future__ import annotations

from anaphora.calls.operation import AuditRule, Http, ids_of, operation
from anaphora.calls.parameters import Parameter, token_parameter
from anaphora.calls.tracing import span
from anaphora.container.view import NamespaceView
from anaphora.features.core_block.services import CoreBlockServices
from anaphora.values.context import LEAST_BUDGET
from anaphora.values.memories import CoreBlock


class CoreBlockCalls(NamespaceView):
    """The core block of one namespace of a home."""

    @property
    def _core(self) -> CoreBlockServices:
        return self._services().feature(CoreBlockServices)

    @operation(
        "read",
        audit=AuditRule("recalled", "core", lambda block: ids_of(block.entries, block.left_out)),
        http=Http("GET /v1/core", "The core block"),
        parameters={
            "budget": token_parameter(
                "At most this many tokens of text. Without it, `ANAPHORA_CORE_TOKENS`, else 400.",
                LEAST_BUDGET,
            )
        },
    )
    def core_block(self, *, budget: int | None = None) -> CoreBlock:
        """What every session is told: pinned memories in their order, then rules and preferences.

        What was replaced gives way to what holds now. At most `budget` tokens (120 or more; None:
        `ANAPHORA_CORE_TOKENS`, else 400) as text; what did not fit is `left_out`. Raises
        `InvalidInput`.
        """
        with span("core_block"):
            return self._core.recall.block(budget)

    @operation(
        "write",
        http=Http(
            "POST /v1/core/pin",
            "Pin a memory",
            part="id",
            repeatable=True,
            body="Pinning",
            answer="Pinned",
        ),
        parameters={
            "position": Parameter(
                "Its position among the pinned memories, from 1; by default last.", 1, 1_000
            )
        },
    )
    def pin(self, id: str, position: int | None = None) -> str:  # noqa: A002 - the field's own name
        """Pin a memory in the core block, at `position` among the pinned (from 1) or at their end.

        One that is pinned already moves there, or stays. The pin goes on to whatever takes the
        memory's place. Returns the id of what is pinned: the present version, where `id` is that of
        an older one. Raises `NotFound`, `InvalidInput`, `StoreError`.
        """
        with span("pin"):
            return self._core.writing.pin(id, position)

    @operation(
        "write",
        http=Http(
            "POST /v1/core/unpin",
            "Take a memory out of the core block",
            part="id",
            repeatable=True,
            body="Unpinning",
            answer="Pinned",
        ),
    )
    def unpin(self, id: str) -> str:  # noqa: A002 - the field's own name
        """Take a memory out of the core block: a pinned one, or a rule that came by itself.

        It stays out until it is pinned. Returns and raises as `pin`.
        """
        with span("unpin"):
            return self._core.writing.unpin(id)
