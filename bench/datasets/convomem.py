"""ConvoMem (Salesforce, arXiv 2511.10523): questions about many short conversations.

In: files of `{"evidence_items": [{question, message_evidences: [{speaker, text}], conversations:
[{messages: [{speaker, text}]}]}]}` in folders that name the category (`user_evidence/1_evidence/…`,
as the set is published), or a list of `{evidenceItems, conversations}`, where items share
conversations. Out: one `Haystack` an item or a list's entry, each in a namespace of its own: a
question is asked of its own conversations. The messages have no times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.values.conversations import ImportedConversation, ImportedTurn, ImportProblem
from bench.datasets.common import (
    Haystack,
    MessageKey,
    Question,
    content_name,
    data_files,
    json_values,
    safe_id,
    text_of,
)

_ITEMS = ("evidence_items", "evidenceItems")
_SUFFIX = "_evidence"


def read_convomem(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Haystack | ImportProblem]:
    """The items of a ConvoMem file or of a folder of such files, numbered from 1."""
    number = 0
    for file in data_files(path):
        found = 0
        for value in json_values(file, bounds):
            if isinstance(value, ImportProblem):
                yield value
                continue
            for items, shared in _entries(value):
                # Items without conversations of their own are asked of those beside them.
                groups = [([item], _list(item.get("conversations"))) for item in items]
                for group, conversations in [(items, shared)] if shared else groups:
                    haystack = _haystack(group, conversations, number + 1, _category(file))
                    if haystack is not None:
                        number, found = number + 1, found + 1
                        yield haystack
        if not found:
            yield ImportProblem(str(file), "file", "no evidence_items with conversations in it")


def _entries(
    value: object, depth: int = 0
) -> Iterator[tuple[list[Mapping[str, object]], list[object]]]:
    """The items that belong together, and the conversations that they share, if any."""
    if isinstance(value, Mapping):
        items = next((value[name] for name in _ITEMS if isinstance(value.get(name), list)), None)
        if items is not None:
            assert isinstance(items, list)
            asked = [item for item in items if isinstance(item, Mapping)]
            yield asked, _list(value.get("conversations"))
        elif text_of(value, "question") and isinstance(value.get("conversations"), list):
            yield [value], []
    elif isinstance(value, list) and depth < 2:
        for inner in value:
            yield from _entries(inner, depth + 1)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _category(file: Path) -> str:
    """The folder that names the kind of evidence; "1_evidence" counts the pieces, and is none."""
    names = [p.name for p in file.parents if p.name.endswith(_SUFFIX)]
    kinds = [name for name in names if not name.removesuffix(_SUFFIX).isdecimal()]
    return kinds[0] if kinds else ""


def _haystack(
    items: list[Mapping[str, object]], conversations: list[object], number: int, category: str
) -> Haystack | None:
    read = [_conversation(one, place) for place, one in enumerate(conversations, start=1)]
    kept = tuple(one for one in read if one.turns)
    if not kept:
        return None
    said = {
        (conversation.conversation_id, turn.key): (turn.role, _flat(turn.text))
        for conversation in kept
        for turn in conversation.turns
    }
    questions = tuple(
        _question(item, said, category) for item in items if text_of(item, "question")
    )
    return Haystack(content_name("convomem", conversations), number, kept, questions)


def _conversation(value: object, place: int) -> ImportedConversation:
    own: Mapping[str, object] = value if isinstance(value, Mapping) else {}
    turns: list[ImportedTurn] = []
    blank = 0
    for at, message in enumerate(_list(own.get("messages"))):
        text = text_of(message, "text", "content") if isinstance(message, Mapping) else ""
        if not isinstance(message, Mapping) or not text.strip():
            blank += 1
            continue
        parent = turns[-1].key if turns else None
        turns.append(ImportedTurn(str(at), parent, _role(message), text))
    # Ids are often left out, and of the many conversations of an item the place tells them apart.
    name = f"{place}-{own.get('id') or 'conversation'}"
    return ImportedConversation(
        source="convomem",
        key=name,
        conversation_id=safe_id(name),
        turns=tuple(turns),
        left_out={"blank": blank} if blank else {},
    )


def _role(message: Mapping[str, object]) -> str:
    return "user" if text_of(message, "speaker", "role").strip().lower() == "user" else "assistant"


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())


def _question(
    item: Mapping[str, object], said: Mapping[MessageKey, tuple[str, str]], category: str
) -> Question:
    keys: set[MessageKey] = set()
    unresolved = 0
    for piece in _list(item.get("message_evidences")):
        wanted = _flat(text_of(piece, "text")) if isinstance(piece, Mapping) else ""
        if not wanted:
            continue
        role = _role(piece) if isinstance(piece, Mapping) and text_of(piece, "speaker") else ""
        same = {key for key, (by, text) in said.items() if text == wanted and role in {"", by}}
        # Conversations were written around the evidence, at times with a word before or after it.
        found = same or {key for key, (_, text) in said.items() if wanted in text}
        keys |= found
        unresolved += not found
    missing = "evidence not in the data" if unresolved else "no evidence given"
    return Question(
        text=text_of(item, "question").strip(),
        category=category or text_of(item, "_category_key") or "none",
        conversation_id=None,
        evidence=frozenset(keys),
        left_out="" if keys else missing,
        unresolved=unresolved,
    )
