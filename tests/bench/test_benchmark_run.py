"""A benchmark run from end to end: real import, real recall, small data sets with known answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import main
from bench.conversations import BenchmarkReport, Row, run_benchmark
from tests.commands import is_one_mistake

from anaphora import Memory
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.errors import InvalidInput, UnknownFormat

FIXTURES = Path(__file__).parent / "fixtures_datasets"
NAMES = (
    "amber basil cedar dune ember fjord garnet harbor indigo jasper kelp lagoon maple nectar "
    "opal pepper quartz raven saffron tundra umber velvet willow yarrow zinnia"
)
WORDS = NAMES.split()


def run(path: Path, form: str, **options: Any) -> BenchmarkReport:
    return run_benchmark(path, form, embedder="hashing", **options)


def row(report: BenchmarkReport, mode: str) -> Row:
    return next(found for found in report.rows if found.mode == mode)


def write_chat(folder: Path, texts: list[str], questions: list[tuple[str, str]]) -> Path:
    """A LoCoMo file of one session: turn n is D1:n, from 1."""
    sample = {
        "sample_id": "made",
        "conversation": {
            "session_1_date_time": "1:00 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "AB"[n % 2], "dia_id": f"D1:{n}", "text": text}
                for n, text in enumerate(texts, start=1)
            ],
        },
        "qa": [{"question": q, "evidence": [e], "category": 4} for q, e in questions],
    }
    file = folder / "made.json"
    file.write_text(json.dumps([sample]))
    return file


@pytest.mark.promise("bench.same_road")
def test_evidence_that_says_what_is_asked_is_found(tmp_path: Path) -> None:
    """Turns that share rare words with their questions give a recall of 1 in every ranking."""
    texts = [f"Please remember that the {word} box is in room {n}." for n, word in enumerate(WORDS)]
    asked = [(f"Where is the {w} box?", f"D1:{n}") for n, w in enumerate(WORDS, start=1)]
    report = run(write_chat(tmp_path, texts, asked), "locomo")
    assert report.questions == {"4 single-hop": len(WORDS)}
    for mode in ("words", "vector", "hybrid"):
        assert row(report, mode).overall.recall_at_5 == 1.0
    assert row(report, "words").overall.mrr == 1.0
    assert not report.degraded
    assert not report.problems


def test_wrong_evidence_scores_nothing(tmp_path: Path) -> None:
    """When the evidence points at turns about something else, the scores fall: they can fail."""
    texts = [f"Please remember that the {word} box is in room {n}." for n, word in enumerate(WORDS)]
    shifted = [*range(12, len(WORDS) + 1), *range(1, 12)]
    asked = [(f"Where is the {w} box?", f"D1:{n}") for n, w in zip(shifted, WORDS, strict=True)]
    report = run(write_chat(tmp_path, texts, asked), "locomo")
    assert row(report, "words").overall.mrr < 0.2
    assert row(report, "words").overall.recall_at_5 < 0.5


def test_the_rankings_are_different_ones(tmp_path: Path) -> None:
    """Where words and vectors disagree, their rows differ, and each follows its own evidence.

    The hashing embedder measures by overlap of all words of a turn: it prefers a short turn with
    one of them. BM25 prefers the rarest word, however long the turn that holds it.
    """
    rare = "zinnia " + " ".join(f"filler{n}" for n in range(60))
    texts = [rare, *["the garden gate"] * 3, *[f"the garden of {word}" for word in WORDS]]
    asked = [("the garden zinnia", "D1:1")]
    report = run(write_chat(tmp_path, texts, asked), "locomo")
    assert row(report, "words").overall.mrr > row(report, "vector").overall.mrr


@pytest.mark.parametrize(
    ("form", "questions", "scored", "left_out"),
    [
        ("realtalk", 5, 3, {"evidence not in the data": 1, "no evidence given": 1}),
        ("locomo", 6, 5, {"evidence not in the data": 1}),
        ("beam", 8, 5, {"abstention": 1, "evidence not in the data": 1, "no evidence given": 1}),
        ("longmemeval", 5, 3, {"abstention": 1, "evidence not in the data": 1}),
    ],
)
def test_every_format_runs(
    form: str, questions: int, scored: int, left_out: dict[str, int]
) -> None:
    """A folder of each format is imported and asked; what cannot be scored is counted by reason."""
    report = run(FIXTURES / form, form)
    assert report.format == form
    assert sum(report.questions.values()) == questions
    assert row(report, "hybrid").overall.questions == scored
    assert report.left_out == left_out
    assert row(report, "hybrid").overall.recall_at_20 > 0.9
    assert report.recall.calls == report.repeated.calls == scored
    assert report.texts_embedded > 0
    assert report.home_bytes > 0


def test_haystacks_do_not_mix(tmp_path: Path) -> None:
    """A LongMemEval question sees its own sessions only, and shared haystacks are imported once."""
    home = tmp_path / "home"
    report = run(FIXTURES / "longmemeval" / "sample.json", "longmemeval", home=home)
    assert report.chats == 4
    assert report.conversations == 4
    with Memory.open(home, conversations_dir=home / "conversations", embedder="hashing") as memory:
        assert not memory.conversations.list()


def test_chats_can_be_chosen(tmp_path: Path) -> None:
    """Only the chosen chats are imported and asked."""
    report = run(FIXTURES / "beam", "beam", chats="2")
    assert (report.chats, report.turns, sum(report.questions.values())) == (1, 4, 2)
    with pytest.raises(UnknownFormat):
        run(FIXTURES / "beam", "beam", chats="7-9")


def test_details_explain_each_question(tmp_path: Path) -> None:
    """The details have a line a scored question: its evidence, and the top turns with factors."""
    file = tmp_path / "details.jsonl"
    run(FIXTURES / "realtalk", "realtalk", details=file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 3
    first = lines[0]
    assert first["question"] == "What colour is the kayak?"
    assert first["evidence"][0]["text"].startswith("Bright orange")
    top = first["rankings"]["hybrid"]["top"]
    assert any(hit["right"] for hit in top)
    assert all(hit["factors"] for hit in top)


def test_progress_is_told() -> None:
    """Importing and asking report how far they are, up to the last question."""
    seen: list[tuple[str, int, int]] = []
    run(FIXTURES / "realtalk", "realtalk", progress=lambda *step: seen.append(step))
    assert seen[-1] == ("asking", 5, 5)


def test_an_embedder_of_the_callers_own(tmp_path: Path) -> None:
    """An embedder instance is used as it is, under its own name."""
    embedder = WordHashingEmbedder(64)
    report = run_benchmark(FIXTURES / "realtalk", "realtalk", embedder=embedder)
    assert report.embedder == embedder.name


def test_a_home_can_be_used_again(tmp_path: Path) -> None:
    """A second run on the same home imports nothing, embeds nothing and scores the same."""
    first = run(FIXTURES / "realtalk", "realtalk", home=tmp_path / "home")
    second = run(FIXTURES / "realtalk", "realtalk", home=tmp_path / "home")
    assert second.texts_embedded == 0
    assert second.rows == first.rows


def test_problems_are_reported(tmp_path: Path) -> None:
    """A file that cannot be read is named in the report and the others are measured."""
    shutil.copytree(FIXTURES / "realtalk", tmp_path / "chats")
    (tmp_path / "chats" / "Chat_9_broken.json").write_text("{")
    report = run(tmp_path / "chats", "realtalk")
    assert [Path(problem.path).name for problem in report.problems][:1] == ["Chat_9_broken.json"]
    assert report.chats == 1


def test_nothing_to_measure_is_an_error(tmp_path: Path) -> None:
    """A path without any conversation of the format raises, and so does an unknown format."""
    with pytest.raises(UnknownFormat):
        run(FIXTURES / "beam", "longmemeval")
    with pytest.raises(InvalidInput):
        run(FIXTURES / "beam", "chats")
    with pytest.raises(InvalidInput):
        run(tmp_path / "nowhere", "beam")


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m bench conversations PATH` shows the rows, and with --json the same as values."""
    words = ["conversations", str(FIXTURES / "realtalk"), "--format", "realtalk"]
    words += ["--embedder", "hashing"]
    assert main(words) == 0
    assert "full ranking" in capsys.readouterr().out
    assert main([*words, "--chats", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chats"] == 1


def test_mistakes_of_the_command_are_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A path that is not there gives an exit code and one line that names it."""
    assert main(["conversations", "/no/such", "--format", "realtalk"]) == 2
    said = capsys.readouterr()
    assert said.err.strip().startswith("anaphora: ")
    assert "/no/such" in said.err
    assert is_one_mistake(said.err)
    with pytest.raises(SystemExit):
        main(["--only", "speed"])
    assert "--data" in capsys.readouterr().err
