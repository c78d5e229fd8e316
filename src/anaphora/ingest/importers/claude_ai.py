"""Claude.ai: `conversations.json` of a data export, conversations with `chat_messages`.

Branches come out as `parent_message_uuid` shows them. Tool use and results, thinking, attachments
and files are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from anaphora.core.word_lists import by_word
from anaphora.ingest.importers.base import (
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
    text_at,
)
from anaphora.ingest.importers.drafts import AFTER_LAST, Draft, LeftOut, blocks_of
from anaphora.ingest.importers.json_reader import conversation_format
from anaphora.store.hashing import digest

_ROLES = by_word({"user": "human user", "assistant": "assistant"})
_LEFT_OUT_BLOCKS = by_word(
    {
        LeftOut.THINKING: "thinking redacted_thinking",
        LeftOut.TOOL_CALL: "tool_use server_tool_use",
        LeftOut.TOOL_OUTPUT: "tool_result",
    }
)


def _is_conversation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def _conversation(file: ImportFile, value: dict[str, object], place: str) -> Iterator[ImportItem]:
    uuid = value.get("uuid")
    messages = cast("list[object]", value["chat_messages"])
    key = uuid if isinstance(uuid, str) and uuid else _made_key(value, messages)
    draft = Draft(file, "claude_ai", key, title=value.get("name"))
    draft.start(value.get("created_at"), place)
    draft.add_all(messages, place, _message)
    leaf = value.get("current_leaf_message_uuid")
    yield from draft.results(leaf if isinstance(leaf, str) and leaf in draft else None)


def _made_key(value: Mapping[str, object], messages: list[object]) -> str:
    first = messages[0] if messages else None
    said = first.get("text") if isinstance(first, dict) else None
    return digest(repr(value.get("created_at")), repr(said))[:16]


def _message(draft: Draft, value: object, place: str) -> None:
    message = as_object(value, "a message")
    uuid, above = message.get("uuid"), message.get("parent_message_uuid")
    # A log without parents goes on line by line.
    parent = above if isinstance(above, str) and above else AFTER_LAST
    try:
        _add(draft, message, uuid if isinstance(uuid, str) else "", parent, place)
    except Malformed:
        if isinstance(uuid, str):
            draft.pass_over(uuid, parent)
        raise


def _add(draft: Draft, message: Mapping[str, object], key: str, parent: str, place: str) -> None:
    sender = text_at(message, "sender")
    role = _ROLES.get(sender)
    if role is None:
        raise Malformed(f"unknown sender {sender[:40]!r}")
    text = _words(draft, message)
    others = sum(
        len(found)
        for name in ("attachments", "files")
        if isinstance(found := message.get(name), list)
    )
    if others:
        draft.left_out[LeftOut.ATTACHMENT] += others
    if not text.strip() and key and (others or message.get("content")):
        # Nothing was said: a file was sent, or a tool was used, and that is counted.
        draft.pass_over(key, parent)
        return
    ts = draft.time(message.get("created_at"), place)
    draft.add(role, text, key=key, parent=parent, ts=ts)


def _words(draft: Draft, message: Mapping[str, object]) -> str:
    """The text blocks of the content; of an export without them, the plain text.

    The plain text beside blocks is not used: it has placeholders where tools were called.
    """
    blocks = message.get("content")
    if not isinstance(blocks, list) or not blocks:
        return text_at(message, "text")
    words = list(blocks_of(draft, blocks, _LEFT_OUT_BLOCKS))
    return "\n\n".join(word for word in words if word.strip()) if len(words) > 1 else "".join(words)


FORMAT = conversation_format(
    "claude_ai", _is_conversation, "not a conversation: it has no chat_messages", _conversation
)
