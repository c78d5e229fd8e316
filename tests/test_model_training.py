"""What an embedder is trained on: who is left out, what counts against a question, and what not."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus.reading import read_story
from corpus.written import ROOT as CORPUS
from corpus.written import read_groups
from tools.models import e5
from tools.models.batches import Drawing, draw_steps, held_apart
from tools.models.examples import LONG, Example, read_examples, write_lines
from tools.models.history import read_export, story_of
from tools.models.measured_sets import measured_sets
from tools.models.negatives import make_examples
from tools.models.pairs import read_pairs
from tools.models.passages import Turn, form_passages
from tools.models.prepare import main as prepare
from tools.models.prepare import trained_authors
from tools.models.stories import joined, pools_of, read_corpus, told_twice
from tools.models.styles import restyle
from tools.models.teacher import label_line, read_labels
from tools.models.translations import draw_texts, english_texts, read_translations
from tools.models.written import read_asked, read_past, read_replies, read_statements

from anaphora import Memory, NewTurn
from anaphora.testing import WordHashingEmbedder

STORY: dict[str, Any] = {
    "id": "mill",
    "lang": "en",
    "sessions": [
        {
            "id": "s1",
            "when": "2024-03-04T07:41:00Z",
            "turns": [
                {"role": "user", "speaker": "Enora", "text": "The key hangs in the eel trap."},
                {"role": "user", "speaker": "Riwal", "text": "Ice on the footbridge, mind."},
            ],
        },
        {
            "id": "s2",
            "when": "2024-06-03T08:05:00Z",
            "turns": [
                {"role": "user", "speaker": "Enora", "text": "It lives with Bescond now."},
                {"role": "user", "speaker": "Riwal", "text": "Bescond has it, noted."},
                {"role": "user", "speaker": "Riwal", "text": "The goose bites."},
            ],
        },
    ],
    "facts": [
        {"when": "2024-03-04T08:00:00Z", "text": "The key is in the eel trap.", "type": "semantic"},
        {"when": "2024-06-03T09:00:00Z", "text": "Bescond keeps the key.", "type": "semantic"},
        {"when": "2024-06-03T09:00:00Z", "text": "There is a goose.", "type": "semantic"},
    ],
    "questions": [
        {
            "q": "Who do we ask to get into the hut?",
            "kind": "current",
            "now": "2024-09-01T00:00:00Z",
            "answer": ["bescond"],
            "stale": ["eel trap"],
            "evidence": [["s2", 0], ["s2", 1]],
            "facts": [1],
        },
        {"q": "Who sells eels?", "kind": "absent", "now": "2024-09-01T00:00:00Z", "answer": []},
    ],
}


def _examples(form: str = "text") -> list[Example]:
    return list(make_examples(pools_of(STORY, "corpus", form, "a01"), WordHashingEmbedder()))


def test_a_question_is_asked_of_turns_and_of_facts() -> None:
    turns, facts = _examples()
    assert turns.positives == ("It lives with Bescond now.", "Bescond has it, noted.")
    assert facts.positives == ("Bescond keeps the key.",)
    assert set(turns.negatives) == {"Ice on the footbridge, mind.", "The goose bites."}
    assert facts.negatives == ("There is a goose.",)


def test_an_outdated_value_is_neither_right_nor_wrong() -> None:
    turns, facts = _examples()
    assert "The key hangs in the eel trap." in turns.neutral
    assert "The key is in the eel trap." in facts.neutral
    assert "Bescond keeps the key." in turns.neutral


def test_a_fact_is_drawn_to_the_turns_that_tell_the_same() -> None:
    of_turns, of_facts = pools_of(STORY, "corpus", "text", "a01")
    (told,) = make_examples([told_twice(of_turns, of_facts)], WordHashingEmbedder())
    assert told.query == "Bescond keeps the key."
    assert told.positives == ("It lives with Bescond now.", "Bescond has it, noted.")
    assert told.neutral == ("The key hangs in the eel trap.",)


def test_turns_together_are_asked_like_each_of_them() -> None:
    of_turns, _ = pools_of(STORY, "corpus", "text", "a01")
    (asked,) = make_examples([joined(of_turns)], WordHashingEmbedder())
    assert asked.lane == LONG
    assert asked.positives == (" ".join(of_turns.passages),)
    assert asked.neutral == ("Bescond keeps the key.",)


def test_what_was_written_to_mislead_comes_first(tmp_path: Path) -> None:
    """Each wording of a pair is a question; the other pairs of its lane mislead after its own."""
    pairs = [
        {
            "lane": "fact",
            "language": "en",
            "answer": f"{name} eats no nuts.",
            "question": "what must I not cook",
            "also": ["allergies", "food to leave out"],
            "misleading": [f"{name} cooks on Mondays.", f"What must {name} cook?"],
        }
        for name in ("Riwal", "Enora")
    ]
    text = "\n".join(map(json.dumps, pairs))
    (tmp_path / "home-1.jsonl").write_text(text, "utf-8")
    examples = list(make_examples(read_pairs(tmp_path), WordHashingEmbedder()))
    assert [one.query for one in examples[:3]] == [pairs[0]["question"], *pairs[0]["also"]]
    assert len(examples) == 6
    for one in examples:
        pair = pairs[one.positives == ("Enora eats no nuts.",)]
        assert one.negatives[:2] == tuple(pair["misleading"])
        assert len(one.negatives) == 5


def test_passages_are_the_words_alone_unless_asked_otherwise() -> None:
    turns = [Turn("Enora", "Do you mind?"), Turn(None, "Minded.")]
    assert form_passages(turns, "text") == ["Do you mind?", "Minded."]
    assert form_passages(turns, "speaker") == ["Enora: Do you mind?", "Minded."]
    assert form_passages(turns, "before")[1] == "Minded\n(before: Enora: Do you mind?)"


def test_a_question_in_other_styles_is_the_same_in_every_run() -> None:
    styles = dict(restyle("Which day do we roll out the release?", "key"))
    assert styles == dict(restyle("Which day do we roll out the release?", "key"))
    assert styles["written"] == "Which day do we roll out the release?"
    assert styles["lower"] == "which day do we roll out the release"
    assert styles["short"] == "which day we roll out release"
    assert styles["typo"] not in {styles["lower"], styles["written"]}
    assert dict(restyle("鍵はどこ?", "key", "ja")) == {"written": "鍵はどこ?", "lower": "鍵はどこ"}


def _corpus(folder: Path, authors: Sequence[str]) -> Path:
    for author in authors:
        file = folder / "stories" / author / "mill.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(STORY), "utf-8")
    split = {"train": authors[:-1], "held_out": authors[-1:]}
    (folder / "split.json").write_text(json.dumps(split), "utf-8")
    return folder


def test_authors_who_are_held_out_are_not_trained_on(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path, ["a01", "a02", "a03"])
    assert trained_authors(corpus, frozenset()) == {"a01", "a02"}
    trained = trained_authors(corpus, frozenset({"a02"}))
    assert {pool.author for pool in read_corpus(corpus, trained, "text")} == {"a01"}


def test_leaving_out_nobody_who_exists_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="a09"):
        trained_authors(_corpus(tmp_path, ["a01", "a02"]), frozenset({"a09"}))


def _numbered(count: int) -> list[Example]:
    return [
        Example(
            key=f"k{number}",
            source="corpus",
            lane="turns",
            group=f"g{number // 2}",
            queries=(("written", f"Q{number}?"), ("lower", f"q{number}")),
            positives=(f"right {number}",),
            negatives=tuple(f"wrong {number} {place}" for place in range(5)),
        )
        for number in range(count)
    ]


def test_steps_depend_on_the_seed_alone() -> None:
    drawing = Drawing({"corpus": 1.5}, size=4)
    steps = list(islice(draw_steps(_numbered(20), drawing), 12))
    again = islice(draw_steps(_numbered(20), drawing), 6, 12)
    assert steps[6:] == list(again)
    assert all(len(step) == 4 for step in steps)


def test_what_answers_a_question_is_never_held_against_it() -> None:
    drawn = next(draw_steps(_numbered(4), Drawing({}, size=4, negatives=1)))
    passages = [one.positive for one in drawn] + [n for one in drawn for n in one.negatives]
    apart = held_apart(drawn, passages)
    for place, one in enumerate(drawn):
        assert not apart[place][place]
        told = [text for text, kept in zip(passages, apart[place], strict=True) if kept]
        # The other question of its group has its answer there, which may be one to it as well.
        assert told == [
            other.positive
            for other in drawn
            if other is not one and other.example.group == one.example.group
        ]


def test_examples_and_scores_are_read_as_they_were_written(tmp_path: Path) -> None:
    examples = _examples()
    assert write_lines(tmp_path / "examples.jsonl", examples) == len(examples)
    assert list(read_examples(tmp_path / "examples.jsonl")) == examples
    (tmp_path / "scores.jsonl").write_text(label_line("k", ["a", "b"], [0.5, 0.25]), "utf-8")
    teacher = read_labels(tmp_path / "scores.jsonl")
    assert teacher.labels("k", ["b", "a"]) == [0.25, 0.5]
    assert teacher.labels("k", ["a", "never scored"]) is None


def test_labels_and_an_export_are_a_story(tmp_path: Path) -> None:
    """Ids as they are shown name turns and memories; the form is that of the corpus."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        thread = memory.conversations.extend(
            "plans-2024-kiln",
            [
                NewTurn("user", "The kiln key hangs by the door.", speaker="Enora"),
                NewTurn("assistant", "Noted."),
                NewTurn("user", "Riwal has it now.", speaker="Enora"),
            ],
        )
        assert thread
        kept = memory.remember("Riwal keeps the kiln key.")
        memory.export(tmp_path / "history.jsonl")
    histories, now = read_export(tmp_path / "history.jsonl")
    labels = [
        {
            "q": "who opens up",
            "answers": ["24-kiln#2", kept.id[-8:]],
            "outdated": ["24-kiln#0"],
        },
        {"q": "who sells eels", "answers": []},
    ]
    story = story_of("ours", histories["default"], labels, now, "en")
    file = tmp_path / "ours" / "default.json"
    file.parent.mkdir()
    file.write_text(json.dumps(story), "utf-8")
    asked, absent = read_story(file).questions
    assert (asked.evidence, asked.facts) == ((("plans-2024-kiln", 2),), (("", 0),))
    assert absent.kind == "absent"
    turns, facts = make_examples(pools_of(story, "corpus", "text", "ours"), WordHashingEmbedder())
    assert (turns.positives, turns.negatives) == (("Riwal has it now.",), ("Noted.",))
    assert "The kiln key hangs by the door." in turns.neutral
    assert facts.positives == ("Riwal keeps the kiln key.",)
    with pytest.raises(SystemExit, match="24-kiln#7: 0 such turns"):
        story_of("ours", histories["default"], [{"q": "?", "answers": ["24-kiln#7"]}], now, "en")


