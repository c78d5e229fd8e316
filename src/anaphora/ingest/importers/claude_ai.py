"""Claude.ai: `conversations.json` of a data export, conversations with `chat_messages`.

In: a file whose array (or single object) has such conversations. Out: what the person and Claude
said, in order, with the branches that `parent_message_uuid` shows. Tool use and results, thinking,
attachments and files are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from anaphora.ingest.importers.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
)
from anaphora.ingest.importers.drafts import (
    AFTER_LAST,
    ATTACHMENT,
    THINKING,
    TOOL_CALL,
    TOOL_OUTPUT,
    Draft,
    blocks_of,
    text_at,
)
from anaphora.ingest.importers.json_reader import conversations
from anaphora.store.hashing import digest

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


def read(file: ImportFile) -> Iterator[ImportItem]:
    """The file's conversations and what in them could not be read."""
    lacking = "not a conversation: it has no chat_messages"
    return conversations(file, _is_conversation, lacking, _conversation)


def _is_conversation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def _conversation(file: ImportFile, value: dict[str, object], place: str) -> Iterator[ImportItem]:
    uuid, name = value.get("uuid"), value.get("name")
    messages = cast("list[object]", value["chat_messages"])
    key = uuid if isinstance(uuid, str) and uuid else _made_key(value, messages)
    draft = Draft(file, _SOURCE, key, title=name if isinstance(name, str) else "")
    draft.start(value.get("created_at"), place)
    draft.add_all(messages, place, _message)
    leaf = value.get("current_leaf_message_uuid")
    yield from draft.results(leaf if isinstance(leaf, str) and leaf in draft else None)


def _made_key(value: Mapping[str, object], messages: list[object]) -> str:
    first = messages[0] if messages else None
    said = first.get("text") if isinstance(first, dict) else None
    return digest(repr(value.get("created_at")), repr(said))[:16]


def _parent(message: Mapping[str, object]) -> str | None:
    """The message that this one answers; a log without parents goes on line by line."""
    parent = message.get("parent_message_uuid")
    return parent if isinstance(parent, str) and parent else AFTER_LAST


def _message(draft: Draft, value: object, place: str) -> None:
    message = as_object(value, "a message")
    uuid = message.get("uuid")
    try:
        _add(draft, message, uuid if isinstance(uuid, str) and uuid else None, place)
    except Malformed:
        if isinstance(uuid, str):
            draft.pass_over(uuid, _parent(message))
        raise


def _add(draft: Draft, message: Mapping[str, object], key: str | None, place: str) -> None:
    sender = text_at(message, "sender")
    role = _ROLES.get(sender)
    if role is None:
        raise Malformed(f"the sender {sender[:40]!r} is not known")
    text = _words(draft, message)
    others = sum(
        len(found)
        for name in ("attachments", "files")
        if isinstance(found := message.get(name), list)
    )
    if others:
        draft.left_out[ATTACHMENT] += others
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
    words = list(blocks_of(draft, blocks, _LEFT_OUT_BLOCKS))
    return "\n\n".join(word for word in words if word.strip()) if len(words) > 1 else "".join(words)


FORMAT = Format(_SOURCE, detect, read)
