"""The readers of public sets of conversations: conversations, questions, evidence."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bench.datasets import (
    FORMATS,
    Haystack,
    Question,
    read_dataset,
)
from bench.datasets.common import read_time
from bench.datasets.dialogues import evidence_ids

from anaphora.errors import InvalidInput
from anaphora.values.conversations import ImportProblem

FIXTURES = Path(__file__).parent / "fixtures_datasets"


def haystacks(path: Path, form: str) -> list[Haystack]:
    return [h for h in read_dataset(path, form) if isinstance(h, Haystack)]


def problems(path: Path, form: str) -> list[ImportProblem]:
    return [p for p in read_dataset(path, form) if isinstance(p, ImportProblem)]


def wanted(question: Question, haystack: Haystack) -> list[str]:
    """The texts of a question's evidence, in order."""
    return [
        turn.text
        for conversation in haystack.conversations
        for turn in conversation.turns
        if (conversation.conversation_id, turn.key) in question.evidence
    ]


SPOTS = {(s, t): f"D{s}:{t}" for s in (1, 2, 12) for t in range(1, 6)}


@pytest.mark.parametrize(
    ("evidence", "expected", "unresolved"),
    [
        (["D1:3"], {"D1:3"}, 0),
        ("D1:3", {"D1:3"}, 0),
        (["D1:1", "D2:2"], {"D1:1", "D2:2"}, 0),
        (["D1:1; D2:2"], {"D1:1", "D2:2"}, 0),
        (["D1:1,D2:2"], {"D1:1", "D2:2"}, 0),
        (["D1:1 D2:2"], {"D1:1", "D2:2"}, 0),
        (["D1:1. D2:2."], {"D1:1", "D2:2"}, 0),
        (["D1:4:D12:1"], {"D1:4", "D12:1"}, 0),
        (["D 1 : 3 "], {"D1:3"}, 0),
        (["d1:3"], {"D1:3"}, 0),
        (["D:1:3"], {"D1:3"}, 0),
        (["D01:03"], {"D1:3"}, 0),
        (["D12:3-D12:5"], {"D12:3", "D12:4", "D12:5"}, 0),
        (["D12:3-5"], {"D12:3", "D12:4", "D12:5"}, 0),
        (["D12:5 - D12:4"], {"D12:4", "D12:5"}, 0),
        (["D1:5-D2:1"], {"D1:5", "D2:1"}, 0),
        (["D1:1-D1:2;D12:4-D12:5"], {"D1:1", "D1:2", "D12:4", "D12:5"}, 0),
        (["D12:4-D12:9"], {"D12:4", "D12:5"}, 0),
        (["D1:1", "D9:9"], {"D1:1"}, 1),
        (["D:3"], set(), 1),
        (["D"], set(), 1),
        (["1:3"], set(), 1),
        ([""], set(), 0),
        ([], set(), 0),
        (None, set(), 0),
    ],
)
def test_evidence_is_read_as_it_is_written(
    evidence: object, expected: set[str], unresolved: int
) -> None:
    """Every spelling of evidence found in the data sets names the messages that it means."""
    assert evidence_ids(evidence, SPOTS) == (frozenset(expected), unresolved)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("29.12.2023, 22:42:04", datetime(2023, 12, 29, 22, 42, 4, tzinfo=UTC)),
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("12:09 am on 13 September, 2023", datetime(2023, 9, 13, 0, 9, tzinfo=UTC)),
        ("March-15-2024", datetime(2024, 3, 15, tzinfo=UTC)),
        ("March-05-2024", datetime(2024, 3, 5, tzinfo=UTC)),
        ("2023/05/20 (Sat) 02:21", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("2024-03-15T10:00:00Z", datetime(2024, 3, 15, 10, tzinfo=UTC)),
        ("February-30-2024", None),
        ("soon", None),
        ("", None),
        (None, None),
        (20240315, None),
    ],
)
def test_times_are_read(text: object, expected: datetime | None) -> None:
    """Each data set's spelling of a time is read, and what is none is not guessed at."""
    assert read_time(text) == expected


