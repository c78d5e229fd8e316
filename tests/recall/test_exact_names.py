"""What a question names exactly is first in every lane, with twenty of its kind around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from anaphora import Memory

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
OTHERS = 20
DONE = (
    *("fixed the memory leak of the importer", "changed the file format", "broke the export"),
    *("made the start twice as fast", "dropped the old login page", "renamed the settings"),
    *("added the dark theme", "moved the cache to another disk", "sorted the list by name"),
    *("took out the beta banner", "translated the menus", "signed the packages"),
    *("fixed the crash at start", "made the logs shorter", "added a second printer"),
    *("updated the certificates", "split the queue in two", "closed the old mailbox"),
    *("cleaned the temporary folders", "raised the limit of uploads", "rewrote the search page"),
)
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September"]
Digits = tuple[int, ...]
# How a thing of a kind is named in a text and, another way, in a question.
SHAPES: dict[str, tuple[Callable[[Digits], str], tuple[Callable[[Digits], str], ...]]] = {
    "version": (
        lambda d: f"Release v{d[0]}.{d[1]}.{d[2]}",
        (lambda d: f"{d[0]}.{d[1]}.{d[2]}", lambda d: f"v{d[0]}.{d[1]}.{d[2]}"),
    ),
    "minor version": (
        lambda d: f"Version {d[0]}.{d[1]}{d[2]}",
        (lambda d: f"{d[0]}.{d[1]}{d[2]}", lambda d: f"v{d[0]}.{d[1]}{d[2]}"),
    ),
    "section": (
        lambda d: f"The change to section {d[0]}.{d[1]}.{d[2]}",
        (lambda d: f"section {d[0]}.{d[1]}.{d[2]}", lambda d: f"§{d[0]}.{d[1]}.{d[2]}"),
    ),
    "code": (
        lambda d: f"Ticket OPS-{d[0]}{d[1]}{d[2]}{d[0]}",
        (lambda d: f"OPS{d[0]}{d[1]}{d[2]}{d[0]}", lambda d: f"ops {d[0]}{d[1]}{d[2]}{d[0]}"),
    ),
    "time of day": (
        lambda d: f"The job at 1{d[0] % 10}:{d[1] % 6}{d[2]}",
        (
            lambda d: f"{d[0] % 10 - 2}:{d[1] % 6}{d[2]} pm",
            lambda d: f"1{d[0] % 10}.{d[1] % 6}{d[2]} Uhr",
        ),
    ),
    "day": (
        lambda d: f"The release of 2026-0{d[0]}-1{d[1]}",
        (lambda d: f"1{d[1]}.{d[0]}.2026", lambda d: f"{MONTHS[d[0] - 1]} 1{d[1]}, 2026"),
    ),
    "port": (
        lambda d: f"The change of port {d[0]}{d[1]}{d[2]}{d[1]}",
        (lambda d: f"port {d[0]}{d[1]}{d[2]}{d[1]}", lambda d: f":{d[0]}{d[1]}{d[2]}{d[1]}"),
    ),
    "address": (
        lambda d: f"The move of 10.{d[0]}.{d[1]}.{d[2]}",
        (lambda d: f"10.{d[0]}.{d[1]}.{d[2]}", lambda d: f"host 10.{d[0]}.{d[1]}.{d[2]}"),
    ),
}
ASKED = ("{}", "what happened with {}?", "tell me what {} was about")


def digits_of(shape: str) -> list[Digits]:
    """One thing of a kind and twenty others, most of them of the same digits."""
    chosen = Random(shape).sample(range(3, 9), 5)
    found = [(a, b, c) for a in chosen for b in chosen for c in chosen if len({a, b, c}) == 3]
    by_name: dict[str, Digits] = {}
    for digits in found:
        by_name.setdefault(SHAPES[shape][0](digits), digits)
    return list(by_name.values())[: OTHERS + 1]


@pytest.fixture(scope="module", params=SHAPES)
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Memory, str]]:
    """A home in which one thing of a kind after the other was noted and said."""
    shape = str(request.param)
    with Memory.open(tmp_path_factory.mktemp("home"), clock=lambda: NOW) as memory:
        assert memory.ready(60)
        for number, (digits, done) in enumerate(zip(digits_of(shape), DONE, strict=False)):
            text = f"{SHAPES[shape][0](digits)} {done}."
            at = NOW - timedelta(days=120 - number)
            memory.remember(text, created_at=at)
            memory.conversations.append(f"c{number}", "user", text, ts=at)
        assert memory.ready(60)
        yield memory, shape


@pytest.mark.promise("recall.exact_names")
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_named_exactly_is_first(told: tuple[Memory, str], asked: str) -> None:
    """However it is written, and whatever else resembles the question."""
    memory, shape = told
    wrong = []
    for digits in digits_of(shape)[::5]:
        right = SHAPES[shape][0](digits)
        for way in SHAPES[shape][1]:
            question = asked.format(way(digits))
            answers = {
                "memories": memory.recall(question),
                "turns": memory.recall_conversation(None, question),
                "search": memory.search(question),
            }
            for lane, answer in answers.items():
                first = str(getattr(answer[0], "text", "")) if len(answer) else "nothing"
                if not first.startswith(right):
                    wrong.append((lane, question, first))
    assert not wrong


@pytest.mark.promise("recall.exact_names")
@pytest.mark.parametrize(
    ("told", "question", "right"),
    [
        (("Chapter 3.1 is about taxes.", "Chapter 3.10 is about fines."), "3.1", 0),
        (("Chapter 3.1 is about taxes.", "Chapter 3.10 is about fines."), "what is in 3.10?", 1),
        (("Python 3.9 is on the server.", "Python 3.11 is on the laptop."), "python3.11", 1),
        (("The build is 2.3.1-rc1.", "The build of May is 2.3.1."), "2.3.1-rc1", 0),
        (("Der Termin ist um 15 Uhr.", "Der Kurs ist um 17 Uhr."), "was ist um 17:00?", 1),
        (("El curso es a las 3 de la tarde.", "La cena es a las 9 de la noche."), "21:00", 1),
        (("Le cours est à 15h30.", "Le dîner est à 19h30."), "qu'est-ce qu'il y a à 15:30 ?", 0),
        (("会议是下午3点。", "晚饭是下午6点。"), "18:00", 1),
        (("The fee was $1,200.", "The fee was $1,020."), "1020 dollars", 1),
        (("Invoice INV-2041 is paid.", "Invoice INV-2014 is open."), "is INV2014 open?", 1),
        (
            ("Commit 3f2a9c1d8e4b7a6f broke it.", "Commit 9e8b7a6f5c4d3e2f is signed."),
            "3f2a9c1d",
            0,
        ),
        (
            ("Commit 3f2a9c1d8e4b7a6f broke it.", "Commit 9e8b7a6f5c4d3e2f mended it."),
            "3f2a9c1d",
            0,
        ),
    ],
)
def test_other_ways_to_name_a_thing(
    tmp_path: Path, told: tuple[str, ...], question: str, right: int
) -> None:
    """Of two that differ in their digits alone the one that is named is first."""
    with Memory.open(tmp_path / "home", clock=lambda: NOW) as memory:
        assert memory.ready(60)
        for number, text in enumerate(told):
            memory.remember(text, created_at=NOW - timedelta(days=9 - number))
            memory.conversations.append(f"c{number}", "user", text, ts=NOW - timedelta(days=9))
        assert memory.ready(60)
        for answer in (
            memory.recall(question, min_confidence=0.0),
            memory.recall_conversation(None, question, min_confidence=0.0),
            memory.search(question, min_confidence=0.0),
        ):
            assert answer[0].text == told[right]
