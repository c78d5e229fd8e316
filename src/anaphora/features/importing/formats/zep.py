"""Zep: what its API gives, kept as JSON: threads (sessions) with messages, facts, the graph.

A value may be one answer (`{"messages": […]}`, `{"facts": […]}`, `{"edges": […], "nodes": […]}`), a
session or thread that holds these, or a list of any of them. A fact or edge is a memory that holds
from `valid_at` on and has its end at `invalid_at` or `expired_at`; a node with a summary is one,
whose path it is. Episodes are what was said, and become a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
)
from anaphora.features.importing.formats.drafts import Draft
from anaphora.features.importing.formats.facts import (
    key_of,
    moment,
    path_of,
    payload_of,
    tags_of,
    text_or,
    when,
    words_at,
)
from anaphora.features.importing.formats.json_reader import records
from anaphora.features.importing.values import ImportedElse, ImportedMemory
from anaphora.store.hashing import digest
from anaphora.values.conversations import ImportProblem
from anaphora.values.memories import NewMemory

_NAME = "zep"
_HOLDERS = ("sessions", "threads", "users", "results", "memory", "graph", "data")
_FACTS = ("facts", "relevant_facts", "edges")
_LISTS = ("nodes", "entities", "messages", "episodes")
_NONE = "neither facts, nodes, messages nor a session"
_SESSION = ("session_id", "thread_id", "uuid", "user_id")
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant",
          "system": "system"}  # fmt: skip
_MOST_LEVELS = 6
Names = Mapping[str, str]


def _is_fact(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("fact"), str) and "uuid" in value


def _is_node(value: object) -> bool:
    return isinstance(value, dict) and {"uuid", "name", "summary"} <= value.keys()


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        return False
    return "uuid" in value and bool({"role_type", "source_description"} & value.keys())


def _is_known(value: object, levels: int = _MOST_LEVELS) -> bool:
    if isinstance(value, list):
        return levels > 0 and any(_is_known(element, levels - 1) for element in value[:20])
    if not isinstance(value, dict):
        return False
    if _is_fact(value) or _is_node(value) or _is_message(value):
        return True
    names = (*_FACTS, *_LISTS, *_HOLDERS)
    return levels > 0 and any(_is_known(value.get(name), levels - 1) for name in names)


def _read(file: ImportFile) -> Iterator[ImportItem]:
    for record in records(file, _is_known):
        if isinstance(record, ImportProblem):
            yield record
        elif not isinstance(record.value, dict | list) or not _is_known(record.value):
            yield file.problem(record.place, _NONE)
        else:
            yield from _read_value(file, record.value, record.place, file.stem, {}, _MOST_LEVELS)


def _read_value(
    file: ImportFile, value: object, place: str, session: str, names: Names, levels: int
) -> Iterator[ImportItem]:
    """The items of a value of any kind. `names` are those of nodes, by their ids."""
    if levels <= 0 or not isinstance(value, dict | list):
        yield file.problem(place, _NONE)
    elif isinstance(value, list):
        messages = [element for element in value if _is_message(element)]
        if messages:
            yield from _read_conversation(file, messages, place, session)
        remainder = [(n, part) for n, part in enumerate(value, start=1) if not _is_message(part)]
        for number, element in remainder:
            element_place = f"{place}, item {number}"
            yield from _read_value(file, element, element_place, session, names, levels - 1)
    elif _is_message(value):
        yield from _read_conversation(file, [value], place, session)
    elif _is_fact(value) or _is_node(value):
        try:
            yield (_read_fact if _is_fact(value) else _read_node)(file, value, place, names)
        except Malformed as error:
            yield file.problem(place, str(error))
    else:
        # A session, a graph or an answer, with items within it.
        session = text_or(value, *_SESSION) or session
        nodes = value.get("nodes")
        named_nodes = [
            node for node in (nodes if isinstance(nodes, list) else ()) if _is_node(node)
        ]
        names = {**names, **{str(node["uuid"]): str(node["name"]) for node in named_nodes}}
        for name in (*_HOLDERS, *_FACTS, *_LISTS):
            if isinstance(inner_value := value.get(name), dict | list) and inner_value:
                element_place = f"{place}, {name}"
                yield from _read_value(file, inner_value, element_place, session, names, levels - 1)


def _read_fact(file: ImportFile, value: dict[str, Any], place: str, names: Names) -> ImportedMemory:
    relation = text_or(value, "name")
    ends = [names.get(str(value.get(f"{end}_node_uuid")), "") for end in ("source", "target")]
    return ImportedMemory(
        _NAME,
        key_of("fact", words_at(value, "uuid")),
        NewMemory(
            words_at(value, "fact"),
            created_at=when(file, value, "valid_at", "created_at"),
            tags=tags_of(relation),
            payload=payload_of(**{"from": ends[0], "to": ends[1]}),
            expires_at=moment(value, "invalid_at", "expired_at"),
        ),
        place,
    )


def _read_node(file: ImportFile, value: dict[str, Any], place: str, _names: Names) -> ImportItem:
    if not text_or(value, "summary"):
        return ImportedElse("node without a summary")
    name, uuid = words_at(value, "name"), words_at(value, "uuid")
    return ImportedMemory(
        _NAME,
        key_of("node", uuid),
        NewMemory(
            f"{name}: {words_at(value, 'summary')}",
            created_at=when(file, value, "created_at"),
            path=path_of(_NAME, f"{name} ({uuid[:8]})"),
            tags=tags_of(value.get("labels")),
        ),
        place,
        changed=moment(value, "updated_at") or file.modified,
    )


def _read_conversation(
    file: ImportFile, messages: list[dict[str, Any]], place: str, session: str
) -> Iterator[ImportItem]:
    draft = Draft(file, _NAME, session or digest(place))
    # The API gives pages with the latest message first or last.
    messages.sort(key=lambda message: str(message.get("created_at") or ""))
    draft.add_all(messages, place, _add_message)
    yield from draft.results()


def _add_message(draft: Draft, value: object, place: str) -> None:
    message = as_object(value, "a message")
    said_as = text_or(message, "role_type", "role")
    role = _ROLES.get(said_as.lower(), "user")
    name = text_or(message, "name") or text_or(message, "role")
    ts = draft.time(message.get("created_at"), place)
    draft.add(
        role,
        words_at(message, "content"),
        key=words_at(message, "uuid"),
        ts=ts,
        speaker=name if name and name.lower() not in _ROLES else None,
    )


FORMAT = Format(_NAME, lambda sample: any(map(_is_known, sample.values)), _read)
