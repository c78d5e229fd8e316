"""Is the same found as before? `python -m bench.frozen`, once `--write` has kept what is found.

900 questions to three homes of corpus stories (memories, turns, everything), in all ways that a
call offers: filters, times, past wordings, paths, projects, by words or vectors alone. `--write`
keeps what is found, best first, in bench/frozen.json. Else it is compared with that: how often the
first hit is the same, how often all are, and how far the scores of the same ones moved.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from corpus.reading import Story, read_split, read_stories

from anaphora import Memory
from bench.told import Clock, session_turns

__all__ = ["main"]

FILE: Final = Path(__file__).with_suffix(".json")
STORIES: Final = 24
QUESTIONS: Final = 300
"""Of each home."""
_HITS: Final = 10
_SEVENTH: Final = "seventh"

Found: TypeAlias = list[tuple[str, float]]
"""What was found, best first: the kind with a hash of the words, and the score."""
Ask: TypeAlias = Callable[[Memory, str, Story], Any]


def recall(memory: Memory, question: str, _: Story, **given: Any) -> Any:
    """Ask for memories."""
    return memory.recall(question, top_k=_HITS, **given)


def turns(memory: Memory, question: str, _: Story, thread: str | None = None, **given: Any) -> Any:
    """Ask for turns."""
    return memory.recall_conversation(thread, question, top_k=_HITS, budget=100_000, **given)


def search(memory: Memory, question: str, _: Story, **given: Any) -> Any:
    """Ask for everything."""
    return memory.search(question, top_k=_HITS, budget=100_000, **given)


def _halfway(story: Story) -> datetime:
    begin, end = story.sessions[0].when, story.sessions[-1].when
    return begin + (end - begin) / 2


def _as_past(ask: Ask) -> Ask:
    return lambda memory, question, story: ask(memory, f"what was it before: {question}", story)


def _with(ask: Any, **given: Callable[[Story], Any]) -> Ask:
    """Ask with what depends on the story."""
    return lambda memory, question, story: ask(
        memory, question, story, **{name: of(story) for name, of in given.items()}
    )


HOMES: Final[Mapping[str, Mapping[str, Ask]]] = {
    "memories": {
        "as it is": recall,
        "no floor": partial(recall, min_confidence=0.0),
        "vector": partial(recall, mode="vector"),
        "words": partial(recall, mode="words"),
        "type": partial(recall, filters={"type": "semantic"}),
        "tag": partial(recall, filters={"tags": {"contains": _SEVENTH}}),
        "path": _with(recall, filters=lambda story: {"path": {"startswith": story.id}}),
        "as of": _with(recall, as_of=_halfway),
        "past": _as_past(recall),
    },
    "turns": {
        "as it is": turns,
        "no floor": partial(turns, min_confidence=0.0),
        "vector": partial(turns, mode="vector"),
        "words": partial(turns, mode="words"),
        "role": partial(turns, role="user"),
        "since": _with(turns, since=_halfway),
        "until": _with(turns, until=_halfway),
        "one thread": _with(turns, thread=lambda story: _thread(story, -1)),
        "past": _as_past(turns),
    },
    "everything": {
        "as it is": search,
        "no floor": partial(search, min_confidence=0.0),
        "memories": partial(search, kinds=("memory", "note")),
        "files": partial(search, kinds=("file",), min_confidence=0.0),
        "tag": partial(search, tags=(_SEVENTH,), min_confidence=0.0),
        "since": _with(search, since=_halfway),
        "project": _with(search, project=lambda story: story.author),
        "past": _as_past(search),
    },
}


def main(argv: Sequence[str] | None = None) -> int:
    """Freeze, or compare; 1 where nothing was frozen."""
    parser = argparse.ArgumentParser(prog="python -m bench.frozen", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what is found now")
    parser.add_argument("--stories", type=int, default=STORIES, help="so many stories")
    parser.add_argument("--list", action="store_true", help="show where the first hit changed")
    chosen = parser.parse_args(argv)
    frozen = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    if not (chosen.write or frozen):
        print(f"{FILE} is missing: run with --write first")
        return 1
    stories = read_stories(authors=read_split().train)[::5][: chosen.stories]
    texts: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="anaphora-frozen-") as folder:
        found = dict(
            chain.from_iterable(_ask(Path(folder), home, stories, texts) for home in HOMES)
        )
    if chosen.write:
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(hits)}" for key, hits in found.items())
        FILE.write_text(f"{{\n{lines}\n}}\n", "utf-8")
    else:
        _compare(frozen, found, texts if chosen.list else {})
    return 0


def _thread(story: Story, at: int) -> str:
    return f"{story.id}-{story.sessions[at].id}".replace("/", "-")


def _ask(
    folder: Path, home: str, stories: Sequence[Story], texts: dict[str, str]
) -> Iterator[tuple[str, Found]]:
    """What is found in one home; `texts` gets the words by their hash."""
    clock = Clock()
    with Memory.open(folder / home, clock=clock) as memory:
        if home != "turns":
            _tell_facts(memory, clock, stories)
        if home != "memories":
            for story in stories:
                for at, session in enumerate(story.sessions):
                    memory.conversations.extend(_thread(story, at), session_turns(session))
        if home == "everything":
            _write_files(memory, folder, stories)
        memory.ready(1_200)
        asked = ((story, question) for story in stories for question in story.questions)
        step = max(1, sum(len(story.questions) for story in stories) // QUESTIONS)
        ways = cycle(HOMES[home].items())
        for (story, question), (way, ask) in zip(
            islice(asked, 0, step * QUESTIONS, step), ways, strict=False
        ):
            clock.now = question.now
            hits = [
                (f"{getattr(hit, 'kind', home)}:{sha256(hit.text.encode()).hexdigest()[:12]}", hit)
                for hit in ask(memory, question.text, story)
            ]
            texts |= {name: hit.text for name, hit in hits}
            key = f"{home} | {way} | {story.id} | {question.text}"
            yield key, [(name, round(hit.score, 6)) for name, hit in hits]


def _tell_facts(memory: Memory, clock: Clock, stories: Sequence[Story]) -> None:
    """The facts of stories in the order of time: some at a path, tagged, or told again."""
    facts = [(fact, story, at) for story in stories for at, fact in enumerate(story.facts)]
    for fact, story, at in sorted(facts, key=lambda one: one[0].when):
        clock.now = fact.when
        path = f"{story.id}/{at}" if at % 5 == 0 else None
        tags = (_SEVENTH,) if at % 7 == 0 else ()
        memory.remember(fact.text, type=fact.type, path=path, tags=tags)
        if at % 11 == 0:
            clock.now = fact.when + timedelta(hours=5)
            memory.remember(fact.text, type=fact.type, path=path, tags=tags)


def _write_files(memory: Memory, folder: Path, stories: Sequence[Story]) -> None:
    """A project for each author: a file for each session, and notes."""
    for story in stories:
        project = folder / "files" / story.author
        project.mkdir(parents=True, exist_ok=True)
        for at, session in enumerate(story.sessions):
            told = "\n\n".join(turn.text for turn in session.turns)
            (project / f"{_thread(story, at)}.md").write_text(f"# {session.id}\n\n{told}\n")
    for project in sorted((folder / "files").iterdir()):
        memory.index_project(project)
    for fact in chain.from_iterable(story.facts[::13] for story in stories):
        memory.observe(f"Note: {fact.text}")


def _compare(
    frozen: Mapping[str, Found], found: Mapping[str, Found], texts: dict[str, str]
) -> None:
    """Print for each home and way what is the same."""
    rows: dict[str, list[tuple[bool, bool, float]]] = defaultdict(list)
    for key, old in frozen.items():
        new = found.get(key, [])
        home, way, *_ = key.split(" | ")
        before, now = dict(old), dict(new)
        moved = max((abs(before[name] - now[name]) for name in before.keys() & now), default=0.0)
        is_same = old[:1] == new[:1] == [] or bool(old and new and old[0][0] == new[0][0])
        for name in (home, f"{home}, {way}"):
            rows[name].append((is_same, [*before] == [*now], moved))
        if texts and not is_same:
            firsts = [texts.get(hits[0][0], hits[0][0]) if hits else "-" for hits in (old, new)]
            print(f"{key}\n  frozen: {firsts[0]}\n  now:    {firsts[1]}")
    print("home, way | questions | same first | same hits | largest move of a score")
    for name, own in rows.items():
        first, same = (sum(row[at] for row in own) / len(own) for at in (0, 1))
        print(f"{name} | {len(own)} | {first:.3f} | {same:.3f} | {max(row[2] for row in own):.6f}")


if __name__ == "__main__":
    raise SystemExit(main())
