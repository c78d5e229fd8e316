"""Targets that read files of others: importers, and thread files of Go.

In: a private folder. Out: rooms. What went in is read back word for word; what did not go in was
said, and left nothing behind.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.ingest.import_stores import import_into
from tests.ingest.imported import read

from anaphora import (
    ConversationStore,
    ImportedConversation,
    ImportProblem,
    ImportReport,
    Memory,
    Thread,
)
from anaphora.errors import AnaphoraError, CorruptThread, InvalidInput
from anaphora.features.importing.formats import FORMATS
from anaphora.features.importing.formats.base import ImportItem
from anaphora.features.importing.values import ImportedMemory
from anaphora.store.db.engine import open_database
from anaphora.store.threads.gojson import NotAThread, decode, encode, parse
from anaphora.store.threads.sidecar import Sidecar

from .mutating import Mutator
from .rooms import OWN, Room, dice, expect, read_all, suite, transcripts
from .shapes import mutant

__all__ = ["importers", "recalled", "thread_files"]

_ENDINGS = (".json", ".json", ".jsonl", "", ".md")
_FORMS = (*FORMATS, *(None for _ in range(2 * len(FORMATS))))
_WORD = re.compile("[a-z]{4,}")


def _corpus(shared: Path | None) -> tuple[bytes, ...]:
    found, known = transcripts(shared), suite(shared)
    # As often a transcript as a file of the suites.
    times = 1 + len(known) // max(1, len(found))
    return found * times + known + _zipped(found[:8]) * times


def _worse(mutator: Mutator, corpus: Sequence[bytes]) -> bytes:
    """As often keys and types are changed as bytes."""
    if mutator.random.random() < 0.5:
        return mutator.choose(corpus)
    return mutant(mutator.random, "", mutator.random.choice(corpus))


def _zipped(files: Sequence[bytes]) -> tuple[bytes, ...]:
    packed = []
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", kind) as archive:
            for number, data in enumerate(files):
                name = f"part{number}/conversations.json"
                info = zipfile.ZipInfo(name, (2026, 4, 30, 12, 0, 0))
                info.compress_type = kind
                archive.writestr(info, data)
        packed.append(target.getvalue())
    return tuple(packed)


def _written(folder: Path, data: bytes) -> tuple[Path, str | None]:
    """The input as a file, and the format that the caller names, if any."""
    ending = ".zip" if data[:2] == b"PK" else _ENDINGS[dice(data, len(_ENDINGS))]
    path = folder / f"export{ending}"
    path.write_bytes(data)
    return path, _FORMS[dice(data, len(_FORMS))]


@contextmanager
def importers(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Every importer, into a store of its own for each input."""
    truth = open_database(folder / "truth.db")
    numbers = itertools.count()

    def check(data: bytes) -> None:
        path, form = _written(folder, data)
        name = f"n{next(numbers)}"
        sidecar = Sidecar(truth, name)
        place = folder / name
        store = ConversationStore(place, strict=True, sidecar=sidecar)
        try:
            report = import_into([path], store, sidecar, form)
        except AnaphoraError as error:
            # The file was there and could be read: what is wrong is what it says.
            expect(isinstance(error, InvalidInput), repr(error))
            assert not list(place.rglob("*.json")), "something was written all the same"
            return
        items = list(read(path, form))
        _all_kept([i for i in items if isinstance(i, ImportedConversation)], store, report)
        _all_counted(items, report)
        _nothing_half_written(place)
        again = import_into([path], store, sidecar, form)
        assert again.added == 0, f"{again.added} turns were added a second time"
        twice = again.memories_added + again.memories_changed + again.memories_ended
        assert twice == 0, f"{twice} memories were added or changed a second time"
        shutil.rmtree(place, ignore_errors=True)

    try:
        yield Room(_corpus(shared), check, _worse)
    finally:
        truth.close()


def _all_kept(
    items: Sequence[ImportedConversation], store: ConversationStore, report: ImportReport
) -> None:
    threads = [store.get(name) for name in report.conversation_ids]
    said = {(turn.role, turn.text) for thread in threads if thread for turn in thread.turns}
    refused = {problem.path for problem in report.problems}
    for item in items:
        if f"{item.source} {item.key}" not in refused:
            missing = {(turn.role, turn.text) for turn in item.turns} - said
            assert not missing, f"not kept word for word: {list(missing)[:3]!r}"


def _all_counted(items: Sequence[ImportItem], report: ImportReport) -> None:
    """Every memory was kept, known, or refused in words."""
    told = sum(isinstance(item, ImportedMemory) for item in items)
    kept = report.memories_added + report.memories_known + report.memories_changed
    refused = len(report.problems) - sum(isinstance(item, ImportProblem) for item in items)
    assert kept <= told <= kept + max(0, refused), f"{told} memories, {kept} of them kept"


