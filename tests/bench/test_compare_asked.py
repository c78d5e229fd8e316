"""The pure parts of the comparison with other products: fusion, cutting, questions' evidence."""

from __future__ import annotations

from pathlib import Path

from bench.compare.questions import PIECE, cut, owner, prepared, read_chats
from bench.compare.stores import fused
from hypothesis import given
from hypothesis import strategies as st

_LISTS = st.lists(st.lists(st.integers(0, 30), unique=True), max_size=4)


def test_fusion_is_the_sum_of_reciprocal_places() -> None:
    """An id that both lists place second comes before ids that one list places first."""
    assert fused([["a", "b"], ["c", "b"]]) == ["b", "a", "c"]
    # 1/(60+1) + 1/(60+50) is less than 2/(60+3): two good places beat one best.
    first = ["x", "q1", "y", *(f"p{n}" for n in range(47))]
    second = ["s0", "s1", "y", *(f"t{n}" for n in range(46)), "x"]
    assert fused([first, second])[:2] == ["y", "x"]


@given(_LISTS)
def test_fusion_keeps_every_id_once(lists: list[list[int]]) -> None:
    """Fusion loses no id and names none twice, and one list alone keeps its order."""
    found = fused(lists)
    assert sorted(found) == sorted({one for ranked in lists for one in ranked})
    for ranked in lists:
        assert fused([ranked]) == ranked


@given(st.text(alphabet="ab \n", max_size=4 * PIECE))
def test_cutting_loses_no_word(text: str) -> None:
    """Pieces are no longer than the limit, and together hold all that is not white space."""
    pieces = list(cut(text))
    assert all(0 < len(piece) <= PIECE for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_everyone_is_asked_what_the_benchmark_asks(shared_data: Path) -> None:
    """Evidence names turns of its own chat, and the counts are those of the conversation bench."""
    found = read_chats(shared_data)
    counts = {"realtalk": 0, "beam": 0}
    for chat in found:
        ids = {item.id for item in chat.items}
        assert {owner(piece.id) for piece in prepared(chat)} == ids
        for question in chat.questions:
            assert question.evidence <= ids
        counts[chat.form] += len(chat.questions)
    assert counts == {"realtalk": 348, "beam": 89}
    assert sum(len(chat.items) for chat in found) == 7_035
