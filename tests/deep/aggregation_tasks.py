"""Questions about whole threads with exact answers, and good programs that answer them.

In: turns as they were said. Out: tasks, each with its question, what is right, and the program that
a good model would write. What is right is computed here from the turns themselves; the program
computes it in the sandbox, from what the sandbox can see.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from anaphora import Memory

from .deep_desk import loop_over
from .scripts import block

__all__ = ["KINDS", "Said", "Task", "answer_from", "by_code", "by_hits", "said", "tasks_over"]


@dataclass(frozen=True, slots=True)
class Said:
    """A turn as it was said."""

    conversation: str
    index: int
    speaker: str
    ts: datetime
    text: str

    @property
    def id(self) -> str:
        """How it is cited."""
        return f"{self.conversation}#{self.index}"


@dataclass(frozen=True, slots=True)
class Task:
    """A question of a kind about a word, perhaps another word or a speaker; `right` its answer."""

    kind: str
    word: str
    other: str
    question: str
    right: str


KINDS = {
    "count": "How many turns mention {word}?",
    "by speaker": "How often did {other} mention {word}?",
    "first": "When was {word} mentioned for the first time?",
    "last": "When was {word} mentioned for the last time?",
    "sessions": "In how many sessions was {word} mentioned?",
    "both": "How many sessions mention both {word} and {other}?",
    "without": "How many sessions mention {word} but never {other}?",
    "order": "What came up first, {word} or {other}?",
    "who": "Who mentions {word} most often?",
}

_WORD = re.compile(r"[a-z]{4,}")
_READ = """import re
def says(text, word):
    return re.search(r"\\b" + word + r"\\b", text, re.IGNORECASE) is not None
turns = []
for s in list_sessions(limit=500):
    for start in range(0, s["turns"], 500):
        turns += load_transcript(s["id"], start, start + 500)
turns.sort(key=lambda t: (t["ts"], t["conversation"], t["index"]))
WORD = {word!r}
OTHER = {other!r}
hits = [t for t in turns if says(t["text"], WORD)]
others = [t for t in turns if says(t["text"], OTHER)]
print(len(turns), len(hits), len(others))"""
_ANSWERS = {
    "count": "submit(str(len(hits)), hits[:200])",
    "by speaker": (
        'own = [t for t in hits if t["speaker"] == OTHER]\n'
        "submit(str(len(own)), (own or hits)[:200])"
    ),
    "first": 'submit(hits[0]["ts"][:10], hits[:1])',
    "last": 'submit(hits[-1]["ts"][:10], hits[-1:])',
    "sessions": 'submit(str(len(set(t["conversation"] for t in hits))), hits[:200])',
    "both": (
        'a = set(t["conversation"] for t in hits)\nb = set(t["conversation"] for t in others)\n'
        "submit(str(len(a & b)), (hits + others)[:200])"
    ),
    "without": (
        'a = set(t["conversation"] for t in hits)\nb = set(t["conversation"] for t in others)\n'
        "submit(str(len(a - b)), hits[:200])"
    ),
    "order": (
        'when = lambda t: (t["ts"], t["conversation"], t["index"])\n'
        "first = min(hits[:1] + others[:1], key=when)\n"
        'submit(WORD if first["id"] == hits[0]["id"] else OTHER, [first["id"]])'
    ),
    "who": (
        "from collections import Counter\n"
        'counts = Counter(t["speaker"] for t in hits)\n'
        "best = sorted(counts, key=lambda s: (-counts[s], s))[0]\n"
        'submit(best, [t for t in hits if t["speaker"] == best][:200])'
    ),
}


def program(task: Task) -> tuple[str, str]:
    """What a good model writes, in two steps: read and look; answer."""
    read = _READ.replace("{word!r}", repr(task.word)).replace("{other!r}", repr(task.other))
    return read, _ANSWERS[task.kind]


def tasks_over(turns: Sequence[Said], each: int = 3) -> tuple[Task, ...]:
    """`each` tasks of every kind, over words that are neither rare nor everywhere."""
    ordered = sorted(turns, key=_when)
    words = _words(ordered)
    speakers = sorted({turn.speaker for turn in turns})
    tasks = []
    for place, (kind, template) in enumerate(KINDS.items()):
        for number in range(each):
            at = (place * each + number) * 7
            word = words[at % len(words)]
            other = words[(at + 3) % len(words)]
            if kind == "by speaker":
                other = speakers[number % len(speakers)]
            task = Task(kind, word, other, template.format(word=word, other=other), "")
            right = answer_from(task, ordered)
            assert right is not None
            tasks.append(Task(kind, word, other, task.question, right))
    return tuple(tasks)


def answer_from(task: Task, turns: Iterable[Said]) -> str | None:
    """The answer that these turns give; None where they do not give any."""
    ordered = sorted(turns, key=_when)
    hits = [turn for turn in ordered if _says(turn, task.word)]
    others = [turn for turn in ordered if _says(turn, task.other)]
    if not hits or (task.kind == "order" and not others):
        return None
    there, besides = {t.conversation for t in hits}, {t.conversation for t in others}
    match task.kind:
        case "count":
            return str(len(hits))
        case "by speaker":
            return str(sum(turn.speaker == task.other for turn in hits))
        case "first" | "last":
            return hits[0 if task.kind == "first" else -1].ts.date().isoformat()
        case "sessions":
            return str(len(there))
        case "both" | "without":
            return str(len(there & besides if task.kind == "both" else there - besides))
        case "order":
            return task.word if _when(hits[0]) <= _when(others[0]) else task.other
        case _:
            counts = Counter(turn.speaker for turn in hits)
            return min(counts, key=lambda name: (-counts[name], name))


def said(memory: Memory) -> Iterator[Said]:
    """Every turn of a home, with the time to the microsecond that recall shows."""
    for summary in memory.conversations.list():
        thread = memory.conversations.get(summary.conversation_id)
        assert thread is not None
        for index, turn in enumerate(thread.turns):
            yield Said(thread.conversation_id, index, turn.speaker or turn.role, turn.ts, turn.text)


def by_code(memory: Memory, task: Task) -> tuple[str, tuple[str, ...]]:
    """Deep recall's answer to a task and its sources, a script in the model's place."""
    loop = loop_over(memory, [block(code) for code in program(task)])
    result = loop.run(task.question, scope="all_sessions", include_memory=False)
    return result.answer, result.source_ids


def by_hits(memory: Memory, task: Task, top_k: int) -> str | None:
    """The same sum over the hits of plain recall."""
    hits = memory.recall_conversation(None, task.question, top_k=top_k, budget=10**6)
    return answer_from(
        task,
        [Said(h.conversation_id, h.index, h.speaker or h.role, h.ts, h.text) for h in hits],
    )


def _when(turn: Said) -> tuple[datetime, str, int]:
    return turn.ts, turn.conversation, turn.index


def _says(turn: Said, word: str) -> bool:
    return re.search(rf"\b{word}\b", turn.text, re.IGNORECASE) is not None


def _words(turns: Sequence[Said]) -> list[str]:
    """Words of 8 to 80 turns that occur in several conversations, in an order of their own."""
    counts: Counter[str] = Counter()
    where: dict[str, set[str]] = {}
    for turn in turns:
        for word in set(_WORD.findall(turn.text.lower())):
            counts[word] += 1
            where.setdefault(word, set()).add(turn.conversation)
    known = [w for w, n in counts.items() if 8 <= n <= 80 and len(where[w]) > 1]
    # Sorted by their letters from the end: a spread that owes nothing to how often they occur.
    return sorted(known, key=lambda word: word[::-1])
