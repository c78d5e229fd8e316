"""What is found while turns wait for their vectors: `python -m bench.pending_vectors --data DIR`.

In: REALTALK and BEAM, read and embedded by bench/fit_turns.py. Out: for each half of each set, with
the vectors of some turns taken away, how much of the evidence is among the best, and whether a turn
that waits is found by its own words; in bench/results/pending_vectors.json and .md. "Before" gives
a turn without a vector no meaning, "after" is the ranking as shipped: words and likeness come from
a real index of the chat that has embedded nothing; "even" is the same with the lengths of turn and
question left out. It chooses no weight.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import analyse, query_terms
from anaphora.embed.minilm import MiniLM
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.turns.index import TurnIndex
from anaphora.index.turns.view import TurnView
from anaphora.rank.question import QuestionReading, read_question, speakers_present
from anaphora.rank.turns import best_rows, score_turns
from anaphora.recall.times.reading import read_times
from anaphora.store.threads.file_store import ConversationStore
from anaphora.values.conversations import NewTurn
from bench.datasets import SETS
from bench.figures import machine, write
from bench.fit_turns import FIT, Chat, Floats, K, load, nicknames_in
from bench.metrics import recall_at_k

SEED: Final = 7
OWN: Final = 100
"""Turns of each chat that are asked for by their own words."""
AMONG: Final = 6
THREAD: Final = "chat"
HALVES: Final = ("fit", "report")
OWN_WORDS: Final = "a random half and the one asked for by its own words"

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over `n` questions of one half of a set while the turns of `lacking` have no vector."""

    data: str
    half: str
    lacking: str
    measure: str
    before: float
    after: float
    even: float
    n: int


@dataclass(frozen=True, slots=True)
class Case:
    """One question to one chat, some of whose turns lack a vector."""

    lacking: str
    reading: QuestionReading
    cosine: Floats
    lacks: Mask
    wanted: frozenset[int]


def run(data: Path, cache: Path | None) -> list[Measured]:
    """Ask every question of both sets in every state of the vectors, keep the means."""
    model, found = MiniLM(), list[Measured]()
    for name, chats in load(data, cache).items():
        for half in HALVES:
            mine = [chat for chat in chats if (chat.number in FIT) == (half == "fit")]
            found += _means(name, half, [one for chat in mine for one in _asked(chat, model)])
    _keep(found)
    return found


def _asked(chat: Chat, model: MiniLM) -> Iterator[tuple[str, list[float]]]:
    """(what lacks, marks before, after and even) of every question to one chat."""
    chance = np.random.default_rng((SEED, chat.number))
    with tempfile.TemporaryDirectory(prefix="anaphora-pending-") as home:
        store = ConversationStore(Path(home) / "conversations", strict=True)
        store.extend(THREAD, [NewTurn("user", text) for text in chat.texts])
        embedder = EmbedderService(spec_for("hashing"))
        index = TurnIndex(Path(home) / "index", store, None, embedder)
        index.sync(embed="none")
        view = index.view()
        if not np.array_equal(view.table.length, chat.table.length):
            raise AssertionError("the index has other turns, or in another order")
        for case in _cases(chat, model, chance):
            yield case.lacking, _marks(chat, view, case)
        index.close()


def _cases(chat: Chat, model: MiniLM, chance: np.random.Generator) -> Iterator[Case]:
    n = len(chat.table)
    newest = np.arange(n) / n
    for one in chat.asked:
        for lacking, lacks in (
            ("no turn", np.zeros(n, np.bool_)),
            ("the newest tenth", newest >= 0.9),
            ("the newer half", newest >= 0.5),
            ("a random half", chance.random(n) < 0.5),
            ("every turn", np.ones(n, np.bool_)),
        ):
            yield Case(lacking, one.reading, one.cosine, lacks, one.evidence)
    present = speakers_present(chat.table)
    now = datetime.fromtimestamp(chat.table.ts[-1], UTC) if np.isfinite(chat.table.ts[-1]) else None
    for row in chance.permutation(n)[:OWN].tolist():
        text = chat.texts[row]
        if not query_terms(text):
            continue
        times = read_times(text, now) if now else ()
        spans = [(span.start.timestamp(), span.end.timestamp()) for span in times]
        called = nicknames_in(text, present, chat.table, chat.texts, chat.bm25)
        reading = read_question(text, present, spans, called)
        cosine = chat.cosine(np.asarray(model.embed_query(reading.meaning)))
        # Turns with the same text have one vector or none, and either answers.
        same = np.array([other == text for other in chat.texts])
        wanted = frozenset(np.flatnonzero(same).tolist())
        yield Case(OWN_WORDS, reading, cosine, (chance.random(n) < 0.5) | same, wanted)