def test_realtalk() -> None:
    """A REALTALK chat gives its turns with speakers, times and captions, and its questions."""
    (chat,) = haystacks(FIXTURES / "realtalk", "realtalk")
    (conversation,) = chat.conversations
    assert (chat.namespace, chat.number) == ("default", 3)
    assert conversation.conversation_id == "realtalk-chat_3_ana_bo"
    assert conversation.left_out == {"blank": 1}
    assert [turn.key for turn in conversation.turns] == [
        *("D1:1", "D1:2", "D1:3", "D1:4"),
        *("D2:1", "D2:2", "D2:3", "D2:5"),
    ]
    assert [turn.parent for turn in conversation.turns][:2] == [None, "D1:1"]
    third = conversation.turns[2]
    assert third.speaker == "Ana"
    assert third.ts == datetime(2024, 2, 3, 18, 22, 11, tzinfo=UTC)
    assert third.text.endswith("see me.\n[image: a kayak on the roof of a small car]")
    colour, crack, lisbon, aquarium, boats = chat.questions
    assert wanted(colour, chat) == [third.text]
    assert len(wanted(crack, chat)) == 3
    assert (len(wanted(lisbon, chat)), lisbon.unresolved, lisbon.left_out) == (1, 1, "")
    assert aquarium.left_out == "evidence not in the data"
    assert boats.left_out == "no evidence given"
    assert colour.now == datetime(2024, 2, 11, 9, 6, tzinfo=UTC)
    assert [q.category for q in chat.questions][0::2] == [
        "1 multi-hop",
        "2 temporal",
        "3 commonsense",
    ]


def test_locomo() -> None:
    """LoCoMo samples give sessions in the order of their numbers, dated by session."""
    first, second = haystacks(FIXTURES / "locomo", "locomo")
    assert (first.number, second.number) == (1, 2)
    turns = first.conversations[0].turns
    assert [turn.key for turn in turns][3:6] == ["D2:1", "D2:2", "D10:1"]
    assert turns[0].ts == turns[1].ts == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert turns[2].text == "Comet. Here he is.\n[image: a thin dog asleep on a sofa]"
    name, cello, both, adversarial, abroad = first.questions
    assert wanted(name, first) == [turns[2].text]
    assert wanted(cello, first) == ["Started learning the cello this week."]
    assert len(wanted(both, first)) == 2
    assert wanted(adversarial, first) == ["Yes, I touched the kerb twice."]
    assert (adversarial.category, abroad.left_out) == (
        "5 adversarial",
        "evidence not in the data",
    )


def test_locomo_in_other_wrappings(tmp_path: Path) -> None:
    """One sample a file, samples by name, and samples under a key are read like a list."""
    samples = json.loads((FIXTURES / "locomo" / "two_samples.json").read_text())
    by_name = {sample.pop("sample_id"): sample for sample in json.loads(json.dumps(samples))}
    for name, value in (
        ("one", samples[0]),
        ("named", by_name),
        ("under", {"samples": samples}),
    ):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(value))
        found = haystacks(file, "locomo")
        assert [len(h.questions) for h in found] == ([5] if name == "one" else [5, 1])
        assert found[0].conversations[0].key == "conv-a"
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    assert len(haystacks(lines, "locomo")) == 2


