"""One large thing never stops the house: kept and found by words at once, its vectors made behind.

What is counted is work, not time: the characters that become vectors in the caller's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from anaphora import Memory, Vector, Vectors
from anaphora.testing import WordHashingEmbedder, run_cli

IN_CALL = 1 << 14
CODE = "QX-77183-LOCKER"
PHONE = "+49 30 5557 1234"
NOUNS = ("tram", "bread", "salt", "garden", "harbour", "invoice", "ladder", "piano", "winter")


def long_text(size: int = 150_000) -> str:
    """Sentences without a meaning, and at the end a code and a number."""
    lines: list[str] = []
    length = 0
    while length < size:
        at = len(lines)
        words = [NOUNS[(at * n + n) % len(NOUNS)] for n in range(3, 11)]
        lines.append(f"Line {at % 89}: {' '.join(words)}.")
        length += len(lines[-1]) + 1
    return "\n".join(lines) + f"\nThe code is {CODE}, ask {PHONE}."


LONG = long_text()


@dataclass
class CountingEmbedder:
    """Hashed words; counts what the caller's thread embeds, holds up long texts elsewhere."""

    caller: threading.Thread
    inner: WordHashingEmbedder = field(default_factory=WordHashingEmbedder)
    go_on: threading.Event = field(default_factory=threading.Event)
    in_call: list[int] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """As hashed words."""
        return self.inner.name

    @property
    def dimensions(self) -> int:
        """As hashed words."""
        return self.inner.dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        sizes = [len(text) for text in texts]
        if threading.current_thread() is self.caller:
            self.in_call += sizes
        else:
            self.behind += sizes
            assert sum(sizes) < 1_000 or self.go_on.wait(60)
        return self.inner.embed(texts)

    def embed_query(self, text: str) -> Vector:
        return self.inner.embed_query(text)

    def query_key(self, text: str) -> Hashable:
        return self.inner.query_key(text)


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[tuple[Memory, CountingEmbedder]]:
    embedder = CountingEmbedder(threading.current_thread())
    with Memory.open(tmp_path / "home", embedder=embedder) as memory:
        for number in range(5):
            memory.remember(f"Note {number}: the {NOUNS[number]} is in the cellar.")
        memory.recall("where is the salt?")
        embedder.in_call.clear()
        yield memory, embedder
        embedder.go_on.set()


Kept = tuple[Callable[[str], Sequence[str]], Callable[[], object]]
"""What finds the texts of hits, and what forgets."""


def keep_memory(memory: Memory, _: Path) -> Kept:
    done = memory.remember(LONG)
    assert any("vectors" in notice for notice in done.notices)
    return (
        lambda question: [hit.text for hit in memory.recall(question)],
        lambda: memory.forget(done.id),
    )


def keep_many(memory: Memory, _: Path) -> Kept:
    first, done, last = memory.remember_many(["Salt is cheap.", LONG, "Bread is dear."])
    assert not first.notices + last.notices
    return (
        lambda question: [hit.text for hit in memory.recall(question)],
        lambda: memory.forget(done.id),
    )


def keep_turn(memory: Memory, _: Path) -> Kept:
    memory.conversations.append_user("long", LONG)
    return (
        lambda question: [hit.text for hit in memory.recall_conversation(None, question)],
        lambda: memory.conversations.delete("long"),
    )


def keep_note(memory: Memory, _: Path) -> Kept:
    note = memory.observe(LONG)
    return (
        lambda question: [hit.text for hit in memory.search(question)],
        lambda: memory.forget(note.id),
    )


def keep_document(memory: Memory, folder: Path) -> Kept:
    file = folder / "long.txt"
    file.write_text(LONG)
    done = memory.add_document(file)
    assert done.pending
    return (
        lambda question: [hit.text for hit in memory.search(question)],
        lambda: memory.forget(done.document.id),
    )


@pytest.mark.promise("recall.large_things")
@pytest.mark.parametrize(
    "keep",
    [keep_memory, keep_many, keep_turn, keep_note, keep_document],
    ids=lambda keep: keep.__name__,
)
def test_vectors_of_a_large_thing_are_never_made_in_the_callers_time(
    counted: tuple[Memory, CountingEmbedder],
    tmp_path: Path,
    keep: Callable[[Memory, Path], Kept],
) -> None:
    """Words find the code at its end at once; vectors come behind; then it can be forgotten."""
    memory, embedder = counted
    find, forget = keep(memory, tmp_path)
    for question in (CODE, f"what is {CODE}?"):
        assert any(CODE in text for text in find(question)), "found by its words before"
    assert sum(embedder.in_call) <= IN_CALL + 1_000
    embedder.go_on.set()
    assert memory.ready()
    # What stands between two passages of a document is in none.
    assert sum(embedder.in_call) + sum(embedder.behind) >= 0.99 * len(LONG)
    assert any(CODE in text for text in find(CODE))
    forget()
    assert not any(CODE in text for text in find(CODE))


@pytest.mark.promise("recall.large_things")
def test_what_a_large_memory_ends_with_is_told_as_surviving(tmp_path: Path) -> None:
    """Of a long text that is forgotten the words of its end are looked for elsewhere, too."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.conversations.append_user("calls", f"I have called {PHONE} twice.")
        done = memory.remember(LONG)
        gone = memory.forget(done.id)
    assert ("turn", "calls") in {(one.kind, one.id) for one in gone.surviving}


@pytest.mark.promise("recall.large_things")
def test_a_large_text_is_remembered_from_a_pipe(tmp_path: Path) -> None:
    """More than an argument holds: kept at once, and the command says that vectors come later."""
    done = run_cli("remember", "-", home=tmp_path / "home", input=LONG)
    assert done.exit_code == 0, done.output
    assert "vectors" in done.output
    bad = run_cli("remember", "-", home=tmp_path / "home", input=b"caf\xe9")
    assert bad.exit_code == 2
    assert "byte 4 is not UTF-8" in bad.stderr
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        assert [one.text for one in memory.list()] == [LONG]
