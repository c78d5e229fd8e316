"""The quality measurement: real import, real recall, small data sets with known answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bench.__main__ import main as measure_all
from bench.quality import main, measures_of, parse_chats, rows_of, run_one

from anaphora.errors import InvalidInput, UnknownFormat

FIXTURES = Path(__file__).parent / "fixtures_datasets"
NAMES = (
    "amber basil cedar dune ember fjord garnet harbor indigo jasper kelp lagoon maple nectar "
    "opal pepper quartz raven saffron tundra umber velvet willow yarrow zinnia"
)
WORDS = NAMES.split()
METHODS = ("BM25", "cosine", "Anaphora")


def figures(path: Path, form: str, chats: str | None = None) -> dict[str, dict[str, float]]:
    outcome = run_one(path, form, chats, "hashing")
    return {row.method: dict(row.measures) for row in rows_of(form, outcome)}


def write_chat(folder: Path, asked: list[int]) -> Path:
    """A LoCoMo file of one session, turn n is D1:n; `asked` is the evidence of each question."""
    turns = [f"Please remember that the {word} box is in room {n}." for n, word in enumerate(WORDS)]
    sample = {
        "sample_id": "made",
        "conversation": {
            "session_1_date_time": "1:00 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "AB"[n % 2], "dia_id": f"D1:{n}", "text": text}
                for n, text in enumerate(turns, start=1)
            ],
        },
        "qa": [
            {"question": f"Where is the {word} box?", "evidence": [f"D1:{n}"], "category": 4}
            for n, word in zip(asked, WORDS, strict=True)
        ],
    }
    file = folder / "made.json"
    file.write_text(json.dumps([sample]))
    return file


@pytest.mark.promise("bench.same_road")
def test_evidence_that_says_what_is_asked_is_found(tmp_path: Path) -> None:
    """Turns that share rare words with their questions are found by every ranking."""
    named = figures(write_chat(tmp_path, [*range(1, len(WORDS) + 1)]), "locomo")
    assert [named[method]["recall@5"] for method in METHODS] == [1.0, 1.0, 1.0]
    assert named["BM25"]["MRR"] == 1.0


def test_wrong_evidence_scores_nothing(tmp_path: Path) -> None:
    """When the evidence points at turns about something else, the scores fall: they can fail."""
    shifted = [*range(12, len(WORDS) + 1), *range(1, 12)]
    named = figures(write_chat(tmp_path, shifted), "locomo")
    assert named["BM25"]["MRR"] < 0.2
    assert named["Anaphora"]["recall@5"] < 0.5


@pytest.mark.parametrize(
    ("form", "scored", "unanswered"),
    [("realtalk", 3, 2), ("locomo", 5, 1), ("beam", 4, 2), ("longmemeval", 2, 2)],
)
def test_every_format_is_asked(form: str, scored: int, unanswered: int) -> None:
    """A folder of each format is imported and asked; what nothing answers is counted."""
    outcome = run_one(FIXTURES / form, form, None, "hashing")
    assert len(outcome.asked) == scored
    assert sum(count for _, _, count in outcome.unanswered) == unanswered
    (own,) = (row for row in rows_of(form, outcome) if row.method == "Anaphora")
    assert own.measures["recall@10"] > 0.9


def test_the_measures_of_a_question_by_hand() -> None:
    """Of three answers two are among the first five; a hit stands for all that it names."""
    a, b, c, d = (("c", n) for n in range(4))
    hits = [{d}, {a}, {("c", 8), b}, {("c", 9)}, {d}, {c}]
    found = measures_of(hits, frozenset((a, b, c)))
    assert (found["first"], found["first 3"], found["first 10"]) == (0.0, 1.0, 1.0)
    assert found["recall@5"] == pytest.approx(2 / 3)
    assert found["recall@10"] == 1.0
    assert found["MRR"] == 0.5


def test_chats_can_be_chosen() -> None:
    """Ranges and lists of numbers; what is no such list, or names no chat, is refused."""
    assert parse_chats("1, 3,5 - 7") == {1, 3, 5, 6, 7}
    assert len(run_one(FIXTURES / "beam", "beam", "1", "hashing").asked) == 4
    with pytest.raises(UnknownFormat):
        run_one(FIXTURES / "beam", "beam", "7-9", "hashing")
    for text in ("", "a", "1-", "1-2-3"):
        with pytest.raises(InvalidInput, match="6-10"):
            parse_chats(text)


def test_what_cannot_be_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table where all can be read; a torn file and a path that is not there are errors."""
    shutil.copytree(FIXTURES / "realtalk", tmp_path / "chats")
    words = ["--format", "realtalk", "--path", str(tmp_path / "chats"), "--embedder", "hashing"]
    main(words)
    assert "| realtalk (3) | Anaphora |" in capsys.readouterr().out
    (tmp_path / "chats" / "Chat_9_broken.json").write_text("{")
    with pytest.raises(UnknownFormat):
        main(words)
    with pytest.raises(InvalidInput):
        run_one(tmp_path / "nowhere", "beam", None, "hashing")
    with pytest.raises(SystemExit):
        measure_all(["--only", "speed"])