def test_beam() -> None:
    """A BEAM chat loses its generator's marks, is dated by anchors, and its evidence is nested."""
    chat = haystacks(FIXTURES / "beam" / "1", "beam")[0]
    (conversation,) = chat.conversations
    assert chat.number == 1
    assert [turn.role for turn in conversation.turns][:2] == ["user", "assistant"]
    assert not any("->->" in turn.text for turn in conversation.turns)
    assert conversation.turns[6].text == "The release is planned for May 20, no longer May 6."
    assert conversation.turns[3].ts == datetime(2024, 3, 15, tzinfo=UTC)
    assert conversation.turns[7].ts == datetime(2024, 4, 2, tzinfo=UTC)
    by_ability = {q.category: q for q in chat.questions}
    assert by_ability["abstention"].left_out == "abstention"
    assert by_ability["preference_following"].left_out == "no evidence given"
    assert [key for _, key in by_ability["information_extraction"].evidence] == ["4"]
    assert [key for _, key in by_ability["knowledge_update"].evidence] == ["6"]
    several = by_ability["multi_session_reasoning"]
    assert sorted(key for _, key in several.evidence) == ["2", "3", "4"]
    assert by_ability["temporal_reasoning"].unresolved == 1


def test_beam_in_plans() -> None:
    """Where message numbers begin again in every plan, evidence names the plan or nothing."""
    chat = haystacks(FIXTURES / "beam", "beam")[1]
    assert chat.number == 2
    assert chat.conversations[0].left_out == {"blank": 1}
    aphids, where = chat.questions
    assert wanted(aphids, chat) == ["The beans have aphids.", "Spray them with soap water."]
    assert where.left_out == "evidence not in the data"


def test_beam_given_as_its_chat_file() -> None:
    """The path of a chat file stands for its folder."""
    chat = haystacks(FIXTURES / "beam" / "1" / "chat.json", "beam")[0]
    assert (chat.number, len(chat.questions)) == (1, 6)


