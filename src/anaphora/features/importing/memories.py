"""Imported memories into a namespace: each once, new values over old ones, nothing twice.

They are checked, freed of secrets and kept by the rules of all memories (`store.records.rules`);
what an import may do beside that is in `store.records.importing`. Vectors come later, all at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from anaphora.errors import InvalidInput
from anaphora.features.importing.values import ImportedMemory, ImportedWhole
from anaphora.ingest.checking import checked, without_secrets
from anaphora.ingest.secrets.redacting import redact

if TYPE_CHECKING:
    from anaphora.store.records.importing import ImportDraft
    from anaphora.store.records.store import Records

_BATCH: Final = 256
PART: Final = "#"
"""What stands between the key of something and that of a part of it."""
Refuse = Callable[[ImportedMemory, str], None]
"""Called with a memory that cannot be kept, and why."""


class ImportedMemoryWriter:
    """Keeps what one import brings, in transactions of a few hundred.

    `clock` gives the present, aware; `ids` new record ids that rise. `counts` has what was done so
    far: added, changed, known, forgotten, ended.
    """

    def __init__(
        self,
        records: Records,
        *,
        clock: Callable[[], datetime],
        ids: Callable[[], str],
        again: bool = False,
    ) -> None:
        self._records = records
        self._clock = clock
        self._ids = ids
        self._again = again
        self._waiting: list[ImportDraft] = []
        # What was imported before, of each format that has parts: by what they are a part of.
        self._before: dict[str, dict[str, dict[str, str]]] = {}
        self.counts: Counter[str] = Counter()
        self.gone: dict[str, None] = {}
        self.redacted: dict[str, None] = {}

    def add(self, item: ImportedMemory, refuse: Refuse) -> None:
        """Keep a memory, now or with the next ones."""
        try:
            from anaphora.store.records.importing import ImportDraft
            from anaphora.store.records.rows import IMPORTED
            from anaphora.store.records.rules import draft_memory

            new = replace(
                item.memory,
                # What came from where can be listed, or forgotten, by this one.
                tags=(*item.memory.tags, item.source),
                source=_make_source(item.source, item.key),
            )
            new, redacted_kinds = without_secrets(checked(new))
            self.redacted.update(dict.fromkeys(redacted_kinds))
            draft = draft_memory(new, self._clock(), self._ids())
            self._waiting.append(
                ImportDraft(replace(draft, details={IMPORTED: True}), item.changed)
            )
        except InvalidInput as error:
            refuse(item, str(error))
            return
        if len(self._waiting) >= _BATCH:
            self.flush()

    def end(self, whole: ImportedWhole) -> None:
        """End memories that are no longer in a completely read source, or report removed files."""
        ids_by_owner = self._before.get(whole.source)
        if ids_by_owner is None:
            # The stored memories of a format: source to record id, by the note they are a part of.
            ids_by_owner = self._before[whole.source] = {}
            beginning, last_seq = f"{whole.source}:", 0
            while records := self._records.changed_since(last_seq):
                last_seq = records[-1].seq
                for record in records:
                    if record.valid_to or record.forgotten or record.expires_at:
                        continue
                    for source in record.sources:
                        if source.startswith(beginning):
                            owner = source[len(beginning) :].partition(PART)[0]
                            ids_by_owner.setdefault(owner, {})[source] = record.id
        if whole.key.endswith("/"):
            current_names = {redact(key).text for key in whole.keys}
            files = [name for name in ids_by_owner if name.startswith(redact(whole.key).text)]
            self.gone.update(dict.fromkeys(sorted(n for n in files if n not in current_names)))
            return
        current_sources = {_make_source(whole.source, key) for key in whole.keys}
        ended_pairs = [
            (record_id, source)
            for source, record_id in ids_by_owner.get(redact(whole.key).text, {}).items()
            if source not in current_sources
        ]
        if not ended_pairs:
            return
        from anaphora.store.records.importing import end_imported

        self.flush()
        with self._records.change() as work:
            work.load(ids=[record_id for record_id, _ in ended_pairs])
            end_flags = [
                end_imported(work, *pair, whole.at or self._clock()) for pair in ended_pairs
            ]
        self.counts["ended"] += sum(end_flags)

    def flush(self) -> None:
        """Write the pending drafts."""
        from anaphora.store.records.importing import put_imported

        drafts, self._waiting = self._waiting, []
        if not drafts:
            return
        with self._records.change() as work:
            counts = put_imported(
                work, drafts, now=self._clock(), again=self._again, new_id=self._ids
            )
        self.counts.update(counts)


def _make_source(form: str, key: str) -> str:
    """The stored identity of an imported memory, without secrets."""
    return redact(f"{form}:{key}").text
