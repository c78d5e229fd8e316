"""BEAM: long chats with an assistant, in folders of `chat.json` and `probing_questions.json`.

In: one such folder, a folder of them, or a file whose members hold both, under `chat` and
`probing_questions`. The chat is any nesting of lists and mappings down to messages
`{role, id, content, time_anchor}`: batches of groups in the small sets, plans of batches in the
large one. Out: one `Haystack` a chat, all in one namespace. A `time_anchor` dates its message and
those that follow.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.values.conversations import ImportedConversation, ImportedTurn, ImportProblem
from bench.datasets.common import (
    Haystack,
    Question,
    UniqueNames,
    data_files,
    fill_times,
    first_number,
    json_values,
    natural,
    read_time,
    safe_id,
    text_of,
)

# The generator's place mark at the end of a user's text: "->-> 1,1", at times "->-> 3,2)" or "N/A".
_MARK = re.compile(r"\s*->->[^\n]{0,24}\Z")
# An import hands every file of a folder over by itself; these hold no conversation.
_BESIDE_A_CHAT = frozenset({"probing_questions.json", "topic.json"})
_PLAN = re.compile(r"plan[-_ ]?\d+\Z", re.IGNORECASE)


def read_beam(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Haystack | ImportProblem]:
    """The chats of a BEAM folder, folder of folders, or file."""
    names = UniqueNames()
    places = [file for file in _chat_files(path) if file.name not in _BESIDE_A_CHAT]
    if not places and path.is_dir():
        yield ImportProblem(str(path), "directory", "no chat.json in it or in its folders")
    place = 0
    for chat_file in places:
        for found in _chats(chat_file, bounds):
            if isinstance(found, ImportProblem):
                yield found
                continue
            place += 1
            messages = _Messages()
            messages.gather(found.chat)
            if messages.turns:
                name = names.take(found.name)
                yield _haystack(name, first_number(name) or place, messages, found.questions)
            else:
                yield ImportProblem(str(chat_file), "file", "no messages with role and content")


def _chat_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    for pattern in ("chat.json", "chat*.json", "**/chat.json", "**/chat*.json"):
        found = [p for p in path.glob(pattern) if p.is_file()]
        if found:
            return sorted(found, key=natural)
    return data_files(path)


@dataclass(frozen=True, slots=True)
class _Chat:
    """A chat and its questions as they were parsed."""

    name: str
    chat: object
    questions: object


def _chats(chat_file: Path, bounds: Bounds) -> Iterator[_Chat | ImportProblem]:
    """The one chat of a folder, or the chats of a file whose members have their own questions."""
    values, problems = _json(chat_file, bounds)
    yield from problems
    rows = [v for v in values if isinstance(v, Mapping) and "chat" in v]
    if rows:
        for number, row in enumerate(rows, start=1):
            own = row.get("conversation_id") or (number if len(rows) > 1 else chat_file.stem)
            yield _Chat(str(own), row["chat"], _literal(row.get("probing_questions")))
    elif not chat_file.stem.startswith("chat"):
        yield _Chat(chat_file.stem, values, None)
    else:
        folder = chat_file.resolve().parent
        asked = sorted(folder.glob("**/probing_questions.json"), key=natural)
        questions, more = _json(asked[0], bounds) if asked else ([], [])
        yield from more
        if not asked:
            yield ImportProblem(str(folder), "directory", "no probing_questions.json")
        yield _Chat(folder.name, values, questions)


def _json(path: Path, bounds: Bounds) -> tuple[list[object], list[ImportProblem]]:
    values: list[object] = []
    problems: list[ImportProblem] = []
    for value in json_values(path, bounds):
        if isinstance(value, ImportProblem):
            problems.append(value)
        else:
            values.append(value)
    return values, problems


def _literal(value: object) -> object:
    """Questions that were stored as the text of a Python literal, as one distribution has them."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


