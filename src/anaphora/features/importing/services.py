"""Importing into one namespace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from anaphora.container.feature import FeatureServices

if TYPE_CHECKING:
    from pathlib import Path

    from anaphora.calls.progress import Progress
    from anaphora.features.importing.memories import ImportedMemoryWriter
    from anaphora.ingest.conversations import ConversationImport
    from anaphora.values.conversations import ImportReport, Source
    from anaphora.values.files import TakenFile


class ImportingServices(FeatureServices):
    """Reads files of other programs."""

    name = "importing"

    def import_files(
        self,
        sources: Iterable[Source],
        form: str | None,
        name: str,
        *,
        again: bool,
        progress: Progress | None,
    ) -> ImportReport:
        """As in `FeatureServices`."""
        from anaphora.features.importing.run import import_files
        from anaphora.ops.transfer.export import is_export
        from anaphora.ops.transfer.load import import_export

        writers = self.make_writers(again=again)

        def take_file(source: Path | bytes, name: str | None) -> TakenFile | ImportReport | None:
            if not isinstance(source, bytes) and is_export(source):
                home, into = self.services.container, self.services.namespace
                return import_export(home, source, namespace=into, again=again)
            offers = (
                feature.take_file(source, name, again=again) for feature in self.services.features
            )
            return next((outcome for outcome in offers if outcome is not None), None)

        return import_files(
            sources, *writers, take_file=take_file, format=form, name=name, progress=progress
        )

    def make_writers(self, *, again: bool) -> tuple[ConversationImport, ImportedMemoryWriter]:
        """What one import writes with; `again` brings back what was forgotten."""
        from anaphora.features.importing.memories import ImportedMemoryWriter
        from anaphora.ingest.conversations import ConversationImport

        services = self.services
        return (
            ConversationImport(
                services.conversation.threads,
                services.conversation.sidecar,
                sessions=services.conversation.sessions,
                again=again,
            ),
            ImportedMemoryWriter(
                services.memory.records, clock=services.clock, ids=services.ids, again=again
            ),
        )
