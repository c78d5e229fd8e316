"""The checks of `doctor` for sync."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from anaphora.errors import AnaphoraError
from anaphora.features.sync.manager import Sync
from anaphora.text.shown_times import shown_day
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_LONG: Final = 7 * 86_400.0
"""Seconds without an exchange after which the check fails."""


def sync_checks(services: NamespaceServices) -> Iterator[Check]:
    """How this namespace is synced, if it is; no remote is asked. Nothing raises."""
    try:
        status = Sync(services).status()
    except AnaphoraError as error:
        yield Check("sync", ok=False, detail=str(error))
        return
    if not status.project:
        return
    last_synced = status.last_synced
    if status.stopped is not None:
        yield Check("sync", ok=False, detail=f"stopped: {status.stopped}")
    elif last_synced is None or (services.clock() - last_synced).total_seconds() > _LONG:
        when = (
            "no exchange yet"
            if last_synced is None
            else f"no exchange since {shown_day(last_synced)}"
        )
        yield Check("sync", ok=False, detail=f"{when}; {status.backlog}: `sync now`")
    else:
        detail = f"{len(status.devices)} devices, {status.backlog}, last {shown_day(last_synced)}"
        yield Check("sync", ok=True, detail=detail)
