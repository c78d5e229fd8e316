"""MemBench (ACL Findings 2025): what an agent took part in, or saw, in steps, and one question.

In: files such as `MemData/FirstAgent/simple.json`: `{topic: [{tid, message_list, QA}]}`, where
`message_list` holds sessions of steps, or steps: `{user, assistant}` or `{user_message,
assistant_message}` with `time` and `place` (what the agent took part in), or texts (what it saw).
`QA` has the question and `target_step_id`, the steps that answer it. Out: one `Haystack` an item,
in a namespace of its own. A step with a user's and an assistant's words is two messages; both are
evidence where their step is, since a step is what the set counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.values.conversations import ImportedConversation, ImportedTurn, ImportProblem
from bench.datasets.common import (
    Haystack,
    MessageKey,
    Question,
    content_name,
    data_files,
    fill_times,
    json_values,
    read_time,
    safe_id,
    text_of,
)

_SAID = (("user", ("user", "user_message")), ("assistant", ("assistant", "assistant_message")))
_WEEKDAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b,?", re.IGNORECASE)
_QUOTES = "'\" "


def read_membench(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Haystack | ImportProblem]:
    """The items of a MemBench file or of a folder of such files, numbered from 1."""
    number = 0
    for file in data_files(path):
        found = 0
        for value in json_values(file, bounds):
            if isinstance(value, ImportProblem):
                yield value
                continue
            for topic, item in _items(value):
                haystack = _haystack(item, number + 1, file.stem, topic)
                if haystack is not None:
                    number, found = number + 1, found + 1
                    yield haystack
        if not found:
            yield ImportProblem(str(file), "file", "no items with message_list and QA in it")


def _items(
    value: object, topic: str = "", depth: int = 0
) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(value, Mapping):
        if isinstance(value.get("message_list"), list):
            yield topic, value
        elif depth < 3:
            for key, inner in value.items():
                yield from _items(inner, str(key), depth + 1)
    elif isinstance(value, list) and depth < 3:
        for inner in value:
            yield from _items(inner, topic, depth + 1)


def _haystack(
    item: Mapping[str, object], number: int, category: str, topic: str
) -> Haystack | None:
    messages = item["message_list"]
    assert isinstance(messages, list)
    # A flat list is one session.
    nested = any(isinstance(one, list) for one in messages)
    sessions = [one if isinstance(one, list) else [one] for one in messages]
    steps = _Steps()
    for place, session in enumerate(sessions if nested else [messages], start=1):
        steps.read(session, f"{place}-session")
    if not steps.conversations:
        return None
    asked = item.get("QA")
    questions = tuple(
        steps.question(one, category)
        for one in (asked if isinstance(asked, list) else [asked])
        if isinstance(one, Mapping) and text_of(one, "question")
    )
    name = content_name("membench", [topic, messages])
    return Haystack(name, number, tuple(steps.conversations), questions)


class _Steps:
    """The steps of an item: its conversations, and which messages each step is."""

    def __init__(self) -> None:
        self.conversations: list[ImportedConversation] = []
        self._by_place: list[set[MessageKey]] = []
        self._by_id: dict[int, set[MessageKey]] = {}

    def read(self, session: list[object], name: str) -> None:
        """Take in one session."""
        identity = safe_id(name)
        turns: list[ImportedTurn] = []
        blank = 0
        for step in session:
            keys: set[MessageKey] = set()
            for role, text in _messages(step):
                key = str(len(turns))
                parent = turns[-1].key if turns else None
                turns.append(ImportedTurn(key, parent, role, text, _time(step)))
                keys.add((identity, key))
            blank += not keys
            if (own := _step_id(step)) is not None:
                self._by_id.setdefault(own, set()).update(keys)
            self._by_place.append(keys)
        if turns:
            self.conversations.append(
                ImportedConversation(
                    source="membench",
                    key=name,
                    conversation_id=identity,
                    turns=fill_times(turns),
                    left_out={"blank": blank} if blank else {},
                )
            )

    def question(self, asked: Mapping[str, object], category: str) -> Question:
        """A question with the messages of the steps that it names."""
        keys: set[MessageKey] = set()
        unresolved = 0
        for step in _targets(asked.get("target_step_id")):
            found = self._by_id.get(step) if self._by_id else None
            if found is None and not self._by_id and 0 <= step < len(self._by_place):
                found = self._by_place[step]
            keys |= found or set()
            unresolved += not found
        missing = "evidence not in the data" if unresolved else "no evidence given"
        latest = [turn.ts for one in self.conversations for turn in one.turns if turn.ts]
        return Question(
            text=text_of(asked, "question").strip(),
            category=category,
            conversation_id=None,
            evidence=frozenset(keys),
            now=_moment(asked.get("time")) or max(latest, default=None),
            left_out="" if keys else missing,
            unresolved=unresolved,
        )


def _step_id(step: object) -> int | None:
    """The step's own number, by which questions name it."""
    if not isinstance(step, Mapping):
        return None
    own = step.get("sid", step.get("mid"))
    return own if isinstance(own, int) and not isinstance(own, bool) else None


def _messages(step: object) -> Iterator[tuple[str, str]]:
    """The messages of a step: role and text."""
    if isinstance(step, str):
        if step.strip():
            yield "user", step
    elif isinstance(step, Mapping):
        for role, fields in _SAID:
            if text := text_of(step, *fields):
                yield role, text
        if text := text_of(step, "message", "text", "content"):
            yield "user", text


def _time(step: object) -> datetime | None:
    return _moment(step.get("time")) if isinstance(step, Mapping) else None


def _moment(value: object) -> datetime | None:
    """A time such as "'2024-10-01 08:00' Tuesday"."""
    if not isinstance(value, str):
        return None
    return read_time(" ".join(_WEEKDAY.sub(" ", value).replace("'", " ").split()).strip(_QUOTES))


def _targets(value: object) -> list[int]:
    """The steps that `target_step_id` names: numbers, or pairs that begin with one."""
    found = []
    for one in value if isinstance(value, list) else [value]:
        first = one[0] if isinstance(one, list) and one else one
        if isinstance(first, str) and first.strip().isdecimal():
            first = int(first)
        if isinstance(first, int) and not isinstance(first, bool):
            found.append(first)
    return list(dict.fromkeys(found))
