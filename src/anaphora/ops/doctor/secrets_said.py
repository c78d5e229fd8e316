"""How many turns and stored memories seem to hold a secret. None of it is shown."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from anaphora.ingest.secrets.masking import mask_handle, seems_to_hold_secrets
from anaphora.text.display import one_line
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.store.threads.conversations import Conversations

MOST: Final = 2_000_000
"""Characters of the newest conversations, and of the oldest memories, that are read: about half a
second of work."""
_STORED: Final = "stored secrets"
_NAMED: Final = 3
"""Turns whose redaction command is in the detail."""


def stored_check(services: NamespaceServices) -> Check:
    """Count the memories and notes with text that would be redacted in new ones today.

    They were stored by an older version. It is no failure, and nothing of them is shown.
    """
    from anaphora.container.redaction import count_kept_secrets, holding_secrets

    count, kept_count = len(holding_secrets(services, MOST)), count_kept_secrets(services)
    kept_note = f"; {kept_count:,} kept on purpose" if kept_count else ""
    if not count:
        detail = f"no memory or note seems to hold a secret{kept_note}"
        return Check(_STORED, ok=True, detail=detail)
    option = "" if services.namespace == "default" else f"--namespace {services.namespace} "
    seem = "1 memory or note seems" if count == 1 else f"{count:,} memories and notes seem"
    detail = f"{seem} to hold a secret; to take them out: anaphora {option}redact-memories"
    detail += kept_note
    return Check(_STORED, ok=True, detail=detail)


def secrets_check(conversations: Conversations, namespace: str = "default") -> Check:
    """Count the turns of the newest conversations that seem to hold a secret.

    It is no failure: turns are stored verbatim. The detail has the command for the first ones.
    """
    turns, size, suspects, complete = 0, 0, list[tuple[str, int]](), True
    for summary in sorted(conversations.list(), key=lambda listed: listed.updated, reverse=True):
        if size >= MOST:
            complete = False
            break
        thread = conversations.get(summary.conversation_id)
        if thread is None:
            continue
        turns += len(thread.turns)
        size += sum(len(turn.text) for turn in thread.turns)
        suspects += [
            (thread.conversation_id, index) for index in seems_to_hold_secrets(thread.turns)
        ]
    read_note = (
        f"{turns:,} turns were read" if complete else f"the newest {turns:,} turns were read"
    )
    if not suspects:
        return Check("secrets", ok=True, detail=f"no turn seems to hold a secret; {read_note}")
    option = "" if namespace == "default" else f"--namespace {shlex.quote(namespace)} "
    commands = "; ".join(
        f"anaphora {option}conversation redact {shlex.quote(one_line(mask_handle(name)))} {index}"
        for name, index in suspects[:_NAMED]
    )
    count = "1 turn seems" if len(suspects) == 1 else f"{len(suspects):,} turns seem"
    more_note = ", and so on" if len(suspects) > _NAMED else ""
    detail = f"{count} to hold a secret ({read_note}); to take it out: {commands}{more_note}"
    return Check("secrets", ok=True, detail=detail)
