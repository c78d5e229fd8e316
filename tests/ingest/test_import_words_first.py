"""An import answers by words when it returns; vectors follow, whatever happens in between."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.commands import python

from anaphora import Memory, Vectors
from anaphora.testing import WordHashingEmbedder

TURNS = 200
WAIT = 30.0


class Held(WordHashingEmbedder):
    """Embeds letters only once it is let go, and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.go = threading.Event(), threading.Event()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """As hashed words are, when it may."""
        letters = [text for text in texts if text.startswith("Letter")]
        if letters:
            self.began.set()
            assert self.go.wait(WAIT)
        self.texts.extend(letters)
        return super().embed(texts)


def letters(place: Path, count: int = TURNS) -> Path:
    """A chat of so many turns."""
    said = (
        {"role": "user", "content": f"Letter {n} lies in drawer{n * 7}.", "ts": 1_770_000_000 + n}
        for n in range(count)
    )
    place.write_text("".join(json.dumps(one) + "\n" for one in said))
    return place


def facts(place: Path, count: int) -> Path:
    """So many memories, as mem0 exports them."""
    kept = [
        {
            "id": f"m{n}",
            "memory": f"Key {n} opens room{n * 3}",
            "created_at": "2026-01-12T09:14:03Z",
        }
        for n in range(count)
    ]
    place.write_text(json.dumps({"results": kept}))
    return place


@pytest.mark.promise("import.words_first")
def test_words_answer_while_the_vectors_of_an_import_are_made(tmp_path: Path) -> None:
    """The call returns before, a question answers and says what is lacking; then nothing lacks."""
    held = Held()
    with Memory.open(tmp_path / "home", embedder=held) as memory:
        assert memory.import_(letters(tmp_path / "chat.jsonl")).added == TURNS
        found = memory.recall_conversation(None, "which letter lies in drawer1211?")
        assert found[0].text == "Letter 173 lies in drawer1211."
        assert any(f"{TURNS} texts have no vector yet" in one.reason for one in found.degraded)
        held.go.set()
        assert memory.ready()
        assert memory.recall_conversation(None, "what lies in drawer1211?").degraded == ()
        # Each once, whoever came to it first.
        assert len(held.texts) == len(set(held.texts)) == TURNS


@pytest.mark.promise("import.words_first")
def test_a_question_does_not_wait_for_who_makes_all_vectors(tmp_path: Path) -> None:
    """Beside a reindex that takes long a question is answered by words."""
    held = Held()
    with Memory.open(tmp_path / "home", embedder=held) as memory:
        memory.import_(letters(tmp_path / "chat.jsonl"), embed=False)
        making = threading.Thread(target=memory.reindex)
        making.start()
        assert held.began.wait(WAIT)
        found = memory.recall_conversation(None, "which letter lies in drawer1211?")
        assert found[0].text == "Letter 173 lies in drawer1211."
        assert found.degraded
        held.go.set()
        making.join(WAIT)
        assert memory.recall_conversation(None, "what lies in drawer1211?").degraded == ()


KILLED = """
import os, sys
from anaphora import Memory
memory = Memory.open(sys.argv[1], embedder="hashing")
memory.import_(sys.argv[2:])
os.kill(os.getpid(), 9)
"""


@pytest.mark.promise("import.words_first")
def test_an_import_that_is_killed_before_its_vectors_loses_nothing(tmp_path: Path) -> None:
    """Another process finds everything by words, and makes what is lacking."""
    given = [letters(tmp_path / "chat.jsonl"), facts(tmp_path / "mem0.json", 150)]
    home = tmp_path / "home"
    words = [*python(), "-c", KILLED, str(home), *map(str, given)]
    assert subprocess.run(words, check=False).returncode == -9
    with Memory.open(home, embedder="hashing") as memory:
        found = memory.recall_conversation(None, "which letter lies in drawer1211?")
        assert found[0].text == "Letter 173 lies in drawer1211."
        assert memory.recall("what opens room300?")[0].text == "Key 100 opens room300"
        assert memory.ready()
        assert memory.stats().pending == 0
        assert memory.recall("what opens room300?").degraded == ()
        again = memory.import_(given)
        assert (again.added, again.memories_added) == (0, 0)


@pytest.mark.promise("import.words_first")
def test_many_memories_are_found_by_words_first(tmp_path: Path) -> None:
    """Of more than a few memories most get their vectors behind the call."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        assert memory.import_(facts(tmp_path / "mem0.json", 300)).memories_added == 300
        assert memory.recall("what opens room300?")[0].text == "Key 100 opens room300"
        assert memory.ready()
        assert memory.recall("what opens room303?").degraded == ()


@pytest.mark.promise("embed.pasted")
def test_of_pasted_code_and_logs_only_the_beginning_becomes_vectors(tmp_path: Path) -> None:
    """What is written around it is embedded whole, and words find all of it."""
    code = "\n".join(f"    heron_{n} = weigh(nest_{n}, {n})" for n in range(90))
    log = "\n".join(f"2026-03-02 09:00:{n:02} INFO wader{n} landed" for n in range(60))
    listed = "\n".join(f"    - reason number {n}: the tide" for n in range(60))
    text = (
        f"Letter from the shore: why is this slow?\n```python\ndef weigh_all():\n{code}\n```\n"
        f"It was quick in February.\n\n{log}\n\nThe reasons that I see:\n{listed}\nThat is all."
    )
    held = Held()
    held.go.set()
    with Memory.open(tmp_path / "home", embedder=held) as memory:
        memory.conversations.append_user("chat", text)
        memory.ready()
        (told,) = held.texts
        for kept in ("why is this slow?", "def weigh_all", "quick in February", "wader0 landed"):
            assert kept in told
        assert "reason number 59" in told
        assert told.endswith("That is all.")
        assert "heron_60" not in told
        assert "wader40" not in told
        for asked in ("where is heron_60 weighed?", "when did wader40 land?"):
            (hit, *_) = memory.recall_conversation(None, asked)
            assert hit.conversation_id == "chat"