def test_half_an_export_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text('{"anaphora":"export","version":1,"created":"2024-03-04T07:41:00Z"}\n', "utf-8")
    with pytest.raises(SystemExit, match="no whole export"):
        read_export(file)


def test_a_corpus_is_enough(tmp_path: Path) -> None:
    """Without the public sets, what is there is prepared and measured."""
    corpus = _corpus(tmp_path, ["a01", "a02"])
    prepare(
        ["--corpus", str(corpus), "--out", str(tmp_path / "out"), "--without", "code,documents"]
    )
    assert {one.source for one in read_examples(tmp_path / "out" / "examples.jsonl")} == {
        "corpus",
        "told",
        "long",
    }
    assert [one.name for one in measured_sets(None, corpus, "text")] == [
        "corpus",
        "code",
        "documents",
    ]


def test_what_hands_wrote_is_asked_by_language() -> None:
    """Questions over an author's stories say in which language they are asked, and of which."""
    pools = list(read_asked(CORPUS, {"b01"}, "text"))
    assert {pool.author for pool in pools} == {"b01"}
    assert {"de", "fr", "nl", "en of de", "en of fr", "en of nl"} <= {
        pool.language for pool in pools
    }
    keys = [one.key for pool in pools for one in pool.asked]
    assert len(set(keys)) == len(keys) > 0
    (first, *_) = (pool for pool in pools if pool.asked and pool.asked[0].misleading)
    (example, *_) = make_examples([first], WordHashingEmbedder())
    misleading = [first.passages[place] for place in first.asked[0].misleading]
    assert list(example.negatives[: len(misleading)]) == misleading
    assert example.language == first.language


