"""Importing into a namespace: conversations of other programs, and exports of other memories."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from anaphora.core.progress import Progress, labelled
from anaphora.ops.transfer.export import is_export
from anaphora.ops.transfer.load import import_export
from anaphora.values.conversations import ImportedConversation, ImportReport

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

Source = str | os.PathLike[str] | ImportedConversation


def import_sources(
    services: NamespaceServices,
    source: str | os.PathLike[str] | Iterable[Source],
    *,
    form: str | None,
    again: bool,
    embed: bool,
    progress: Progress | None,
) -> ImportReport:
    """Take everything in, then index and (with `embed`) embed it; see `Memory.import_`."""
    from anaphora.ingest.conversations import import_conversations

    given: Iterable[Source] = [source] if isinstance(source, (str, os.PathLike)) else source
    exports, others = _exports_among(given, form)
    reports = [_from_export(services, path, again, progress) for path in exports]
    if others or not exports:
        reports.append(
            import_conversations(
                others,
                services.conversations,
                services.sidecar,
                format=form,
                again=again,
                progress=progress,
            )
        )
    if embed:
        services.turns.sync(embed="all", progress=labelled(progress, "indexing"))
    if embed and exports:
        services.remember.fill_vectors()
        services.note_taking.fill_vectors()
    return ImportReport.joined(reports)


def _from_export(
    services: NamespaceServices,
    path: str | os.PathLike[str],
    again: bool,
    progress: Progress | None,
) -> ImportReport:
    done = import_export(
        services.container, path, namespace=services.namespace, again=again, progress=progress
    )
    for ids in done.notes.values():
        services.with_projects().note_taking.link_imported(ids)
    return ImportReport(
        conversations=done.threads,
        added=done.turns_added,
        known=done.turns_known,
        forgotten=done.forgotten,
        memories_added=done.memories_added + done.memories_changed,
        memories_known=done.memories_known,
        notes_added=done.notes_added + done.notes_changed,
        notes_known=done.notes_known,
        gaps_added=done.gaps_added,
        problems=done.problems,
    )


def _exports_among(
    sources: Iterable[Source], form: str | None
) -> tuple[list[str | os.PathLike[str]], list[Source]]:
    """What of the sources is an export of ours, and the rest; `form` is what the caller named."""
    own: list[str | os.PathLike[str]] = []
    others: list[Source] = []
    for source in sources:
        path = None if isinstance(source, ImportedConversation) else source
        if path is not None and (form == "anaphora" or (form is None and is_export(path))):
            own.append(path)
        else:
            others.append(source)
    return own, others
