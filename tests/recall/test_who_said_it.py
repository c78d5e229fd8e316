"""Equal words of several people, paths or conversations stay several hits of one search."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.commands import run_command

from anaphora import Memory, SearchHit

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
OTHERS = (
    "The coffee machine on the second floor was descaled.",
    "Ida keeps the spare keys of the archive room.",
    "The printer needs A4 paper in tray two.",
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A home with a few statements about other things."""
    with Memory.open(tmp_path / "home", clock=lambda: NOW) as opened:
        for place, text in enumerate(OTHERS):
            opened.conversations.append("other", "user", text, ts=NOW - timedelta(days=40 + place))
        yield opened


def tell(memory: Memory, text: str, *speakers: str, role: str = "user", chat: str = "team") -> None:
    """Let speakers say the same, a day apart."""
    for day, speaker in enumerate(speakers):
        ts = NOW - timedelta(days=20 - day)
        memory.conversations.append(chat, role, text, ts=ts, speaker=speaker or None)


def hits_of(memory: Memory, question: str, word: str) -> list[SearchHit]:
    """The hits of a question that hold a word."""
    assert memory.ready(60)
    return [hit for hit in memory.search(question) if word in hit.text]


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize(
    ("text", "question", "word"),
    [
        ("I'm allergic to walnuts.", "who is allergic to walnuts?", "walnuts"),
        ("I can drive on Saturday.", "who can drive on Saturday?", "drive"),
        ("Ich bin gegen Walnüsse allergisch.", "Wer ist allergisch gegen Walnüsse?", "Walnüsse"),
    ],
)
def test_everyone_who_said_it_is_a_hit(memory: Memory, text: str, question: str, word: str) -> None:
    """Each speaker stands in an answer of their own, and so says every surface."""
    tell(memory, text, "Mara", "Ben", "Ida")
    assert {hit.speaker for hit in hits_of(memory, question, word)} == {"Mara", "Ben", "Ida"}
    environ = {**os.environ, "ANAPHORA_HOME": str(memory.home)}
    shown = json.loads(run_command("recall", question, "--json", environ=environ).stdout)
    assert {hit["speaker"] for hit in shown["hits"] if word in hit["text"]} == {
        "Mara",
        "Ben",
        "Ida",
    }


@pytest.mark.promise("search.everything")
def test_what_one_person_repeats_is_one_hit(memory: Memory) -> None:
    """Said thrice by one and once by another: two hits, however often."""
    text = "I'm allergic to walnuts."
    tell(memory, text, "Mara", "Ben", "Mara", "Mara", "Mara")
    tell(memory, text, "Mara", chat="elsewhere")
    hits = hits_of(memory, "who is allergic to walnuts?", "walnuts")
    assert sorted(hit.speaker for hit in hits) == ["Ben", "Mara"]


@pytest.mark.promise("search.everything")
def test_a_role_is_somebody(memory: Memory) -> None:
    """What a user says and an assistant says in the same words is told twice."""
    for role in ("user", "assistant"):
        tell(memory, "The deposit for the hall is 400 euros.", "", role=role, chat=role)
    hits = hits_of(memory, "how much is the deposit for the hall?", "deposit")
    assert sorted(hit.speaker for hit in hits) == ["assistant", "user"]


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize("index", [0, None])
def test_a_memory_and_its_turn_are_one_hit(memory: Memory, index: int | None) -> None:
    """The turn that a memory came from comes once, with who said it; those of others come too."""
    text = "I'm allergic to walnuts."
    tell(memory, text, "Mara", chat="doctor")
    tell(memory, text, "Ben")
    memory.remember(text, conversation_id="doctor", turn_index=index)
    hits = hits_of(memory, "who is allergic to walnuts?", "walnuts")
    assert sorted(hit.speaker for hit in hits) == ["Ben", "Mara"]


@pytest.mark.promise("search.everything")
def test_a_memory_of_two_people_hides_neither(memory: Memory) -> None:
    """A memory that two turns of two people told: both names are in the answer."""
    text = "I'm allergic to walnuts."
    tell(memory, text, "Mara", "Ben")
    for index in (0, 1):
        memory.remember(text, conversation_id="team", turn_index=index)
    hits = hits_of(memory, "who is allergic to walnuts?", "walnuts")
    assert sorted(hit.speaker for hit in hits) == ["Ben", "Mara"]


@pytest.mark.promise("search.everything")
def test_a_memory_of_elsewhere_hides_no_turn(memory: Memory) -> None:
    """Equal words are one statement only where the one was taken from the other."""
    text = "I'm allergic to walnuts."
    tell(memory, text, "Ben")
    memory.remember(text, conversation_id="kitchen", turn_index=3)
    hits = hits_of(memory, "who is allergic to walnuts?", "walnuts")
    assert [sorted(hit.kind for hit in hits), [h.speaker for h in hits if h.kind == "turn"]] == [
        ["memory", "turn"],
        ["Ben"],
    ]


@pytest.mark.promise("search.everything")
def test_equal_values_of_two_paths_are_two_hits(memory: Memory) -> None:
    """The same words at two paths are two facts, and both are told."""
    for path in ("staging.port", "review.port"):
        memory.remember("The database listens on port 6432.", path=path)
    hits = hits_of(memory, "which port does the database listen on?", "6432")
    assert sorted(hit.title for hit in hits) == ["review.port", "staging.port"]
