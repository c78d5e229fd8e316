"""Claude.ai: `conversations.json` of a data export, conversations with `chat_messages`.

In: a file whose array (or single object) has such conversations. Out: what the person and Claude
said, in order, with the branches that `parent_message_uuid` shows. Tool use and results, thinking,
attachments and files are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from anaphora.ingest.importers.base import Format, Imported, ImportFile, Malformed, Sample
from anaphora.ingest.importers.drafts import (
    AFTER_LAST,
    ATTACHMENT,
    THINKING,
    TOOL_CALL,
    TOOL_OUTPUT,
    Draft,
    digest,
    text_at,
)
from anaphora.ingest.importers.json_reader import Record, records

_SOURCE = "claude_ai"
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_LEFT_OUT_BLOCKS = {
    "thinking": THINKING,
    "redacted_thinking": THINKING,
    "tool_use": TOOL_CALL,
    "server_tool_use": TOOL_CALL,
    "tool_result": TOOL_OUTPUT,
}


def detect(sample: Sample) -> bool:
    """Whether any of the first values is a conversation with chat messages."""
    return any(map(_is_conversation, sample.values))


def read(file: ImportFile) -> Iterator[Imported]:
    """The file's conversations and what in them could not be read."""
    for record in records(file, _is_conversation):
        if not isinstance(record, Record):
            yield record
        elif not _is_conversation(record.value):
            yield file.problem(record.place, "not a conversation: it has no chat_messages")
        else:
            yield from _conversation(file, cast("dict[str, object]", record.value), record.place)


def _is_conversation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def _conversation(file: ImportFile, value: dict[str, object], place: str) -> Iterator[Imported]:
    uuid, name = value.get("uuid"), value.get("name")
    messages = cast("list[object]", value["chat_messages"])
    key = uuid if isinstance(uuid, str) and uuid else _made_key(value, messages)
    draft = Draft(file, _SOURCE, key, title=name if isinstance(name, str) else "")
    draft.start(value.get("created_at"), place)
    for number, message in enumerate(messages, start=1):
        where = f"{place}, message {number}"
        try:
            _message(draft, message, where)
        except Malformed as error:
            draft.problem(where, str(error))
            _keep_place(draft, message)
    leaf = value.get("current_leaf_message_uuid")
    yield from draft.results(leaf if isinstance(leaf, str) and leaf in draft else None)


def _made_key(value: Mapping[str, object], messages: list[object]) -> str:
    first = messages[0] if messages else None
    said = first.get("text") if isinstance(first, dict) else None
    return digest(repr(value.get("created_at")), repr(said))[:16]


def _keep_place(draft: Draft, message: object) -> None:
    if isinstance(message, dict) and isinstance(message.get("uuid"), str):
        draft.pass_over(message["uuid"], _parent(message))


def _parent(message: Mapping[str, object]) -> str | None:
    """The message that this one answers; a log without parents goes on line by line."""
    parent = message.get("parent_message_uuid")
    return parent if isinstance(parent, str) and parent else AFTER_LAST


def _message(draft: Draft, message: object, place: str) -> None:
    if not isinstance(message, dict):
        raise Malformed(f"a message that is a {type(message).__name__}, not an object")
    role = _ROLES.get(text_at(message, "sender"))
    if role is None:
        raise Malformed(f"the sender {message['sender'][:40]!r} is not known")
    text = _words(draft, message)
    others = sum(
        len(found)
        for name in ("attachments", "files")
        if isinstance(found := message.get(name), list)
    )
    if others:
        draft.left_out[ATTACHMENT] += others
    uuid = message.get("uuid")
    key = uuid if isinstance(uuid, str) and uuid else None
    if not text.strip() and key and (others or message.get("content")):
        # Nothing was said: a file was sent, or a tool was used, and that is counted.
        draft.pass_over(key, _parent(message))
        return
    ts = draft.time(message.get("created_at"), place)
    draft.add(role, text, key=key, parent=_parent(message), ts=ts)


def _words(draft: Draft, message: Mapping[str, object]) -> str:
    """The text blocks of the content; of an export without them, the plain text.

    The plain text beside blocks is not used: it has placeholders where tools were called.
    """
    blocks = message.get("content")
    if not isinstance(blocks, list) or not blocks:
        return text_at(message, "text")
    words: list[str] = []
    for block in blocks:
        if not isinstance(block, dict):
            raise Malformed(f"a content block that is a {type(block).__name__}, not an object")
        kind = block.get("type")
        if kind == "text":
            words.append(text_at(block, "text"))
        else:
            draft.left_out[_LEFT_OUT_BLOCKS.get(str(kind), ATTACHMENT)] += 1
    return "\n\n".join(word for word in words if word.strip()) if len(words) > 1 else "".join(words)


FORMAT = Format(_SOURCE, detect, read)
