"""The readers of public sets of conversations: conversations, questions, evidence."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bench.datasets import FORMATS, Haystack, Question, read_dataset
from bench.datasets.common import read_time
from bench.datasets.dialogues import evidence_ids

from anaphora.errors import InvalidInput, UnknownFormat

FIXTURES = Path(__file__).parent / "fixtures_datasets"


def haystacks(path: Path, form: str) -> list[Haystack]:
    return list(read_dataset(path, form))


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
    ("evidence", "expected"),
    [
        (["D1:3"], {"D1:3"}),
        (["D1:1", "D2:2"], {"D1:1", "D2:2"}),
        (["D1:1; D2:2"], {"D1:1", "D2:2"}),
        (["D1:1,D2:2"], {"D1:1", "D2:2"}),
        (["D1:1 D2:2"], {"D1:1", "D2:2"}),
        (["D1:1. D2:2."], {"D1:1", "D2:2"}),
        (["D1:4:D12:1"], {"D1:4", "D12:1"}),
        (["D 1 : 3 "], {"D1:3"}),
        (["d1:3"], {"D1:3"}),
        (["D:1:3"], {"D1:3"}),
        (["D01:03"], {"D1:3"}),
        (["D12:3-D12:5"], {"D12:3", "D12:4", "D12:5"}),
        (["D12:3-5"], {"D12:3", "D12:4", "D12:5"}),
        (["D12:5 - D12:4"], {"D12:4", "D12:5"}),
        (["D1:5-D2:1"], {"D1:5", "D2:1"}),
        (["D1:1-D1:2;D12:4-D12:5"], {"D1:1", "D1:2", "D12:4", "D12:5"}),
        (["D12:4-D12:9"], {"D12:4", "D12:5"}),
        (["D1:1", "D9:9"], {"D1:1"}),
        (["D:3"], set()),
        (["D"], set()),
        (["1:3"], set()),
        ([""], set()),
        ([], set()),
    ],
)
def test_evidence_is_read_as_it_is_written(evidence: list[str], expected: set[str]) -> None:
    """Every spelling of evidence found in the data sets names the messages that it means."""
    assert evidence_ids(evidence, SPOTS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("29.12.2023, 22:42:04", datetime(2023, 12, 29, 22, 42, 4, tzinfo=UTC)),
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("12:09 am on 13 September, 2023", datetime(2023, 9, 13, 0, 9, tzinfo=UTC)),
        ("March-15-2024", datetime(2024, 3, 15, tzinfo=UTC)),
        ("March-05-2024", datetime(2024, 3, 5, tzinfo=UTC)),
        ("2023/05/20 (Sat) 02:21", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("February-30-2024", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_times_are_read(text: str | None, expected: datetime | None) -> None:
    """Each data set's spelling of a time is read, and what is none is not guessed at."""
    assert read_time(text) == expected


def test_realtalk() -> None:
    """A REALTALK chat gives its turns with speakers, times and captions, and its questions."""
    (chat,) = haystacks(FIXTURES / "realtalk", "realtalk")
    (conversation,) = chat.conversations
    assert (chat.namespace, chat.number) == ("default", 3)
    assert conversation.conversation_id == "realtalk-chat_3_ana_bo"
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
    assert len(wanted(lisbon, chat)) == 1
    assert not aquarium.evidence | boats.evidence
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
    assert adversarial.category == "5 adversarial"
    assert not abroad.evidence


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
    assert not by_ability["abstention"].evidence
    assert not by_ability["preference_following"].evidence
    assert [key for _, key in by_ability["information_extraction"].evidence] == ["4"]
    assert [key for _, key in by_ability["knowledge_update"].evidence] == ["6"]
    several = by_ability["multi_session_reasoning"]
    assert sorted(key for _, key in several.evidence) == ["2", "3", "4"]


def test_beam_given_as_its_chat_file() -> None:
    """The path of a chat file stands for its folder."""
    chat = haystacks(FIXTURES / "beam" / "1" / "chat.json", "beam")[0]
    assert (chat.number, len(chat.questions)) == (1, 6)


def test_longmemeval() -> None:
    """Each LongMemEval question is asked of all its sessions, at its own date."""
    found = haystacks(FIXTURES / "longmemeval" / "sample.json", "longmemeval")
    assert [h.number for h in found] == [1, 2, 3, 4]
    assert len({h.namespace for h in found[:3]}) == 1
    assert found[3].namespace != found[0].namespace
    walk, rest, abstains, gone = (h.questions[0] for h in found)
    assert wanted(walk, found[0]) == ["I walk my neighbour's dog Biscuit on Mondays."]
    assert rest.evidence == {("ultra_1", "")}
    assert not abstains.evidence | gone.evidence
    assert walk.conversation_id is None
    assert walk.now == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert found[0].conversations[1].turns[0].ts == datetime(2023, 5, 21, 10, tzinfo=UTC)


def test_a_session_that_comes_twice_is_two_conversations(tmp_path: Path) -> None:
    """Two sessions of one id in a haystack stay apart."""
    entry = json.loads((FIXTURES / "longmemeval" / "sample.json").read_text())[0]
    entry["haystack_session_ids"] = ["twin", "answer_77_1", "twin"]
    file = tmp_path / "twins.json"
    file.write_text(json.dumps([entry]))
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
        b"null",
        b"[1]",
        b"\xff\xfe",
        b'{"session_1": 3, "haystack_sessions": {"a": 1}}',
    ],
)
def test_what_cannot_be_read_is_refused(form: str, content: bytes, tmp_path: Path) -> None:
    """A file that is not of the format is a typed error that names it."""
    file = tmp_path / "chat.json"
    file.write_bytes(content)
    with pytest.raises(UnknownFormat, match=f"no {form}") as raised:
        haystacks(file, form)
    assert str(file).startswith(raised.value.value.strip("'.")[:40])


def test_a_wrong_format_or_path_is_refused() -> None:
    """An unknown format and a path that does not exist raise InvalidInput."""
    with pytest.raises(InvalidInput, match="realtalk, locomo, beam, longmemeval"):
        haystacks(FIXTURES, "chats")
    with pytest.raises(InvalidInput, match="no such file"):
        haystacks(FIXTURES / "nowhere", "beam")


def test_shared_data_reads_whole(shared_data: Path) -> None:
    """The real data sets come out with the figures that their descriptions state."""
    talks = haystacks(shared_data / "conversations" / "realtalk", "realtalk")
    assert [h.number for h in talks] == list(range(1, 11))
    assert sum(len(h.conversations[0].turns) for h in talks) == 8944
    asked = [q for h in talks for q in h.questions]
    assert (len(asked), sum(bool(q.evidence) for q in asked)) == (728, 706)
    beam = haystacks(shared_data / "conversations" / "beam-100k", "beam")
    questions = [q for h in beam for q in h.questions]
    # Twenty abstentions, and one question whose evidence the set leaves out.
    assert (len(questions), sum(not q.evidence for q in questions)) == (200, 21)
