"""What a reader is trained on: who is left out, and which verdict a statement gets."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.embedder import KeptEmbedder
from tools.models.teacher import SOFT_FILE, label_line, read_labels
from tools.reader.batches import ABOUT, ANSWERS, NOT, UNCLEAR, Drawing, draw_steps
from tools.reader.examples import AnswerExample, ChangeExample, read_answers, read_changes
from tools.reader.measured import judged_sets
from tools.reader.mining import answer_examples
from tools.reader.pairs import story_pairs, written_pairs
from tools.reader.prepare import main as prepare
from tools.reader.scores import (
    average_precision,
    order_of,
    recall_at,
    reliability,
    silent_share,
    told_apart,
)
from tools.reader.sources import chat_statements
from tools.reader.statements import cut_statement, judged_story

from anaphora.reading.inputs import (
    CANDIDATE_PIECES,
    QUESTION_PIECES,
    STATEMENT_PIECES,
    WINDOW,
    Inputs,
    by_length,
    padded,
)
from anaphora.reading.model import log_odds, probability
from anaphora.testing import WordHashingEmbedder


def _turn(speaker: str, text: str) -> dict[str, str]:
    return {"role": "user", "speaker": speaker, "text": text}


STORY: dict[str, Any] = {
    "id": "mill",
    "lang": "en",
    "sessions": [
        {
            "id": "s1",
            "when": "2024-03-04T07:41:00Z",
            "turns": [
                _turn("Enora", "The key hangs in the eel trap."),
                _turn("Riwal", "Ice on the footbridge, mind."),
                _turn("Riwal", "I bring bread on Mondays."),
            ],
        },
        {
            "id": "s2",
            "when": "2024-06-03T08:05:00Z",
            "turns": [
                _turn("Enora", "It lives with Bescond now."),
                _turn("Riwal", "Which shelf?"),
                _turn("Riwal", "The goose bites."),
            ],
        },
        {
            "id": "s3",
            "when": "2024-07-01T08:05:00Z",
            "turns": [
                _turn("Enora", "Asked Bescond to open up."),
                _turn("Riwal", "And eggs on Fridays."),
                _turn("Riwal", "The weir is dry."),
            ],
        },
    ],
    "facts": [
        {"when": "2024-03-04T08:00:00Z", "text": "The key is in the eel trap.", "type": "semantic"},
        {"when": "2024-06-03T09:00:00Z", "text": "Bescond keeps the key.", "type": "semantic"},
        {"when": "2024-06-04T09:00:00Z", "text": "There is a goose.", "type": "semantic"},
    ],
    "changes": [
        {"lane": "turns", "older": ["s1", 0], "newer": ["s2", 0], "relation": "replaces"},
        {"lane": "turns", "older": ["s2", 0], "newer": ["s3", 0], "relation": "same"},
        {"lane": "turns", "older": ["s1", 2], "newer": ["s3", 1], "relation": "both"},
        {"lane": "facts", "older": 0, "newer": 1, "relation": "replaces"},
    ],
    "questions": [
        {
            "q": "Who do we ask to get into the hut?",
            "kind": "current",
            "now": "2024-09-01T00:00:00Z",
            "answer": ["lives with bescond", "bescond keeps"],
            "stale": ["eel trap"],
            "evidence": [["s2", 0]],
            "facts": [1],
        },
        {
            "q": "Who sells eels?",
            "kind": "absent",
            "now": "2024-09-01T00:00:00Z",
            "answer": [],
            "stale": [],
            "evidence": [],
            "facts": [],
        },
        {
            "q": "How heavy is the goose?",
            "kind": "absent",
            "near": True,
            "now": "2024-09-01T00:00:00Z",
            "answer": [],
            "stale": [],
            "evidence": [],
            "facts": [],
        },
    ],
}


def _vectors() -> KeptEmbedder:
    return KeptEmbedder(WordHashingEmbedder())


def _examples() -> dict[str, AnswerExample]:
    found = answer_examples(judged_story(STORY, "corpus", "a01"), _vectors())
    return {one.key.removeprefix("corpus/a01/mill/"): one for one in found}


def _pairs(seed: int = 1) -> list[ChangeExample]:
    return list(story_pairs(STORY, "corpus", "a01", _vectors(), seed=seed))


def _corpus(folder: Path, authors: Sequence[str]) -> Path:
    """The last author is held out."""
    for author in authors:
        story = copy.deepcopy(STORY)
        for session in story["sessions"]:
            for turn in session["turns"]:
                turn["speaker"] = f"{turn['speaker']} of {author}"
        file = folder / "stories" / author / "mill.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(story), "utf-8")
    split = {"train": authors[:-1], "held_out": authors[-1:]}
    (folder / "split.json").write_text(json.dumps(split), "utf-8")
    return folder


def test_an_outdated_value_is_about_the_question() -> None:
    turns, facts = _examples()["0/t"], _examples()["0/f"]
    assert turns.answers == ("Enora: It lives with Bescond now.",)
    assert turns.about == ("Enora: The key hangs in the eel trap.",)
    assert facts.answers == ("Bescond keeps the key.",)
    assert facts.about == ("The key is in the eel trap.",)
    assert facts.others == ("There is a goose.",)


def test_a_repetition_is_shown_with_no_verdict() -> None:
    """It may be an answer that nobody labelled."""
    turns = _examples()["0/t"]
    shown = (*turns.answers, *turns.about, *turns.others, *turns.unclear)
    assert not [text for text in shown if text.startswith("Enora: Asked Bescond")]


def test_what_stands_beside_an_answer_may_be_about_it() -> None:
    turns = _examples()["0/t"]
    assert turns.unclear == ("Riwal: Which shelf",)
    assert any(text.startswith("Riwal: The goose bites") for text in turns.others)


def test_the_turn_before_is_one_of_the_same_session() -> None:
    pool = next(judged_story(STORY, "corpus", "a01"))
    assert pool.told[3] == "Enora: It lives with Bescond now."
    assert pool.told[5] == "Riwal: The goose bites\n(before: Riwal: Which shelf?)"
    dated = next(judged_story(STORY, "corpus", "a01", dated=True))
    assert dated.told[3] == "3 June 2024, Enora: It lives with Bescond now"


def test_what_was_never_said_has_no_answers() -> None:
    examples = _examples()
    silent, near = examples["1/t"], examples["2/t"]
    assert (silent.answers, silent.about, silent.unclear) == ((), (), ())
    assert len(silent.others) == 9
    assert near.answers == near.about == ()
    # The goose was spoken of, but nobody weighed it.
    assert any("goose" in text for text in near.unclear)
    assert len(near.unclear) == 3


def test_what_the_product_brought_is_mistaken_first() -> None:
    pools = judged_story(STORY, "corpus", "a01")
    brought = {"corpus/a01/mill/0/t": ["It lives with Bescond now.", "The weir is dry."]}
    turns = next(answer_examples(pools, _vectors(), brought))
    assert turns.others[0].startswith("Riwal: The weir is dry")


def test_a_labelled_pair_replaces_or_holds() -> None:
    question = ("Who do we ask to get into the hut?",)
    found = {(one.older, one.newer): one for one in _pairs() if one.verdict != "other"}
    replaced = found["Enora: The key hangs in the eel trap.", "Enora: It lives with Bescond now."]
    same = found["Enora: It lives with Bescond now.", "Enora: Asked Bescond to open up."]
    both = found["Riwal: I bring bread on Mondays.", "Riwal: And eggs on Fridays."]
    assert (replaced.verdict, replaced.questions) == ("replaces", question)
    assert (same.verdict, same.questions) == ("holds", question)
    assert (both.verdict, both.questions) == ("holds", ())
    facts = found["The key is in the eel trap.", "Bescond keeps the key."]
    assert (facts.lane, facts.verdict) == ("facts", "replaces")


def test_an_unrelated_pair_is_of_another_thing() -> None:
    """Neither labelled together, nor by way of a third, nor of one session."""
    unrelated = [one for one in _pairs() if one.verdict == "other" and one.lane == "turns"]
    assert unrelated
    key = {
        "Enora: The key hangs in the eel trap.",
        "Enora: It lives with Bescond now.",
        "Enora: Asked Bescond to open up.",
    }
    said = [[turn["text"] for turn in session["turns"]] for session in STORY["sessions"]]
    session_of = {text: at for at, texts in enumerate(said) for text in texts}
    for one in unrelated:
        assert not {one.older, one.newer} <= key
        older, newer = (text.split(": ", 1)[1] for text in (one.older, one.newer))
        assert session_of[older] < session_of[newer]


def test_pairs_are_drawn_from_the_seed() -> None:
    assert _pairs() == _pairs()
    assert any(_pairs() != _pairs(seed) for seed in (2, 3, 4))


def test_written_pairs_keep_who_said_them(tmp_path: Path) -> None:
    pair = {
        "lane": "turn",
        "language": "en",
        "older": "Gym is at six.",
        "newer": "Seven works better, see you then.",
        "older_by": "Oona",
        "newer_by": "",
        "question": "when do we lift",
    }
    labels = ("replaces", "holds", "other", "same")
    lines = [json.dumps({**pair, "label": label}) for label in labels]
    (tmp_path / "home-1.jsonl").write_text("\n".join(lines), "utf-8")
    found = list(written_pairs(tmp_path))
    assert [one.verdict for one in found] == ["replaces", "holds", "other", "holds"]
    assert found[0].older == "Oona: Gym is at six."
    assert found[0].newer == "Seven works better, see you then."
    assert found[0].questions == ("when do we lift",)
    assert list(written_pairs(tmp_path / "nowhere")) == []


def test_held_out_authors_are_never_read(tmp_path: Path) -> None:
    """Not even opened: a file of theirs that is no JSON disturbs nobody."""
    corpus = _corpus(tmp_path / "corpus", ["a01", "a02", "a03"])
    (corpus / "stories" / "a03" / "mill.json").write_text("never read", "utf-8")
    prepare(["--corpus", str(corpus), "--out", str(tmp_path / "out"), "--hashing"])
    answers = (tmp_path / "out" / "answers.jsonl").read_text("utf-8")
    changes = (tmp_path / "out" / "changes.jsonl").read_text("utf-8")
    for written in (answers, changes):
        assert "of a01" in written
        assert "of a02" in written
        assert "a03" not in written
    about = json.loads((tmp_path / "out" / "prepared.json").read_text("utf-8"))
    assert about["authors"] == ["a01", "a02"]
    assert about["questions"]["corpus turns never said"] == 4
    with pytest.raises(SystemExit, match="a09"):
        prepare(["--corpus", str(corpus), "--out", str(tmp_path), "--leave-out", "a09"])


def test_every_other_story_of_changes_is_kept_back(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path / "corpus", ["a01", "a02"])
    stories = []
    for number in range(4):
        story = copy.deepcopy(STORY)
        del story["changes"]
        story["id"] = f"story{number}"
        stories.append(story)
    for name in ("changes", "reading"):
        (tmp_path / "data" / name).mkdir(parents=True)
    (tmp_path / "data" / "changes" / "dev.json").write_text(json.dumps(stories), "utf-8")
    words = ["--corpus", str(corpus), "--data", str(tmp_path / "data"), "--hashing"]
    prepare([*words, "--without", "public,corpus", "--out", str(tmp_path / "out")])
    trained = {one.group for one in read_answers(tmp_path / "out")}
    assert trained == {"changes/story0", "changes/story2"}
    sets = {one.name: one for one in judged_sets(tmp_path / "data", corpus)}
    measured = {pool.group for pool in sets["changes, second half"].read()}
    assert measured == {"changes/story1", "changes/story3"}
    assert {pool.author for pool in sets["corpus"].read()} == {"a02"}
    assert not {"realtalk 6 to 10", "beam 6 to 10"} & set(sets)


def test_the_same_is_prepared_again(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path / "corpus", ["a01", "a02"])
    for out in ("one", "two"):
        prepare(["--corpus", str(corpus), "--out", str(tmp_path / out), "--hashing"])
    for file in ("answers.jsonl", "changes.jsonl"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert len(list(read_changes(tmp_path / "one"))) == len(_pairs())


def test_steps_depend_on_the_seed_alone() -> None:
    answers, changes = list(_examples().values()), _pairs()
    drawing = Drawing({"corpus": 1.5}, size=2, pairs=2)
    steps = list(islice(draw_steps(answers, changes, drawing), 12))
    assert steps[6:] == list(islice(draw_steps(answers, changes, drawing), 6, 12))
    assert all(len(asked) == len(paired) == 2 for asked, paired in steps)
    alone = next(draw_steps(answers, [], drawing))
    assert alone[1] == []


def test_an_answer_stands_first_and_once() -> None:
    drawing = Drawing({}, size=2, about=1.0, unclear=1.0, candidates=4)
    for asked, _ in islice(draw_steps(list(_examples().values()), _pairs(), drawing), 20):
        for one in asked:
            known = _examples()[one.key.removeprefix("corpus/a01/mill/")]
            assert one.answered == bool(known.answers)
            assert one.labels.count(ANSWERS) == one.answered
            assert len(one.statements) <= 4
            of_label = {
                ANSWERS: known.answers,
                ABOUT: known.about,
                NOT: known.others,
                UNCLEAR: known.unclear,
            }
            for text, label in zip(one.statements, one.labels, strict=True):
                assert text in of_label[label]


def test_inputs_are_cut_and_padded() -> None:
    inputs = Inputs()
    long = "goose " * 300
    answer, change = inputs.answer(long, long), inputs.change(long, long, long)
    assert len(answer) == QUESTION_PIECES + CANDIDATE_PIECES + 3
    assert len(change) == QUESTION_PIECES + 2 * STATEMENT_PIECES + 4 == WINDOW
    assert (answer.second, change.second) == (CANDIDATE_PIECES + 1, STATEMENT_PIECES + 1)
    short = inputs.change("", "a goose", "no goose")
    assert short.ids[:2] == (101, 102)
    ids, mask, types = padded([answer, short])
    assert ids.shape == mask.shape == types.shape == (2, len(answer))
    assert mask[1].sum() == len(short)
    # The later statement and what ends it, and no padding.
    assert types[1].tolist() == [0] * 5 + [1] * 3 + [0] * (len(answer) - 8)
    assert list(by_length([answer, short, change], 2)) == [[1, 0], [2]]


def test_scores_of_order_and_silence() -> None:
    order = order_of([1, 2, 4, 20])
    assert (order.first, order.three, order.ten) == (0.25, 0.5, 0.75)
    assert order.mrr == pytest.approx((1 + 0.5 + 0.25 + 0.05) / 4)
    asked, silent = np.array([0.9, 0.5, 0.4, 0.4]), np.array([0.1, 0.4])
    assert told_apart(asked, silent) == pytest.approx((4 + 2 + 1) / 8)
    assert silent_share(asked, silent) == 0.5
    assert silent_share(asked, silent, lost=0.5) == 1.0
    assert np.isnan(told_apart(asked, np.array([])))


def test_scores_of_classes_and_calibration() -> None:
    odds = log_odds(np.log(np.array([[0.5, 0.25, 0.25], [0.8, 0.1, 0.1]])))
    assert probability(odds).tolist() == pytest.approx([0.5, 0.8])
    scores, right = np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, False, True, False])
    assert average_precision(scores, right) == pytest.approx((1 + 2 / 3) / 2)
    assert recall_at(scores, right, 0.9) == (0.5, 0.9)
    assert recall_at(scores, ~right, 0.9) == (0.0, float("inf"))
    deciles, error = reliability(scores, right)
    assert [one.count for one in deciles] == [1, 1, 1, 1]
    assert error == pytest.approx((0.1 + 0.8 + 0.3 + 0.1) / 4)


def test_a_long_statement_is_cut_around_the_question() -> None:
    """Its head and the turn before stay; a short one is read whole."""
    filler = "The committee talked about parking for a long while. " * 12
    told = f"4 March 2024, Ann: {filler}The boiler code is 4711. {filler}\n(before: Bo: And?)"
    cut = cut_statement("which code does the boiler have?", told)
    assert cut.startswith("4 March 2024, Ann: ")
    assert "The boiler code is 4711." in cut
    assert cut.endswith("(before: Bo: And?)")
    assert len(cut) < len(told) / 2
    assert cut_statement("which code?", "The code is 4711.") == "The code is 4711."


def test_soft_labels_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A text without a label leaves its example without any."""
    path = tmp_path / SOFT_FILE
    path.write_text(label_line("k", ["a", "b"], [[-0.1, -2.5, -4.0], [-3.0, -0.2, -1.5]]))
    labels = read_labels(path)
    assert labels.labels("k", ["b", "a"]) == [[-3.0, -0.2, -1.5], [-0.1, -2.5, -4.0]]
    assert labels.labels("k", ["a", "c"]) is None
    assert labels.labels("other", ["a"]) is None


def test_chats_come_with_what_was_never_said(tmp_path: Path) -> None:
    """Of a list of facts, what is near to a question without an answer is about it."""
    folder = tmp_path / "silent"
    folder.mkdir()
    asked = [
        {"q": "Where does Ann live?", "also": [], "evidence": [0], "near": [1]},
        {"q": "Where does Bo work?", "also": [], "evidence": [], "near": [1]},
    ]
    told = {"language": "en", "facts": ["Ann lives in Riga.", "Bo lives in Bern."]}
    (folder / "s.json").write_text(json.dumps({**told, "questions": asked}))
    (pool,) = chat_statements(tmp_path)
    answered, silent = pool.asked
    assert (answered.answers, answered.about) == (frozenset({0}), frozenset({1}))
    assert (silent.answers, silent.about) == (frozenset(), frozenset({1}))
