"""Letta (MemGPT): agent files (`.af`), both of their schemas, and archival passages as JSON.

Memory blocks become memories, each the value of its agent's label; passages become memories; the
messages of an agent are a conversation. What an agent says through `send_message` is what it said.
Blocks that are empty and the texts that the program itself puts in are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut
from anaphora.features.importing.formats.facts import (
    key_of,
    moment,
    path_of,
    tags_of,
    text_or,
    when,
    words_at,
)
from anaphora.features.importing.formats.json_reader import records
from anaphora.features.importing.values import ImportedElse, ImportedMemory
from anaphora.values.conversations import ImportProblem
from anaphora.values.memories import NewMemory

_NAME = "letta"
_SAID = "send_message"
_TIMES = ("updated_at", "created_at")
_PROGRAM = {"heartbeat", "login", "system_alert", "first_memory_summary", "summary"}


def _is_agents(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("agents"), list):
        return False
    return isinstance(value.get("blocks"), list)


def _is_agent(value: object) -> bool:
    """The first schema: one agent, with its blocks within."""
    return isinstance(value, dict) and "core_memory" in value and "messages" in value


def _is_passage(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    marks = {"archive_id", "embedding_config", "embedding", "source_id"} & value.keys()
    return "id" in value and (bool(marks) or str(value["id"]).startswith("passage-"))


def _is_known(value: object) -> bool:
    passages = value.get("passages") if isinstance(value, dict) else None
    has_passages = isinstance(passages, list) and any(map(_is_passage, passages[:20]))
    return has_passages or _is_agents(value) or _is_agent(value) or _is_passage(value)


def _read(file: ImportFile) -> Iterator[ImportItem]:
    for record in records(file, _is_known):
        if isinstance(record, ImportProblem):
            yield record
        elif not _is_known(record.value):
            yield file.problem(record.place, "neither an agent nor a passage")
        elif _is_passage(record.value):
            yield from _read_passage(file, record.value, record.place)
        else:
            agents = cast("dict[str, Any]", record.value)
            if _is_agent(agents):
                yield from _read_agent(file, agents, agents["core_memory"], record.place, agents)
            elif _is_agents(agents):
                blocks = {str(b.get("id")): b for b in agents["blocks"] if isinstance(b, dict)}
                for number, agent in enumerate(agents["agents"], start=1):
                    agent_place = f"{record.place}, agent {number}"
                    if not isinstance(agent, dict):
                        yield file.problem(agent_place, "it is no object")
                        continue
                    block_ids = agent.get("block_ids")
                    ids = map(str, block_ids if isinstance(block_ids, list) else ())
                    own_blocks = [blocks[block_id] for block_id in ids if block_id in blocks]
                    yield from _read_agent(file, agent, own_blocks, agent_place, agents)
            passages = agents.get("passages")
            for number, passage in enumerate(passages if isinstance(passages, list) else (), 1):
                yield from _read_passage(file, passage, f"{record.place}, passage {number}")


def _read_passage(file: ImportFile, value: object, place: str) -> Iterator[ImportItem]:
    try:
        passage = as_object(value, "a passage")
        text = words_at(passage, "text", "content")
        at = when(file, passage, "created_at", "timestamp")
        key = key_of("passage", words_at(passage, "id"))
        yield ImportedMemory(
            _NAME, key, NewMemory(text, created_at=at, tags=tags_of(passage.get("tags"))), place
        )
    except Malformed as error:
        yield file.problem(place, str(error))


def _read_agent(
    file: ImportFile, agent: dict[str, Any], blocks: object, place: str, whole: Mapping[str, Any]
) -> Iterator[ImportItem]:
    """The blocks and messages of an agent; `whole` says when the file was written."""
    name = text_or(agent, "name") or file.stem
    for number, block in enumerate(blocks if isinstance(blocks, list) else (), start=1):
        block_place = f"{place}, block {number}"
        try:
            fields = as_object(block, "a block")
            at = moment(fields, *_TIMES) or when(file, whole, "created_at")
            label, text = words_at(fields, "label"), text_or(fields, "value")
            if text:
                path, tags = path_of(_NAME, name, label), tags_of(label)
                new_memory = NewMemory(text, created_at=at, path=path, tags=tags)
                yield ImportedMemory(_NAME, key_of("block", name, label), new_memory, block_place)
            else:
                yield ImportedElse("empty block")
        except Malformed as error:
            yield file.problem(block_place, str(error))
    messages = agent.get("messages")
    if not isinstance(messages, list):
        return
    draft = Draft(file, _NAME, text_or(agent, "id") or name, title=name)
    draft.add_all(messages, place, _add_message)
    yield from draft.results()


def _add_message(draft: Draft, value: object, place: str) -> None:
    message = as_object(value, "a message")
    role, key = words_at(message, "role"), text_or(message, "id")
    ts = draft.time(message.get("created_at"), place)
    if role == "tool":
        draft.skip(LeftOut.TOOL_OUTPUT, key or None)
    elif role == "system":
        draft.skip(LeftOut.INSTRUCTIONS, key or None)
    elif role == "user":
        text = _unwrap_user_text(_read_words(message))
        if text is None:
            draft.skip(LeftOut.HIDDEN, key or None)
        else:
            draft.add("user", text, key=key, ts=ts)
    elif role == "assistant":
        _add_agent_message(draft, message, key)
    else:
        draft.skip(LeftOut.RECORD, key or None)


def _add_agent_message(draft: Draft, message: Mapping[str, object], key: str) -> None:
    """Add a message of the agent: its text, or the text that it gave to `send_message`."""
    ts = draft.time(message.get("created_at"), "")
    calls = message.get("tool_calls")
    sent: list[str] = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                arguments = None
        arguments = arguments if isinstance(arguments, dict) else {}
        if isinstance(function, dict) and function.get("name") == _SAID and "message" in arguments:
            sent.append(str(arguments["message"]))
        elif isinstance(function, dict):
            draft.call_tool(call.get("id"), function.get("name"), arguments, ts)
    words = _read_words(message)
    if sent:
        # Beside what it sends an agent of this kind writes down what it thinks.
        draft.left_out[LeftOut.THINKING] += bool(words)
        words = "\n\n".join(sent)
    if words:
        draft.add("assistant", words, key=key, ts=ts)
    elif key:
        draft.pass_over(key)


def _read_words(message: Mapping[str, object]) -> str:
    content = message.get("content", message.get("text"))
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())


def _unwrap_user_text(text: str) -> str | None:
    """The user's text, out of the envelope of the program; None for the program's notices."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        envelope = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(envelope, dict) or "type" not in envelope:
        return text
    if str(envelope["type"]) in _PROGRAM:
        return None
    message = envelope.get("message")
    return message if isinstance(message, str) else text


FORMAT = Format(_NAME, lambda sample: any(map(_is_known, sample.values)), _read)
