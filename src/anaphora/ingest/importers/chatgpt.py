"""ChatGPT: `conversations.json` of a data export, a tree of messages per conversation.

Every branch comes out, the one of `current_node` first. Tool calls and output, thinking, hidden
and system messages, pictures and sound are left out and counted; the words of a voice conversation
are kept. It follows no link to a file beside the export.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anaphora.core.word_lists import by_word
from anaphora.ingest.importers.base import (
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
    mapping_at,
    text_at,
)
from anaphora.ingest.importers.drafts import Draft, LeftOut
from anaphora.ingest.importers.json_reader import conversation_format
from anaphora.store.hashing import digest

# What an assistant's or a tool's message is when it is not said to the user.
_LEFT_OUT_CONTENT = by_word(
    {
        LeftOut.TOOL_CALL: "code tether_browsing_code",
        LeftOut.TOOL_OUTPUT: "execution_output system_error tether_quote tether_browsing_display "
        "computer_output sonic_webpage",
        LeftOut.THINKING: "thoughts reasoning_recap",
        LeftOut.INSTRUCTIONS: "user_editable_context model_editable_context app_pairing_content",
    }
)


def _is_conversation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def _conversation(file: ImportFile, value: dict[str, object], place: str) -> Iterator[ImportItem]:
    mapping = mapping_at(value, "mapping")
    draft = Draft(file, "chatgpt", _key(value), title=value.get("title"))
    draft.start(value.get("create_time") or value.get("update_time"), place)
    for node_id, node in mapping.items():
        _node(draft, node_id, node, f"{place}, node {node_id}")
    leaf = value.get("current_node")
    yield from draft.results(leaf if isinstance(leaf, str) and leaf in mapping else None)


def _key(value: Mapping[str, object]) -> str:
    """The conversation's id; without one, a hash of what never changes in a growing chat.

    Not its place in the file: newer chats come first in an export, and every place would shift.
    """
    for name in ("conversation_id", "id"):
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
    first = ""
    for node_id, node in mapping_at(value, "mapping").items():
        message = node.get("message") if isinstance(node, dict) else None
        if isinstance(message, dict):
            first = digest(node_id, repr(message.get("content")))
            break
    return digest(repr(value.get("create_time")), first)[:16]


def _node(draft: Draft, node_id: str, node: object, place: str) -> None:
    parent = node.get("parent") if isinstance(node, dict) else None
    above = parent if isinstance(parent, str) else None
    try:
        message = as_object(node, "a node").get("message")
        if message is None:
            # The root of the tree.
            draft.pass_over(node_id, above)
            return
        _message(draft, node_id, above, as_object(message, "a message"), place)
    except Malformed as error:
        draft.problem(place, str(error))
        draft.pass_over(node_id, above)


def _message(
    draft: Draft, node_id: str, parent: str | None, message: dict[str, object], place: str
) -> None:
    role = text_at(mapping_at(message, "author"), "role")
    content = mapping_at(message, "content")
    kind = _left_out_kind(message, role, content)
    if kind:
        draft.skip(kind, node_id, parent)
        return
    if role not in {"user", "assistant"}:
        raise Malformed(f"unknown role {role[:40]!r}")
    words, attachments = _words(content)
    if attachments:
        draft.left_out[LeftOut.ATTACHMENT] += attachments
        if not any(words):
            draft.pass_over(node_id, parent)
            return
    ts = draft.time(message.get("create_time"), place)
    draft.add(role, "\n".join(words), key=node_id, parent=parent, ts=ts)


def _left_out_kind(
    message: Mapping[str, object], role: str, content: Mapping[str, object]
) -> str | None:
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    if role == "tool":
        return LeftOut.TOOL_OUTPUT
    kind = _LEFT_OUT_CONTENT.get(str(content.get("content_type")))
    if kind:
        return kind
    if role == "system":
        return LeftOut.INSTRUCTIONS
    if hidden is True:
        return LeftOut.HIDDEN
    recipient = message.get("recipient")
    # An assistant that speaks to a tool ("python", "browser", "dalle.text2im") calls it.
    if role == "assistant" and isinstance(recipient, str) and recipient not in {"all", ""}:
        return LeftOut.TOOL_CALL
    return None


def _words(content: Mapping[str, object]) -> tuple[list[str], int]:
    """What was written or spoken, part by part, and how many parts are something else."""
    parts = content.get("parts")
    if parts is None and isinstance(content.get("text"), str):
        return [text_at(content, "text")], 0
    if not isinstance(parts, list):
        raise Malformed(f"content without text (type {str(content.get('content_type'))[:40]!r})")
    words: list[str] = []
    others = 0
    for part in parts:
        if isinstance(part, str):
            words.append(part)
        elif not isinstance(part, dict):
            raise Malformed(f"a part that is a {type(part).__name__}, not text")
        elif part.get("content_type") == "audio_transcription" or "text" in part:
            words.append(text_at(part, "text"))
        else:
            others += 1
    # A picture beside no words leaves an empty part behind.
    return ([w for w in words if w] if others else words), others


FORMAT = conversation_format(
    "chatgpt",
    _is_conversation,
    "not a conversation: it has no mapping of messages",
    _conversation,
)
