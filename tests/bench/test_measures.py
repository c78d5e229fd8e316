"""The field's measures: by hand, against scikit-learn's kin in numpy, and over whole sets."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from bench.datasets import FORMATS
from bench.measures.__main__ import main
from bench.measures.definitions import (
    Measured,
    longmemeval_ndcg,
    macro,
    mean,
    measure,
    message_recall,
    ogham_ndcg,
    units,
    with_empty,
)
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = Path(__file__).parent / "fixtures_datasets"
RANKINGS = st.lists(st.integers(0, 40), unique=True, max_size=30)
RELEVANT = st.sets(st.integers(0, 40), min_size=1, max_size=6)


def test_any_all_and_mean_by_hand() -> None:
    """Of three pieces two are among the first five: 2/3, any yes, all no; all among twenty."""
    ranked = [9, 1, 8, 7, 2, 6, 5, 4, 10, 11, 12, 3]
    found = measure(ranked, {1, 2, 3})
    assert found.recall == {5: pytest.approx(2 / 3), 10: pytest.approx(2 / 3), 20: 1.0}
    assert found.any == {5: 1.0, 10: 1.0, 20: 1.0}
    assert found.all == {5: 0.0, 10: 0.0, 20: 1.0}
    assert found.mrr == 1 / 2
    gain = 1 / math.log2(3) + 1 / math.log2(6)
    assert found.ndcg == pytest.approx(gain / (1 + 1 / math.log2(3) + 1 / math.log2(4)))
    none = dict.fromkeys((5, 10, 20), 0.0)
    assert measure([4, 5], {1}) == Measured(none, none, none, 0.0, 0.0)


def test_micro_and_macro_by_hand() -> None:
    """Micro: each question the same. Macro: each category the same."""
    good, bad = measure([1], {1}), measure([2], {1})
    assert mean([good, good, good, bad]).recall[10] == 0.75
    assert macro({"a": [good, good, good], "b": [bad]}).recall[10] == 0.5
    assert macro({"a": [good], "b": []}).mrr == 1.0
    assert mean([]).recall[5] == 0.0


def test_units_stand_where_their_best_message_stands() -> None:
    """A session counts once, by its first message; a message of no session is its own unit."""
    assert units("abcad", {"a": 1, "b": 2, "c": 1}) == (1, 2, "d")
    sessions = {n: n // 10 for n in range(40)}
    ranked = [31, 3, 12, 4, 25]
    assert units(ranked, sessions) == (3, 0, 1, 2)
    assert measure(units(ranked, sessions), set(units({4, 25}, sessions))).all[5] == 1.0


def test_rounds_as_ogham_counts_them_by_hand() -> None:
    """Rounds are returned, messages are counted, and a round with two of them gains once."""
    rounds = [(1, 2), (3, 4), (5, 6)]
    assert message_recall(rounds, {3, 4, 6}, 2) == pytest.approx(2 / 3)
    assert message_recall(rounds, {3, 4, 6}, 3) == 1.0
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    gain = 1 / math.log2(3) + 1 / math.log2(4)
    assert ogham_ndcg(rounds, {3, 4, 6}) == pytest.approx(gain / ideal)
    # Even a perfect ranking of rounds has less than 1, by that definition.
    assert ogham_ndcg([(3, 4), (5, 6)], {3, 4, 6}) < 1.0
    assert with_empty([0.5, 1.0], 2) == 0.875
    assert with_empty([0.5, 1.0], 2, 0.0) == 0.375
    assert with_empty([], 0) == 0.0
    with pytest.raises(ValueError, match="without relevant"):
        message_recall(rounds, set(), 3)


@given(RANKINGS, RELEVANT, st.integers(1, 20))
def test_longmemevals_ndcg_agrees_with_its_formula(
    ranked: list[int], relevant: set[int], k: int
) -> None:
    """As src/retrieval/eval_utils.py computes it: the first gain, and the others over log2."""
    corpus = [*ranked, *sorted(set(range(41)) - set(ranked))]

    def dcg(gains: list[int]) -> float:
        rel = np.asarray(gains, float)[:k]
        return float(rel[0] + np.sum(rel[1:] / np.log2(np.arange(2, rel.size + 1))))

    gains = [int(one in relevant) for one in corpus]
    theirs = dcg(gains[:k]) / dcg(sorted(gains, reverse=True))
    assert longmemeval_ndcg(corpus, relevant, k) == pytest.approx(theirs)


@given(RANKINGS, RELEVANT)
def test_the_measures_agree_among_themselves(ranked: list[int], relevant: set[int]) -> None:
    """all <= mean <= any at every depth, none falls with depth, and one piece makes them one."""
    found = measure(ranked, relevant)
    for k in (5, 10, 20):
        assert found.all[k] <= found.recall[k] <= found.any[k]
        if len(relevant) == 1:
            assert found.all[k] == found.recall[k] == found.any[k]
    for by_depth in (found.recall, found.any, found.all):
        assert by_depth[5] <= by_depth[10] <= by_depth[20]
    assert (found.mrr > 0) == bool(set(ranked) & relevant)


@pytest.mark.parametrize("form", FORMATS)
def test_every_set_is_measured_by_one_command(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fragment of each form is imported, asked and put into tables."""
    file = FIXTURES / form / "commute" if form == "lmeb" else FIXTURES / form
    words = ["--set", form, "--file", str(file), "--embedder", "hashing", "--json"]
    assert main(words) == 0
    (report,) = json.loads("[" + capsys.readouterr().out.replace("}\n{", "},{") + "]")
    tables = {table["unit"]: table for table in report["tables"]}
    assert tables["message"]["questions"] == report["questions"] > 0
    for table in tables.values():
        for row in table["rows"]:
            assert 0 <= row["micro"]["recall"]["10"] <= 1
            assert set(row["by_category"])
    best = tables["message"]["rows"][-1]
    assert best["ranking"] == "Anaphora"
    assert best["micro"]["any"]["10"] > 0.5
    assert ("round" in tables) == (form in {"beam", "longmemeval", "convomem", "membench"})
    assert ("session" in tables) == (form not in {"beam", "lmeb"})
    assert ("user's message" in tables) == (form == "longmemeval")
    assert any("Ogham" in name for name in report["special"]) == (form == "beam")


def test_a_set_that_is_not_there_is_said_with_where_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message has the command that fetches the set, and its source."""
    assert main(["--set", "locomo", "--file", str(tmp_path / "locomo10.json")]) == 2
    told = capsys.readouterr().err
    assert "python -m bench.datasets locomo --to DIR" in told
    assert "snap-research/locomo" in told
    assert main(["--data", str(tmp_path)]) == 2
    assert "REALTALK" in capsys.readouterr().err


def test_a_part_of_a_set_can_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """`--limit` bounds the questions of each category, and the tables are for people."""
    words = ["--set", "membench", "--file", str(FIXTURES / "membench"), "--limit", "1"]
    assert main([*words, "--embedder", "hashing"]) == 0
    shown = capsys.readouterr().out
    assert "| message | Anaphora |" in shown
    assert "LMEB: recall@10" in shown
