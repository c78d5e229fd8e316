"""More questions for the fit, out of threads and out of questions whose evidence is known.

Out of questions: `keywords` of them alone, `nameless` (nobody knows who speaks), in the `first
person` (who is asked about is the asker) or the `third` (the asker has a name). Out of threads:
what people `asked` each other, where the next turn answers it, and `words of a turn`. Each is a
style, so that the habits of no data set are learned; bench/learned/run.py says which help.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from anaphora.core.analyser import analyse, query_terms
from anaphora.embed.minilm import MiniLM
from anaphora.rank.question import read_question, speakers_present
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_USER, TurnTable, turn_flags
from anaphora.recall.times.reading import read_times
from bench.changes import ABSENT, Story, holds_any, story_turns
from bench.fit_turns import ROLES, Asked, Chat, Words, vectors_of
from bench.learned.features import Example, describe

Spans = tuple[tuple[float, float], ...]

# Of each chat, at most.
_ASKED: Final = 120
_WORDS: Final = 80

_WORD = re.compile(r"[A-Za-z][\w'.-]*")
_QUESTION = re.compile(r"[^.!?\n]*\?")
_YOU: Final = (
    (re.compile(r"\bare you\b", re.IGNORECASE), "is {}"),
    (re.compile(r"\bwere you\b", re.IGNORECASE), "was {}"),
    (re.compile(r"\bdo you\b", re.IGNORECASE), "does {}"),
    (re.compile(r"\bhave you\b", re.IGNORECASE), "has {}"),
    (re.compile(r"\byours?\b", re.IGNORECASE), "{}'s"),
    (re.compile(r"\byou\b", re.IGNORECASE), "{}"),
)
_ASKER = "Robin"
_I: Final = (
    (re.compile(r"\b(?:I'm|I am)\b"), f"{_ASKER} is"),
    (re.compile(r"\bmy\b", re.IGNORECASE), f"{_ASKER}'s"),
    (re.compile(r"\bdo I\b"), f"does {_ASKER}"),
    (re.compile(r"\bhave I\b", re.IGNORECASE), f"has {_ASKER}"),
    (re.compile(r"\b(?:I|me)\b"), _ASKER),
)
_TEMPLATES: Final = {
    "named": ("What did {who} say about {it}?", "When did {who} talk about {it}?", "{who} {it}"),
    "own": ("What did I say about {it}?", "{it}", "I want to go on with {it}. What was it again?"),
    "other": ("What did you tell me about {it}?", "{it}", "How did you explain {it}?"),
}


class Styles:
    """Questions in other styles, embedded with one model."""

    def __init__(self, model: MiniLM, seed: int = 7) -> None:
        self._model = model
        self._random = Random(seed)

    def reworded(self, source: str, chat: Chat) -> Iterator[Example]:
        """The chat's own questions in other words, with the same evidence."""
        table = chat.table
        nobody = np.full(len(table), -1, np.int16)
        named = bool((table.speaker >= 0).any())
        for place, one in enumerate(chat.asked):
            keywords = " ".join(w for w in _WORD.findall(one.text) if query_terms(w))
            if keywords and place % 2 == 0:
                yield self._example(source, "keywords", chat, one, keywords)
            if named and place % 3 == 0:
                roles = np.full(len(table), ROLE_USER, np.int8)
                other = replace(chat, table=replace(table, speaker=nobody, role=roles))
                yield self._example(source, "nameless", other, one, one.text)
            elif named and len(one.reading.speakers) == 1:
                own = table.speaker == one.reading.speakers[0]
                roles = np.where(own, ROLE_USER, ROLE_ASSISTANT).astype(np.int8)
                other = replace(chat, table=replace(table, speaker=nobody, role=roles))
                yield self._example(source, "first person", other, one, one.reading.meaning)
            elif not named and one.reading.roles == (ROLE_USER,):
                codes = np.where(table.role == ROLE_USER, 0, -1).astype(np.int16)
                other = replace(chat, table=replace(table, speaker=codes, speakers=(_ASKER,)))
                yield self._example(source, "third person", other, one, _put(one.text, _I))

    def asked_in_it(self, source: str, chat: Chat) -> Iterator[Example]:
        """What one asked and the next turn answers; the turn that asks is no candidate."""
        found = list(_answered(chat))
        self._random.shuffle(found)
        for text, evidence, unseen in found[:_ASKED]:
            one = self.read(chat, "asked", text, evidence)
            muted = replace(one, words=one.words.copy(), cosine=one.cosine.copy())
            muted.words[unseen] = muted.cosine[unseen] = 0.0
            yield describe(source, "asked", chat, muted, unseen)[1]

    def words_of_turns(self, source: str, chat: Chat) -> Iterator[Example]:
        """Two to four words of a turn, the rarer the likelier, in a few templates."""
        table = chat.table
        rows = np.flatnonzero((table.length >= 10) & (table.length <= 120)).tolist()
        for row in self._random.sample(rows, min(_WORDS, len(rows))):
            words = list(dict.fromkeys(w for w in _WORD.findall(chat.texts[row]) if query_terms(w)))
            if len(words) < 4:
                continue
            rarity = [max(chat.bm25.rarity(term) for term in query_terms(w)) for w in words]
            chosen = set(self._random.choices(words, rarity, k=self._random.randint(2, 4)))
            it = " ".join(word for word in words if word in chosen)
            who = table.speakers[table.speaker[row]] if table.speaker[row] >= 0 else ""
            kind = "named" if who else "own" if table.role[row] == ROLE_USER else "other"
            text = self._random.choice(_TEMPLATES[kind]).format(who=who.split(" ")[0], it=it)
            one = self.read(chat, "words of a turn", text, frozenset({row}))
            yield describe(source, "words of a turn", chat, one)[1]

    def read(
        self, chat: Chat, category: str, text: str, evidence: frozenset[int], spans: Spans = ()
    ) -> Asked:
        """A question as ranking reads it; it has no other readings."""
        reading = read_question(text, speakers_present(chat.table), spans)
        vector = np.asarray(self._model.embed_query(reading.meaning))
        words, cosine = chat.bm25.scores(reading.terms), chat.cosine(vector)
        readings, signals = (reading,) * 3, (words,) * 3 + (cosine,) * 3
        return Asked(category, text, evidence, *readings, *signals, vector, ())

    def _example(self, source: str, style: str, chat: Chat, one: Asked, text: str) -> Example:
        asked = self.read(chat, one.category, text, one.evidence, one.reading.spans)
        return describe(source, style, chat, asked)[1]