def test_beam_as_rows_of_one_file(tmp_path: Path) -> None:
    """Rows that hold a chat and its questions, as a literal too, are read as chats."""
    folder = FIXTURES / "beam" / "1"
    chat = json.loads((folder / "chat.json").read_text())
    questions = json.loads((folder / "probing_questions.json").read_text())
    rows = [
        {"conversation_id": "4", "chat": chat, "probing_questions": questions},
        {"conversation_id": "5", "chat": chat[0]["turns"], "probing_questions": repr(questions)},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = haystacks(file, "beam")
    assert (first.number, second.number) == (4, 5)
    assert (len(first.conversations[0].turns), len(second.conversations[0].turns)) == (8, 4)
    assert len(first.questions) == len(second.questions) == 6


def test_files_beside_a_beam_chat_are_passed_over() -> None:
    """A file of questions or topics gives neither a conversation nor a problem."""
    questions = FIXTURES / "beam" / "1" / "probing_questions.json"
    assert list(read_dataset(questions, "beam")) == []


def test_longmemeval() -> None:
    """Each LongMemEval question is asked of all its sessions, at its own date."""
    found = haystacks(FIXTURES / "longmemeval" / "sample.json", "longmemeval")
    assert [h.number for h in found] == [1, 2, 3, 4]
    assert len({h.namespace for h in found[:3]}) == 1
    assert found[3].namespace != found[0].namespace
    walk, rest, abstains, gone = (h.questions[0] for h in found)
    assert wanted(walk, found[0]) == ["I walk my neighbour's dog Biscuit on Mondays."]
    assert rest.evidence == {("ultra_1", "")}
    assert (abstains.left_out, gone.left_out) == ("abstention", "evidence not in the data")
    assert walk.conversation_id is None
    assert walk.now == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert found[0].conversations[2].left_out == {"blank": 1}
    assert found[0].conversations[1].turns[0].ts == datetime(2023, 5, 21, 10, tzinfo=UTC)


def test_longmemeval_as_lines_and_as_one_object(tmp_path: Path) -> None:
    """JSON lines go in with their bad lines reported; a single object is one entry."""
    lines = FIXTURES / "longmemeval" / "sample.jsonl"
    assert len(haystacks(lines, "longmemeval")) == 1
    assert [p.place for p in problems(lines, "longmemeval")] == ["line 2, column 22", "entry 3"]
    entry = json.loads(lines.read_text().splitlines()[0])
    single = tmp_path / "single.json"
    single.write_text(json.dumps(entry, indent=2))
    assert haystacks(single, "longmemeval") == haystacks(lines, "longmemeval")


def test_several_questions_of_one_haystack(tmp_path: Path) -> None:
    """An entry with lists of questions gives each its own answer sessions."""
    entry = json.loads((FIXTURES / "longmemeval" / "sample.json").read_text())[0]
    entry["questions"] = [entry.pop("question"), "How long should the dough rest?"]
    entry["answer_session_ids"] = [["answer_77_1"], ["ultra_1"]]
    file = tmp_path / "several.json"
    file.write_text(json.dumps([entry]))
    (found,) = haystacks(file, "longmemeval")
    assert [q.evidence for q in found.questions] == [
        {("answer_77_1", "0")},
        {("ultra_1", "")},
    ]


def test_a_session_that_comes_twice_is_two_conversations(tmp_path: Path) -> None:
    """Two sessions of one id in a haystack stay apart."""
    entry = json.loads((FIXTURES / "longmemeval" / "sample.json").read_text())[0]
    entry["haystack_session_ids"] = ["twin", "answer_77_1", "twin"]
    file = tmp_path / "twins.json"
    file.write_text(json.dumps(entry))
    (found,) = haystacks(file, "longmemeval")
    assert [c.conversation_id for c in found.conversations] == ["twin", "answer_77_1", "twin-2"]


@pytest.mark.parametrize("form", FORMATS)
def test_keys_are_unique_and_parents_come_first(form: str) -> None:
    """Within a conversation every key is unique and every parent stands before its child."""
    for haystack in haystacks(FIXTURES / form, form):
        for found in haystack.conversations:
            keys = [turn.key for turn in found.turns]
            assert len(set(keys)) == len(keys)
            assert [turn.parent for turn in found.turns] == [None, *keys[:-1]]
            assert all(turn.text.strip() for turn in found.turns)
            assert all(turn.ts is not None for turn in found.turns)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[",
        b"[{}, ",
        b"null",
        b"[[[[[[]]]]]]",
        b"\xff\xfe",
        b'{"session_1": 3, "haystack_sessions": {"a": 1}}',
        b"[" * 100_000,
        b'["a" "b"]',
        b"1\n{\n2",
    ],
)
def test_what_cannot_be_read_is_reported(form: str, content: bytes, tmp_path: Path) -> None:
    """A file that is not of the format gives problems with a place, never an exception."""
    file = tmp_path / "chat.json"
    file.write_bytes(content)
    found = list(read_dataset(file, form))
    assert found
    assert all(isinstance(one, ImportProblem) for one in found)


def test_a_wrong_format_or_path_is_refused() -> None:
    """An unknown format and a path that does not exist raise InvalidInput."""
    with pytest.raises(InvalidInput, match="realtalk, locomo, beam, longmemeval"):
        read_dataset(FIXTURES, "chats")
    with pytest.raises(InvalidInput, match="no such file"):
        read_dataset(FIXTURES / "nowhere", "beam")


def test_shared_data_reads_whole(shared_data: Path) -> None:
    """The real data sets come out with the figures that their descriptions state."""
    talks = haystacks(shared_data / "conversations" / "realtalk", "realtalk")
    assert [h.number for h in talks] == list(range(1, 11))
    assert sum(len(h.conversations[0].turns) for h in talks) == 8944
    asked = [q for h in talks for q in h.questions]
    assert (len(asked), sum(not q.left_out for q in asked)) == (728, 706)
    beam = haystacks(shared_data / "conversations" / "beam-100k", "beam")
    questions = [q for h in beam for q in h.questions]
    assert (len(questions), sum(q.left_out == "abstention" for q in questions)) == (200, 20)
    assert all(q.unresolved == 0 for q in questions)
    fragments = haystacks(shared_data / "conversations" / "longmemeval-fragments", "longmemeval")
    assert len(fragments) == 6
    assert sum(len(h.questions) for h in fragments) == 29