@dataclass(slots=True)
class _Messages:
    """Collects the messages of a chat in reading order."""

    turns: list[ImportedTurn] = field(default_factory=list)
    by_id: dict[str, list[str]] = field(default_factory=dict)
    blank: int = 0
    _keys: UniqueNames = field(default_factory=UniqueNames)
    _time: datetime | None = None

    def gather(self, value: object, plan: str = "") -> None:
        """Take every message at or under `value`."""
        if isinstance(value, list):
            for inner in value:
                self.gather(inner, plan)
        elif isinstance(value, Mapping):
            self._time = read_time(value.get("time_anchor")) or self._time
            if isinstance(value.get("role"), str) and "content" in value:
                self._take(value, plan)
                return
            for key, inner in value.items():
                if isinstance(inner, list | Mapping):
                    self.gather(inner, str(key).lower() if _PLAN.match(str(key)) else plan)

    def _take(self, message: Mapping[str, object], plan: str) -> None:
        role = str(message["role"]).strip().lower()
        text = text_of(message, "content")
        if role == "user":
            text = _MARK.sub("", text)
        if not text.strip():
            self.blank += 1
            return
        own = str(message.get("id", "")).strip()
        key = self._keys.take(":".join(filter(None, (plan, own))) or f"#{len(self.turns)}")
        self.by_id.setdefault(own, []).append(key)
        parent = self.turns[-1].key if self.turns else None
        self.turns.append(ImportedTurn(key, parent, role, text, self._time))

    def resolve(self, ids: object, plan: str = "") -> tuple[set[str], int]:
        """The keys that `source_chat_ids` names, however nested, and how many ids name none.

        An id that several plans use, named without its plan, names none: it could be any.
        """
        if isinstance(ids, Mapping):
            parts = [
                self.resolve(inner, str(key).lower() if _PLAN.match(str(key)) else plan)
                for key, inner in ids.items()
            ]
        elif isinstance(ids, list):
            parts = [self.resolve(inner, plan) for inner in ids]
        else:
            numbers = re.findall(r"\d+", str(ids)) if not isinstance(ids, bool) else []
            parts = [self._named(number, plan) for number in numbers]
        keys = {key for found, _ in parts for key in found}
        return keys, sum(missing for _, missing in parts)

    def _named(self, number: str, plan: str) -> tuple[set[str], int]:
        candidates = self.by_id.get(number, [])
        if plan:
            candidates = [key for key in candidates if key == f"{plan}:{number}"] or candidates
        return (set(candidates), 0) if len(candidates) == 1 else (set(), 1)


def _haystack(name: str, number: int, messages: _Messages, questions: object) -> Haystack:
    conversation = ImportedConversation(
        source="beam",
        key=name,
        conversation_id=safe_id(f"beam-{name}"),
        turns=fill_times(messages.turns),
        left_out={"blank": messages.blank} if messages.blank else {},
    )
    asked = tuple(
        _question(ability, one, conversation, messages) for ability, one in _asked(questions, "")
    )
    return Haystack("default", number, (conversation,), asked)


def _asked(value: object, ability: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Every question with the name of the list it stands in, or the ability it gives itself."""
    if isinstance(value, list):
        for inner in value:
            yield from _asked(inner, ability)
    elif isinstance(value, Mapping):
        if text_of(value, "question"):
            yield text_of(value, "ability", "category") or ability or "none", value
        else:
            for key, inner in value.items():
                yield from _asked(inner, str(key))


def _question(
    ability: str,
    one: Mapping[str, object],
    conversation: ImportedConversation,
    messages: _Messages,
) -> Question:
    keys, unresolved = messages.resolve(one.get("source_chat_ids"))
    if ability == "abstention":
        keys = set()
    reason = "abstention" if ability == "abstention" else "no evidence given"
    if unresolved and ability != "abstention":
        reason = "evidence not in the data"
    return Question(
        text=text_of(one, "question").strip(),
        category=ability,
        conversation_id=conversation.conversation_id,
        evidence=frozenset((conversation.conversation_id, key) for key in keys),
        now=conversation.turns[-1].ts,
        left_out="" if keys else reason,
        unresolved=unresolved,
    )
