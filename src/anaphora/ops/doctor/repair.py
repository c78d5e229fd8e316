"""What can be mended without touching a word: `doctor --repair`.

It makes derived things again, removes what interrupted writes left, gives notes of the sidecar back
to the turns that they were written for, and makes rows readable that make no sense. Each step is a
`Check` that says what was done; `ok` is False where something stays wrong. No word of a thread or a
memory is ever changed, and a database that is damaged is only reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    """Mend what can be mended in a namespace, and in what all namespaces share.

    Nothing raises: a part that cannot be mended is a finding.
    """
    steps: dict[str, Callable[[NamespaceServices], Check]] = {
        "temporary files": _sweep,
        "notes": _reseat_notes,
        "truth": _merge_log,
        "rows": _mend_rows,
        "index": _mend_turns,
        "vectors": _fill_vectors,
        "section index": _mend_sections,
    }
    return tuple(_tried(name, step, services) for name, step in steps.items())


def _tried(
    name: str, step: Callable[[NamespaceServices], Check], services: NamespaceServices
) -> Check:
    try:
        return step(services)
    except (AnaphoraError, OSError) as error:
        return Check(name, ok=False, detail=str(error))


def _sweep(services: NamespaceServices) -> Check:
    """Remove the temporary files of writes that were interrupted."""
    home = services.container.home.root
    folder = ThreadFolder(services.folder, services.sealing.threads(services.namespace))
    before = len(folder.temporaries())
    if before:
        folder.sweep()
    after = len(folder.temporaries())
    # Beside the home lies what a restore left that was killed.
    stages = staging.make_room(home) + staging.sweep(home)
    removed = before - after + stages
    kept = f"; {after} belong to writes under way" if after else ""
    return Check("temporary files", ok=True, detail=f"{removed} removed{kept}")


def _reseat_notes(services: NamespaceServices) -> Check:
    """Give a note whose turn stands at another place now to that turn.

    A note that no turn, or more than one, answers to is left as it is: it is void, and harmless.
    """
    seated, void = 0, 0
    for conversation_id in sorted(services.sidecar.changed_since(0)):
        notes = {
            at: note
            for at, note in services.sidecar.turn_notes(conversation_id).items()
            if not note.forgotten
        }
        places = _places(services, conversation_id) if notes else {}
        moved = list(_moved(notes, places))
        lost = sum(at not in places.get(note.turn_hash, ()) for at, note in notes.items())
        services.sidecar.note_turns(moved)
        seated += len(moved)
        void += lost - len(moved)
    detail = f"{seated} notes reattached to their turns, {void} refer to missing turns"
    return Check("notes", ok=True, detail=detail)


def _places(services: NamespaceServices, conversation_id: str) -> dict[str, list[int]]:
    """Where turns stand, by their hash; nothing for a thread that cannot be read."""
    try:
        thread = decode(services.conversations.read_file(conversation_id)[0])
    except (FileNotFoundError, NotAThread):
        return {}
    places: dict[str, list[int]] = {}
    for index, turn in enumerate(thread.turns):
        places.setdefault(stored_turn_hash(turn.role, turn.text), []).append(index)
    return places


def _moved(notes: Mapping[int, TurnNote], places: Mapping[str, list[int]]) -> Iterator[TurnNote]:
    right = {at for at, note in notes.items() if at in places.get(note.turn_hash, ())}
    taken = set(right)
    for at, note in notes.items():
        found = places.get(note.turn_hash, [])
        if at not in right and len(found) == 1 and found[0] not in taken:
            taken.add(found[0])
            yield replace(note, index=found[0])


def _merge_log(services: NamespaceServices) -> Check:
    """Merge the write-ahead log, and look whether the database is whole."""
    from anaphora.store.db.health import check_truth

    problems = check_truth(services.truth).problems
    if problems:
        detail = f"damaged, and not changed: {'; '.join(problems)}; restore a backup"
        return Check("truth", ok=False, detail=detail)
    if services.truth.scrub():
        return Check("truth", ok=True, detail="the write-ahead log was checkpointed")
    return Check("truth", ok=True, detail="intact; another process is using the write-ahead log")


def _mend_turns(services: NamespaceServices) -> Check:
    """Make the index again where anything is wrong with it, and embed what has no vector."""
    index = services.turns
    index.sync(embed="none")
    rebuilt = bool(index.check().problems)
    if rebuilt:
        index.rebuild()
    followed = index.sync(embed="all")
    seen = index.check()
    what = "made again" if rebuilt else "well"
    detail = f"{what}: {seen.turns:,} turns, {followed.embedded:,} embedded, {seen.pending:,} left"
    wrong = [*seen.problems, *map(str, followed.degraded)]
    if wrong:
        detail += f" ({'; '.join(wrong)})"
    return Check("index", ok=not seen.problems and not seen.pending, detail=detail)


def _fill_vectors(services: NamespaceServices) -> Check:
    """Embed the memories that have no vector."""
    filled = services.remember.fill_vectors()
    detail = f"{filled.embedded:,} memories embedded"
    if filled.failed:
        detail += f", {filled.failed:,} cannot be"
    return Check("vectors", ok=not filled.failed, detail=detail)


def _mend_rows(services: NamespaceServices) -> Check:
    """Mend rows that make no sense, and times that nothing can keep; every word stays."""
    from anaphora.store.mending import mend_records, mend_times, misdated

    truth, sealer = services.notes.truth, services.notes.sealer
    records = mend_records(truth, services.namespace, sealer)
    times = mend_times(truth, sealer, misdated(truth))
    turns = 0
    if not isinstance(services.conversations, ConversationStore):
        turns = services.conversations.mend_times()
    detail = f"{records:,} records, {times:,} rows with impossible times, {turns:,} turns repaired"
    return Check("rows", ok=True, detail=detail)


def _mend_sections(services: NamespaceServices) -> Check:
    """Make the index of sections again where it is broken, and embed what has no vector."""
    sections = services.sections
    broken = sections.check().problem
    made = sections.rebuild() if broken else sections.settle()
    services.upkeep.fill_vectors()
    seen = sections.check()
    what = "made again" if broken and made else "well"
    if not made:
        what = "another process is writing it"
    detail = f"{what}: {seen.known:,} sections and notes, {seen.pending:,} without a vector"
    if seen.problem is not None:
        detail += f"; {seen.problem}"
    return Check("section index", ok=seen.problem is None and not seen.pending, detail=detail)
