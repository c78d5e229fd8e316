"""Claude.ai: `conversations.json` of a data export, conversations with `chat_messages`.

Branches come out as `parent_message_uuid` shows them. What the user pasted stands in the message
under the name of its file, and what Claude wrote for the user (artifacts, files) among its words.
Other tool use, results, thinking, and files without their text are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from anaphora.features.importing.formats.base import (
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
    text_at,
)
from anaphora.features.importing.formats.drafts import AFTER_LAST, Draft, LeftOut
from anaphora.features.importing.formats.facts import text_or
from anaphora.features.importing.formats.json_reader import conversation_format
from anaphora.features.importing.formats.written import ConversationTexts, labelled
from anaphora.language.word_lists import by_word
from anaphora.store.hashing import digest

_ROLES = by_word({"user": "human user", "assistant": "assistant"})
_LEFT_OUT_BLOCKS = by_word(
    {
        LeftOut.THINKING: "thinking redacted_thinking",
        LeftOut.TOOL_CALL: "tool_use server_tool_use",
        LeftOut.TOOL_OUTPUT: "tool_result",
    }
)
# What Claude puts where the user is given it; the other files of its machine are its own work.
_FOR_THE_USER: Final = "/outputs/"


def _read_conversation(
    file: ImportFile, value: dict[str, object], place: str
) -> Iterator[ImportItem]:
    uuid = value.get("uuid")
    messages = cast("list[object]", value["chat_messages"])
    key = uuid if isinstance(uuid, str) else ""
    if not key:
        first_message = messages[0] if messages else None
        first_text = first_message.get("text") if isinstance(first_message, dict) else None
        key = digest(repr(value.get("created_at")), repr(first_text))[:16]
    draft = Draft(file, "claude_ai", key, title=value.get("name"))
    draft.start(value.get("created_at"), place)
    conversation_texts = ConversationTexts()

    def take(draft: Draft, value: object, place: str) -> None:
        message = as_object(value, "a message")
        uuid, parent_uuid = message.get("uuid"), message.get("parent_message_uuid")
        # A log without parents goes on line by line.
        parent = parent_uuid if isinstance(parent_uuid, str) and parent_uuid else AFTER_LAST
        try:
            _add_message(
                draft,
                conversation_texts,
                message,
                uuid if isinstance(uuid, str) else "",
                parent,
                place,
            )
        except Malformed:
            if isinstance(uuid, str):
                draft.pass_over(uuid, parent)
            raise

    draft.add_all(messages, place, take)
    leaf = value.get("current_leaf_message_uuid")
    yield from draft.results(leaf if isinstance(leaf, str) and leaf in draft else None)


def _add_message(
    draft: Draft,
    written: ConversationTexts,
    message: Mapping[str, object],
    key: str,
    parent: str,
    place: str,
) -> None:
    sender = text_at(message, "sender")
    role = _ROLES.get(sender)
    if role is None:
        raise Malformed(f"unknown sender {sender[:40]!r}")
    previous_count = draft.left_out.total()
    words = list(_read_texts(draft, written, message))
    # What was pasted or sent along, each under the name of its file.
    for name in ("attachments", "files"):
        attachments = message.get(name)
        for attachment in attachments if isinstance(attachments, list) else ():
            pasted_text = (
                text_or(attachment, "extracted_content") if isinstance(attachment, dict) else ""
            )
            if pasted_text:
                words.append(labelled(attachment.get("file_name"), pasted_text))
            else:
                draft.left_out[LeftOut.ATTACHMENT] += 1
    text = "\n\n".join(word for word in words if word.strip()) if len(words) > 1 else "".join(words)
    if (
        not text.strip()
        and key
        and (draft.left_out.total() > previous_count or message.get("content"))
    ):
        # Nothing was said: a file was sent, or a tool was used, and that is counted.
        draft.pass_over(key, parent)
        return
    ts = draft.time(message.get("created_at"), place)
    draft.add(role, text, key=key, parent=parent, ts=ts)


def _read_texts(
    draft: Draft, written: ConversationTexts, message: Mapping[str, object]
) -> Iterator[str]:
    """The texts of the content, block by block; of an export without them, the plain text.

    The plain text beside blocks is not used: it has placeholders where tools were called.
    """
    blocks = message.get("content")
    if not isinstance(blocks, list) or not blocks:
        yield text_at(message, "text")
        return
    for element in blocks:
        block = as_object(element, "a content block")
        kind = str(block.get("type"))
        if kind == "text":
            yield text_at(block, "text")
            continue
        text = _read_work(written, block) if kind == "tool_use" else ""
        if not text and kind not in _LEFT_OUT_BLOCKS:
            # A voice note has its words under the same name as a text.
            text = text_or(block, "text")
        if text:
            yield text
        else:
            draft.left_out[_LEFT_OUT_BLOCKS.get(kind, LeftOut.ATTACHMENT)] += 1


def _read_work(written: ConversationTexts, block: Mapping[str, Any]) -> str:
    """What a call of a tool wrote for the user: an artifact, a file, or a change to one of them."""
    work = block.get("input")
    if not isinstance(work, dict):
        return ""
    path = text_or(work, "path", "file_path")
    if block.get("name") == "artifacts":
        key, title = text_or(work, "id"), text_or(work, "title")
    elif _FOR_THE_USER in path:
        key, title = path, path.rsplit("/", 1)[-1]
    else:
        return ""
    text = text_or(work, "content", "file_text")
    if text:
        return written.write(key, title, text)
    new_text = work.get("new_str")
    return (
        written.change(key, text_or(work, "old_str"), new_text) if isinstance(new_text, str) else ""
    )


FORMAT = conversation_format(
    "claude_ai",
    lambda value: isinstance(value, dict) and isinstance(value.get("chat_messages"), list),
    "not a conversation: it has no chat_messages",
    _read_conversation,
)