def test_values_of_a_chain_do_not_count_against_each_other() -> None:
    """Only times tell the former value from the present one."""
    for pool in read_past(CORPUS / "past"):
        assert not any(one.misleading for one in pool.asked)
        assert all(one.neutral.isdisjoint(one.positives) for one in pool.asked)
    (pool, *_) = read_replies(CORPUS / "exchanges")
    (one, *_) = pool.asked
    (place,) = one.positives
    assert all(text in pool.passages[place] for text in pool.passages[place].split(" \u2014 "))
    assert one.misleading
    assert one.neutral


def test_an_earlier_statement_finds_what_replaces_it() -> None:
    (pool, *_) = read_statements(CORPUS / "groups")
    (group, *_) = read_groups()
    (one,) = pool.asked
    assert one.query == group.older.text
    labels = [later.label for later in group.newer]
    assert {labels[place] for place in one.positives} <= {"replaces", "same"}
    assert {labels[place] for place in one.misleading} == {"other"}


def test_texts_of_other_languages_are_read_by_another_model() -> None:
    """Which passages mislead is asked of the model that reads the pool's language."""

    class Other(WordHashingEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            asked.extend(texts)
            return super().embed(texts)

    asked: list[str] = []
    german = replace(next(pools_of(STORY, "corpus", "text", "b01")), language="de")
    english = next(pools_of(STORY, "corpus", "text", "a01"))
    pools = [english, german]
    examples = list(make_examples(pools, WordHashingEmbedder(), others=Other()))
    assert [one.language for one in examples] == ["en", "de"]
    assert set(german.passages) <= set(asked)
    assert len(asked) == len(german.passages) + len(german.asked)


@pytest.mark.parametrize(
    ("language", "english"),
    [("en", ["who", "it"]), ("de", []), ("en of de", ["who"]), ("de of en", ["it"])],
)
def test_english_texts_are_those_that_the_english_network_reads(
    language: str, english: list[str]
) -> None:
    example = Example(
        "k", "asked", "facts", "g", (("written", "who"),), ("it is",), (), (), language
    )
    assert list(english_texts(example, 2)) == english


def test_translations_are_read_and_drawn(tmp_path: Path) -> None:
    """Each text stands beside the English one; steps depend on the seed alone."""
    row = {"en": "who has the key", "de": "wer hat den Schlüssel", "ja": "鍵は誰が持ってる"}
    (tmp_path / "t01.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    pairs = list(read_translations(tmp_path / "t01.jsonl"))
    assert pairs == [(row["de"], row["en"]), (row["ja"], row["en"])]
    drawn = [list(islice(draw_texts(pairs * 4, 3, "1"), 6)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert {len(batch) for batch in drawn[0]} == {3}


def test_a_packed_network_is_read(tmp_path: Path) -> None:
    """Blocks of 4 bits become numbers; a cut vocabulary reads what it has as the whole one does."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", "key", "s", "\u2581key"]
    blob = "".join(pieces).encode()
    ends = [len("".join(pieces[:at]).encode()) for at in range(len(pieces) + 1)]
    scores = [0.0, 0, 0, 0, -3, -4, -5, -2]
    width, tensors = 32, {}
    scale, pairs = np.float16(0.5).tobytes(), bytes([0x9 | 0x7 << 4] * 16)
    tensors["emb.word"] = (len(pieces) * width, (scale + pairs) * len(pieces))
    tensors["emb.pos"] = (2 * width, np.ones(2 * width, "<f4").tobytes())
    tensors["emb.type"] = (width, np.zeros(width, "<f4").tobytes())
    head = b"E5S1" + struct.pack("<i7ifi", 1, width, 0, 1, 1, len(pieces), 2, 1, 1e-12, 32)
    head += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, len(blob))
    head += np.array(ends, "<u4").tobytes() + np.array(scores, "<f4").tobytes() + blob
    head += struct.pack("<iI", 0, 0)
    size = len(head) + 4 + sum(2 + len(name) + 21 for name in tensors)
    listed, content = struct.pack("<i", len(tensors)), b""
    for name, (count, raw) in tensors.items():
        listed += struct.pack("<H", len(name)) + name.encode()
        listed += struct.pack("<BIQQ", 0, count, size + len(content), len(raw))
        content += raw
    (tmp_path / "packed.bin").write_bytes(head + listed + content)
    packed = e5.read_packed(tmp_path / "packed.bin")
    assert packed.pieces == tuple(pieces)
    assert packed.tensors["emb.word"][5].tolist() == [0.5] * 16 + [-0.5] * 16
    assert packed.tensors["emb.pos"].shape == (2, width)
    whole = e5.make_tokenizer(packed, range(len(pieces)))
    cut = e5.make_tokenizer(packed, [0, 1, 2, 3, 4, 5, 6])
    assert whole.encode("keys").tokens == ["<s>", "\u2581key", "s", "</s>"]
    assert cut.encode("keys").tokens == ["<s>", "\u2581", "key", "s", "</s>"]
    assert whole.encode("a  key\n").ids == [0, 4, 3, 7, 4, 2]
