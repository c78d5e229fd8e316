"""Repairs that change no text: `doctor --repair`.

It rebuilds derived data, removes the leftovers of interrupted writes, reattaches notes of the
sidecar to their turns, and makes invalid rows readable. Each step is a `Check` that describes what
was done; `ok` is False if something stays wrong. No text of a thread or a memory is ever changed,
and a damaged database is only reported.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from anaphora.errors import AnaphoraError
from anaphora.ops.backup import staging
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.file_store import ConversationStore
from anaphora.store.threads.files import ThreadFolder
from anaphora.store.threads.gojson import NotAThread, decode
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.store.threads.sidecar import TurnNote


def repair(services: NamespaceServices) -> tuple[Check, ...]:
    """Repair a namespace, and the data that all namespaces share.

    Nothing raises: a part that cannot be repaired is a finding.
    """
    steps: dict[str, Callable[[NamespaceServices], Check]] = {
        "temporary files": _sweep_files,
        "notes": _reseat_notes,
        "truth": _merge_log,
        "rows": _mend_rows,
        "index": _mend_index,
        "vectors": _fill_vectors,
    }
    checks = []
    for name, step in steps.items():
        try:
            checks.append(step(services))
        except (AnaphoraError, OSError) as error:
            checks.append(Check(name, ok=False, detail=str(error)))
    for feature in services.features:
        try:
            checks += feature.repair()
        except (AnaphoraError, OSError) as error:
            checks.append(Check(feature.name, ok=False, detail=str(error)))
    return tuple(checks)


def _sweep_files(services: NamespaceServices) -> Check:
    """Remove the temporary files of writes that were interrupted."""
    home = services.container.home.root
    folder = ThreadFolder(services.folder, services.sealing.threads(services.namespace))
    count_before = len(folder.temporaries())
    if count_before:
        folder.sweep()
    count_after = len(folder.temporaries())
    # A killed restore leaves its stage beside the home.
    stages = staging.make_room(home) + staging.sweep(home)
    removed_count = count_before - count_after + stages
    in_use = f"; {count_after} belong to writes under way" if count_after else ""
    return Check("temporary files", ok=True, detail=f"{removed_count} removed{in_use}")


def _reseat_notes(services: NamespaceServices) -> Check:
    """Reattach notes to turns that have another index now.

    A note that matches no turn, or more than one, is left as it is: it is void, and harmless.
    """
    seated_count, void = 0, 0
    for conversation_id in sorted(services.conversation.sidecar.changed_since(0)):
        notes = {
            index: note
            for index, note in services.conversation.sidecar.turn_notes(conversation_id).items()
            if not note.forgotten
        }
        # Empty for a thread that cannot be read.
        indexes_by_hash: dict[str, list[int]] = {}
        if notes:
            with suppress(FileNotFoundError, NotAThread):
                thread = decode(services.conversation.threads.read_file(conversation_id)[0])
                for index, turn in enumerate(thread.turns):
                    key = stored_turn_hash(turn.role, turn.text)
                    indexes_by_hash.setdefault(key, []).append(index)
        displaced_notes = {
            index: note
            for index, note in notes.items()
            if index not in indexes_by_hash.get(note.turn_hash, ())
        }
        occupied_keys = notes.keys() - displaced_notes.keys()
        moved_notes: list[TurnNote] = []
        for note in displaced_notes.values():
            indexes = indexes_by_hash.get(note.turn_hash, [])
            if len(indexes) == 1 and indexes[0] not in occupied_keys:
                occupied_keys.add(indexes[0])
                moved_notes.append(replace(note, index=indexes[0]))
        services.conversation.sidecar.note_turns(moved_notes)
        seated_count += len(moved_notes)
        void += len(displaced_notes) - len(moved_notes)
    detail = f"{seated_count} notes reattached to their turns, {void} refer to missing turns"
    return Check("notes", ok=True, detail=detail)


def _merge_log(services: NamespaceServices) -> Check:
    """Merge the write-ahead log, and check the database for damage."""
    from anaphora.store.db.health import check_truth

    problems = check_truth(services.truth).problems
    if problems:
        detail = f"damaged, and not changed: {'; '.join(problems)}; restore a backup"
        return Check("truth", ok=False, detail=detail)
    if services.truth.scrub():
        return Check("truth", ok=True, detail="the write-ahead log was checkpointed")
    return Check("truth", ok=True, detail="intact; another process is using the write-ahead log")


def _mend_index(services: NamespaceServices) -> Check:
    """Rebuild the index if anything is wrong with it, and embed the turns without a vector."""
    index = services.conversation.turn_index
    index.sync(embed="none")
    rebuilt = bool(index.check().problems)
    if rebuilt:
        index.rebuild()
    sync_report = index.sync(embed="all")
    state = index.check()
    action = "made again" if rebuilt else "well"
    counts = f"{state.turns:,} turns, {sync_report.embedded:,} embedded, {state.pending:,} left"
    detail = f"{action}: {counts}"
    wrong = [*state.problems, *map(str, sync_report.degraded)]
    if wrong:
        detail += f" ({'; '.join(wrong)})"
    return Check("index", ok=not state.problems and not state.pending, detail=detail)


def _fill_vectors(services: NamespaceServices) -> Check:
    """Embed the memories without a vector."""
    vector_counts = services.memory.writer.fill_vectors()
    detail = f"{vector_counts.embedded:,} memories embedded"
    if vector_counts.failed:
        detail += f", {vector_counts.failed:,} cannot be"
    return Check("vectors", ok=not vector_counts.failed, detail=detail)


def _mend_rows(services: NamespaceServices) -> Check:
    """Repair invalid rows and impossible times; every text stays."""
    from anaphora.store.mending import mend_records, mend_times, misdated

    truth, sealer = services.truth, services.rows_sealer
    records = mend_records(truth, services.namespace, sealer)
    times = mend_times(truth, sealer, misdated(truth))
    turns = 0
    if not isinstance(services.conversation.threads, ConversationStore):
        turns = services.conversation.threads.mend_times()
    detail = f"{records:,} records, {times:,} rows with impossible times, {turns:,} turns repaired"
    return Check("rows", ok=True, detail=detail)
