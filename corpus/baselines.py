"""Three searches over the held-out authors: `python -m corpus.baselines [--authors a04 …]`.

BM25 over words, the cosine of the bundled embedder, and Anaphora's own recall, as a user calls it
and without its floor of confidence. Each story is a namespace of its own, told once as turns and
once as facts; questions are asked when it is over. Writes `baselines.md` beside this file; with
`--results FOLDER` also every ranking, a file a search, in the form that `corpus.scoring` reads.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

from bench.embedder import KeptEmbedder
from bench.plain import Bm25, cosines, ranked

from anaphora import Memory
from anaphora.values.conversations import NewTurn, RelatedTurn, TurnHit
from anaphora.values.memories import MemoryHit
from corpus.reading import (
    FOLDER,
    KINDS,
    LANES,
    Key,
    Lane,
    Question,
    Story,
    read_split,
    read_stories,
)
from corpus.scoring import TEN, Group, Measure, Result, Row, score, table

__all__ = ["METHODS", "ask", "main", "page"]

BM25: Final = "BM25"
COSINE: Final = "cosine"
OWN: Final = "Anaphora"
OWN_WITHOUT_FLOOR: Final = "Anaphora, no floor"
METHODS: Final = (BM25, COSINE, OWN, OWN_WITHOUT_FLOOR)
PAGE: Final = Path(__file__).with_name("baselines.md")
# No answer is to fall out for its length.
_NO_BUDGET: Final = 10**9
_FOUND: Final[tuple[Measure, ...]] = ("first", "in 3", "in 10", "recall@10", "right")
_SILENT: Final[tuple[Measure, ...]] = ("silence", "silence near", "wrong silence")
_MARKS: Final[tuple[Measure, ...]] = (
    "marks right",
    "marks found",
    "both marked",
    "same marked",
)

Results: TypeAlias = dict[str, list[Result]]
Marks: TypeAlias = tuple[tuple[Key, Key], ...]
Ask: TypeAlias = Callable[[Question], Mapping[str, tuple[tuple[frozenset[Key], ...], Marks]]]
"""A question to what each method finds and marks."""


@dataclass(slots=True)
class _Clock:
    """The time at which the next thing is told or asked."""

    now: datetime = field(default=datetime(2024, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now


def ask(
    stories: Sequence[Story], lanes: Sequence[Lane] = LANES, cache: Path | None = None
) -> Results:
    """Tell every story and ask all its questions, by every method."""
    results: Results = {method: [] for method in METHODS}
    embedder, clock = KeptEmbedder(folder=cache), _Clock()
    with (
        tempfile.TemporaryDirectory(prefix="anaphora-corpus-") as home,
        Memory.open(Path(home), embedder=embedder, clock=clock) as memory,
    ):
        for story in stories:
            for lane in lanes:
                room = memory.scoped(f"{story.id}-{lane}")
                tell = _as_turns if lane == "turns" else _as_facts
                for one in (_plain(story, lane, embedder), tell(story, room, clock)):
                    for question in story.questions:
                        for method, (ranking, marks) in one(question).items():
                            result = Result(story.id, question.number, lane, ranking, marks)
                            results[method].append(result)
    embedder.close()
    return results


def _plain(story: Story, lane: Lane, embedder: KeptEmbedder) -> Ask:
    """BM25 and the cosine, of turns with the names of their speakers."""
    texts = story.texts(lane)
    if lane == "turns":
        for key, turn in story.turns().items():
            texts[key] = f"{turn.speaker or turn.role}: {turn.text}"
    keys, held = list(texts), list(texts.values())
    words, vectors = Bm25(held), embedder.embed(held)

    def find(question: Question) -> Mapping[str, tuple[tuple[frozenset[Key], ...], Marks]]:
        by_words = ranked(words.scores(question.text), 0.0)
        by_meaning = ranked(cosines(vectors, embedder.embed_query(question.text)))
        return {
            BM25: (tuple(frozenset((keys[at],)) for at in by_words[:TEN]), ()),
            COSINE: (tuple(frozenset((keys[at],)) for at in by_meaning[:TEN]), ()),
        }

    return find


def _as_turns(story: Story, room: Memory, clock: _Clock) -> Ask:
    for session in story.sessions:
        turns = [
            NewTurn(
                turn.role,
                turn.text,
                ts=session.when + timedelta(minutes=at),
                speaker=turn.speaker,
            )
            for at, turn in enumerate(session.turns)
        ]
        room.conversations.extend(session.id, turns)
    room.ready()

    def find(question: Question) -> Mapping[str, tuple[tuple[frozenset[Key], ...], Marks]]:
        clock.now = question.now
        recall = room.recall_conversation(None, question.text, top_k=TEN, budget=_NO_BUDGET)
        shown = recall.hits or recall.nearest
        return {
            OWN: (_turns(recall.hits), _turn_marks(recall.hits)),
            OWN_WITHOUT_FLOOR: (_turns(shown), _turn_marks(shown)),
        }

    return find


def _turns(hits: Sequence[TurnHit]) -> tuple[frozenset[Key], ...]:
    return tuple(
        frozenset((_turn_key(hit), *(_turn_key(one) for one in hit.occurrences))) for hit in hits
    )


def _turn_marks(hits: Sequence[TurnHit]) -> Marks:
    return tuple(
        dict.fromkeys(
            pair
            for hit in hits
            for pair in (
                *((_turn_key(hit), _turn_key(one)) for one in (hit.older_than,) if one),
                *((_turn_key(one), _turn_key(hit)) for one in hit.previous),
            )
        )
    )


def _turn_key(turn: TurnHit | RelatedTurn) -> Key:
    return (turn.conversation_id, turn.index)


def _as_facts(story: Story, room: Memory, clock: _Clock) -> Ask:
    keys: dict[str, set[Key]] = defaultdict(set)
    for at, fact in enumerate(story.facts):
        clock.now = fact.when
        keys[room.remember(fact.text, type=fact.type).id].add(("", at))
    room.ready()

    def find(question: Question) -> Mapping[str, tuple[tuple[frozenset[Key], ...], Marks]]:
        clock.now = question.now
        recall = room.recall(question.text, top_k=TEN)
        shown = recall.hits or recall.nearest
        return {
            OWN: (_memories(recall.hits, keys), _memory_marks(recall.hits, keys)),
            OWN_WITHOUT_FLOOR: (_memories(shown, keys), _memory_marks(shown, keys)),
        }

    return find


def _memories(
    hits: Sequence[MemoryHit], keys: Mapping[str, set[Key]]
) -> tuple[frozenset[Key], ...]:
    return tuple(
        frozenset(key for one in (hit.id, *hit.same_as) for key in keys.get(one, ()))
        for hit in hits
    )


def _memory_marks(hits: Sequence[MemoryHit], keys: Mapping[str, set[Key]]) -> Marks:
    pairs = (
        pair
        for hit in hits
        for pair in (
            *((hit.id, one.id) for one in (hit.older_than,) if one),
            *((one.id, hit.id) for one in hit.previous),
        )
    )
    return tuple(
        dict.fromkeys(
            (older, newer)
            for one, other in pairs
            for older in sorted(keys.get(one, ()))
            for newer in sorted(keys.get(other, ()))
        )
    )


def page(stories: Sequence[Story], results: Results) -> str:
    """The tables of `baselines.md`."""
    authors = ", ".join(dict.fromkeys(story.author for story in stories))
    own = {method: results[method] for method in (OWN, OWN_WITHOUT_FLOOR)}
    better = {method: results[method] for method in (COSINE, OWN_WITHOUT_FLOOR)}
    marks = sum(len(result.marks) for result in results[OWN_WITHOUT_FLOOR])
    parts = [
        "# Baselines",
        f"Made by `python -m corpus.baselines` over {len(stories)} stories of the held-out authors"
        f" ({authors}). Shares, with their 95% intervals drawn by story;"
        " [README.md](README.md#scoring) says what each is.",
        "## What is found",
        _by(stories, results, ("lane",), _FOUND),
        "## Silence",
        _by(stories, results, ("lane",), _SILENT),
        "## Marks of what was replaced",
        f"Without its floor Anaphora marks {marks} pairs in all.",
        _by(stories, own, ("lane",), _MARKS),
        "## By author",
        _by(stories, results, ("lane", "author"), _FOUND),
        "## By kind",
        _by(stories, better, ("lane", "kind"), _FOUND),
    ]
    return "\n\n".join(parts) + "\n"


def _by(
    stories: Sequence[Story],
    results: Results,
    by: Sequence[Group],
    measures: Sequence[Measure],
) -> str:
    """One table, the searches of a group beside each other."""
    rows: dict[tuple[str, ...], list[Row]] = {}
    for method, own in results.items():
        for row in score(stories, own, by):
            if any(measure in row.figures for measure in measures):
                named = Row((*row.group, method), row.questions, row.figures)
                rows.setdefault(row.group, []).append(named)
    return table(
        [row for group in sorted(rows, key=_place) for row in rows[group]],
        [*by, "search"],
        measures,
    )


def _place(group: tuple[str, ...]) -> tuple[int | str, ...]:
    known = [*LANES, *KINDS]
    return tuple(known.index(name) if name in known else name for name in group)


def _lines(results: Sequence[Result]) -> Iterator[str]:
    for one in results:
        yield json.dumps(
            {
                "story": one.story,
                "question": one.question,
                "lane": one.lane,
                "ranking": [[_id(key) for key in sorted(place)] for place in one.ranking],
                "marks": [[_id(older), _id(newer)] for older, newer in one.marks],
            }
        )


def _id(key: Key) -> list[str | int] | int:
    return [key[0], key[1]] if key[0] else key[1]


def main(argv: Sequence[str] | None = None) -> int:
    """Ask, print the tables and write them."""
    parser = argparse.ArgumentParser(
        prog="python -m corpus.baselines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--authors", nargs="+", default=read_split().held_out)
    parser.add_argument("--stories", type=Path, default=FOLDER, help="the folder of authors")
    parser.add_argument("--cache", type=Path, help="where vectors are kept for the next run")
    parser.add_argument("--results", type=Path, help="a folder for every ranking")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the tables go")
    given = parser.parse_args(argv)
    stories = read_stories(given.stories, given.authors)
    results = ask(stories, cache=given.cache)
    written = page(stories, results)
    print(written)
    given.page.write_text(written, "utf-8")
    if given.results is not None:
        given.results.mkdir(parents=True, exist_ok=True)
        for method, own in results.items():
            file = given.results / f"{method.replace(', ', '-').replace(' ', '-').lower()}.jsonl"
            file.write_text("".join(f"{line}\n" for line in _lines(own)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