def _marks(chat: Chat, view: TurnView, case: Case) -> list[float]:
    words = view.words(case.reading.terms, limit=len(view))
    asked = max(1, len(analyse(case.reading.meaning)))
    alike = view.alike(case.reading.terms, words, asked)
    alike[~case.lacks] = 0.0
    lengths = np.maximum(view.table.length, 1)
    even = alike / np.sqrt(np.minimum(lengths, asked) / np.maximum(lengths, asked))
    cosine = np.where(case.lacks, 0.0, case.cosine)
    marks = []
    for likeness in (None, alike, even):
        scores = score_turns(chat.table, case.reading, words, cosine, alike=likeness)
        ranked = best_rows(chat.table, scores, K).tolist()
        if case.lacking == OWN_WORDS:
            marks.append(float(not case.wanted.isdisjoint(ranked[:AMONG])))
        else:
            marks.append(recall_at_k(ranked, case.wanted, K))
    return marks


def _means(name: str, half: str, asked: Sequence[tuple[str, list[float]]]) -> Iterator[Measured]:
    for lacking in dict.fromkeys(what for what, _ in asked):
        marks = np.array([one for what, one in asked if what == lacking])
        before, after, even = marks.mean(axis=0).round(4).tolist()
        measure = f"among the best {AMONG}" if lacking == OWN_WORDS else f"recall@{K}"
        yield Measured(name, half, lacking, measure, before, after, even, len(marks))


def _keep(found: Sequence[Measured]) -> None:
    lines = [
        "# Turns without vectors",
        "",
        f"{machine()}.",
        "Each chat is searched alone, without a budget; fit is chats 1 to 5, report 6 to 10.",
        "Before: a turn without a vector scores 0 for meaning. After (as shipped): its meaning is",
        "estimated from its words. Even: the same without the lengths of turn and question. Of",
        f"each chat {OWN} turns are searched for by their own words. Random halves differ by",
        f"question (seed {SEED}). The word index rounds the lengths of long texts, so BEAM's",
        "figures differ slightly from turn_ablation's.",
        "Generated by `python -m bench.pending_vectors`.",
    ]
    for name, _ in SETS:
        shown = [one for one in found if one.data == name]
        counts = {half: [one.n for one in shown if one.half == half] for half in HALVES}
        lines += ["", f"## {name}", ""]
        both = " | ".join(f"{half}: before | after | even" for half in HALVES)
        lines += [f"| without a vector | measure | {both} |", "|---|---" + "|---:" * 6 + "|"]
        for fit in (one for one in shown if one.half == "fit"):
            (report,) = (o for o in shown if o.half == "report" and o.lacking == fit.lacking)
            cells = [(one.before, one.after, one.even) for one in (fit, report)]
            marks = " | ".join(f"{value:.3f}" for half in cells for value in half)
            lines.append(f"| {fit.lacking} | {fit.measure} | {marks} |")
        texts = [f"{half}: {n[0]} questions, {n[-1]} own words" for half, n in counts.items()]
        lines += ["", "; ".join(texts).capitalize() + "."]
    print("\n".join(lines))
    value = {"machine": machine(), "seed": SEED, "rows": [asdict(one) for one in found]}
    write("pending_vectors", json.dumps(value, indent=1), "\n".join(lines))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.pending_vectors", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--cache", type=Path, default=None, help="where to keep vectors")
    chosen = parser.parse_args()
    run(chosen.data, chosen.cache)


if __name__ == "__main__":
    main()