def story_examples(
    source: str, number: int, story: Story, styles: Styles, model: MiniLM, cache: Path | None
) -> Iterator[Example]:
    """The questions of a story, told as chats of one sitting each."""
    chat = _story_chat(number, story, model, cache)
    for asked in story["questions"]:
        wanted = frozenset(
            row
            for row, text in enumerate(chat.texts)
            if holds_any(text, asked["answer"])
            and (asked.get("mixed") or not holds_any(text, asked["stale"]))
        )
        if asked["kind"] == ABSENT or not wanted:
            continue
        named = read_times(asked["q"], datetime.fromisoformat(asked["now"]))
        spans = tuple((span.start.timestamp(), span.end.timestamp()) for span in named)
        one = styles.read(chat, asked["kind"], asked["q"], wanted, spans)
        yield describe(source, "as asked", chat, one)[1]


def _story_chat(number: int, story: Story, model: MiniLM, cache: Path | None) -> Chat:
    told = [
        (place, turn)
        for place, session in enumerate(story["sessions"])
        for turn in story_turns(session)
    ]
    turns = [turn for _, turn in told]
    thread = np.array([place for place, _ in told], np.int32)
    n = len(turns)
    begins = np.append(True, thread[1:] != thread[:-1])
    names = tuple(dict.fromkeys(turn.speaker for turn in turns if turn.speaker))
    tokens = [analyse(turn.text) for turn in turns]
    table = TurnTable(
        conversation=thread,
        position=np.arange(n, dtype=np.int32) - np.flatnonzero(begins)[thread].astype(np.int32),
        previous=np.where(begins, -1, np.arange(n) - 1).astype(np.int32),
        following=np.where(np.append(begins[1:], True), -1, np.arange(n) + 1).astype(np.int32),
        session=thread,
        role=np.array([ROLES[turn.role] for turn in turns], np.int8),
        speaker=np.array([names.index(t.speaker) if t.speaker else -1 for t in turns], np.int16),
        ts=np.array([turn.ts.timestamp() if turn.ts else np.nan for turn in turns]),
        length=np.array([len(some) for some in tokens], np.int32),
        flags=np.array([turn_flags(turn.text) for turn in turns], np.int32),
        conversations=tuple(map(str, range(int(thread.max()) + 1))),
        speakers=names,
    )
    texts = [turn.text for turn in turns]
    vectors, owner = vectors_of(texts, model, cache)
    return Chat(number, table, [], texts, vectors, owner, Words(tokens), Words([]))


def _answered(chat: Chat) -> Iterator[tuple[str, frozenset[int], int]]:
    """(question, the turns that answer it, the turn that asks)."""
    table = chat.table
    for row in range(len(table) - 1):
        asks = _QUESTION.findall(chat.texts[row][:600])
        if not asks or table.session[row] != table.session[row + 1]:
            continue
        asker, other = (_who(table, place) for place in (row, row + 1))
        text = max(asks, key=len).strip()
        if asker == other or len(query_terms(text)) < 3 or table.length[row + 1] < 4:
            continue
        if other[0] >= 0:
            name = table.speakers[other[0]].split(" ")[0]
            said = tuple((form, put.format(name)) for form, put in _YOU)
            text = _put(text, said)
            if name not in text:
                continue
        yield text, frozenset({row + 1}), row


def _who(table: TurnTable, row: int) -> tuple[int, int]:
    return int(table.speaker[row]), int(table.role[row])


def _put(text: str, said: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    for form, other in said:
        text = form.sub(other, text)
    return text