def _nothing_half_written(place: Path) -> None:
    if not place.exists():
        return
    assert not [found for found in place.rglob("*") if found.name.endswith(".tmp")]
    for found in place.glob("*.json"):
        data = found.read_bytes()
        assert encode(decode(data)) == data


@contextmanager
def recalled(folder: Path, shared: Path | None) -> Iterator[Room]:
    """The same through a memory: what was imported is recalled word for word."""
    numbers = itertools.count()
    with Memory.open(folder / "home", embedder="hashing") as whole:

        def check(data: bytes) -> None:
            path, form = _written(folder, data)
            memory = whole.scoped(f"n{next(numbers)}")
            try:
                report = memory.import_(path, format=form)
            except AnaphoraError as error:
                expect(isinstance(error, InvalidInput), repr(error))
                return
            for name in report.conversation_ids[:3]:
                thread = memory.conversations.get(name)
                assert thread is not None
                _found_again(memory, thread)

        yield Room(_corpus(shared), check)


def _found_again(memory: Memory, thread: Thread) -> None:
    for turn in thread.turns[:2]:
        if not _WORD.search(turn.text):
            continue
        hits = memory.recall_conversation(
            thread.conversation_id, turn.text[:400], top_k=6, budget=1_000_000
        )
        assert all(thread.turns[hit.index].text == hit.text for hit in hits)
        assert hits, f"nothing is recalled for {turn.text[:80]!r}"


@contextmanager
def thread_files(folder: Path, shared: Path | None) -> Iterator[Room]:
    """A damaged file among good ones: read, continued, listed, looked after, searched."""
    corpus = read_all(OWN / "store" / "fixtures", ".json") + read_all(
        OWN / "ingest" / "fixtures" / "neo", ".json"
    )
    corpus += read_all(OWN / "data" / "threads", ".json")
    numbers = itertools.count()
    with Memory.open(folder / "home", embedder="hashing") as memory:
        store = memory.conversations
        for name in ("good", "better"):
            store.append(name, "user", "a heron stood in the river")
        place = folder / "home" / "conversations"
        good = {name: (place / f"{name}.json").read_bytes() for name in ("good", "better")}

        def check(data: bytes) -> None:
            name = f"victim{next(numbers)}"
            path = place / f"{name}.json"
            try:
                before: Thread | None = decode(data)
            except NotAThread:
                before = None
                # What links the last writes behind them would set it aside first.
                assert memory.ready(60)
            path.write_bytes(data)
            if before is None:
                _set_aside(memory, name, path, data)
            else:
                _continued(memory, name, path, before, data)
            listed = {one.conversation_id for one in store.list()}
            assert listed >= set(good)
            assert all((place / f"{one}.json").read_bytes() == good[one] for one in good)
            if dice(data, 4) == 0:
                assert memory.recall_conversation("good", "heron")
                memory.recall_conversation(None, "heron")
            if dice(data, 32) == 0:
                assert memory.doctor()
            assert store.delete(name)
            assert not path.exists()

        yield Room(corpus, check)


def _set_aside(memory: Memory, name: str, path: Path, data: bytes) -> None:
    store = memory.conversations
    looks = (
        lambda: store.get(name),
        lambda: store.recent(name),
        lambda: store.append(name, "user", "more"),
        lambda: store.set_title(name, "t"),
        lambda: store.redact(name, 0),
    )
    try:
        looks[dice(data, len(looks))]()
    except CorruptThread as error:
        kept = error.set_aside
    else:
        raise AssertionError("a damaged file was used")
    assert kept is not None
    assert kept.read_bytes() == data, "the damaged bytes were not kept"
    assert name in {problem.conversation_id for problem in store.problems()}
    assert store.append(name, "user", "a new beginning")
    assert kept.read_bytes() == data
    assert [turn.text for turn in store.recent(name)] == ["a new beginning"]


def _continued(memory: Memory, name: str, path: Path, before: Thread, data: bytes) -> None:
    store = memory.conversations
    assert decode(encode(before)) == _normal(before)
    found = store.get(name)
    assert found is not None
    assert [(t.role, t.text, t.ts) for t in found.turns] == [
        (t.role, t.text, t.ts) for t in before.turns
    ]
    assert path.read_bytes() == data, "reading changed the file"
    assert store.append(name, "user", "one more word")
    after = decode(path.read_bytes())
    assert [(t.role, t.text, t.ts) for t in after.turns[:-1]] == [
        (t.role, t.text, t.ts) for t in before.turns
    ]
    assert after.turns[-1].text == "one more word"
    extras = [json.loads(value, parse_int=str) for _, value in parse(data).extras]
    assert [json.loads(v, parse_int=str) for _, v in parse(path.read_bytes()).extras] == extras
    # A file that we wrote is ours: appended to once more, without being read again.
    assert store.append(name, "assistant", "and another")
    assert decode(path.read_bytes()).turns[:-1] == after.turns


def _normal(thread: Thread) -> Thread:
    """The thread with its times as they are written."""
    return decode(encode(thread))
