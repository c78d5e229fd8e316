"""ChatGPT: `conversations.json` of a data export, a tree of messages per conversation.

In: a file whose array (or single object) has conversations with a `mapping` of nodes. Out: what
the user and the assistant said, every branch, the one of `current_node` first. Tool calls and
output, thinking, hidden and system messages, pictures and sound are left out and counted; the
words of a voice conversation are kept. It follows no link to a file beside the export.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from anaphora.ingest.importers.base import Format, Imported, ImportFile, Malformed, Sample
from anaphora.ingest.importers.drafts import (
    ATTACHMENT,
    HIDDEN,
    INSTRUCTIONS,
    THINKING,
    TOOL_CALL,
    TOOL_OUTPUT,
    Draft,
    digest,
    mapping_at,
    text_at,
)
from anaphora.ingest.importers.json_reader import Record, records

_SOURCE = "chatgpt"
# What an assistant's or a tool's message is when it is not said to the user.
_LEFT_OUT_CONTENT = {
    "code": TOOL_CALL,
    "execution_output": TOOL_OUTPUT,
    "system_error": TOOL_OUTPUT,
    "tether_quote": TOOL_OUTPUT,
    "tether_browsing_display": TOOL_OUTPUT,
    "tether_browsing_code": TOOL_CALL,
    "computer_output": TOOL_OUTPUT,
    "sonic_webpage": TOOL_OUTPUT,
    "thoughts": THINKING,
    "reasoning_recap": THINKING,
    "user_editable_context": INSTRUCTIONS,
    "model_editable_context": INSTRUCTIONS,
    "app_pairing_content": INSTRUCTIONS,
}
_SPOKEN = "audio_transcription"


def detect(sample: Sample) -> bool:
    """Whether any of the first values is a conversation with a mapping of nodes."""
    return any(map(_is_conversation, sample.values))


def read(file: ImportFile) -> Iterator[Imported]:
    """The file's conversations and what in them could not be read."""
    for record in records(file, _is_conversation):
        if not isinstance(record, Record):
            yield record
        elif not _is_conversation(record.value):
            yield file.problem(record.place, "not a conversation: it has no mapping of messages")
        else:
            yield from _conversation(file, cast("dict[str, object]", record.value), record.place)


def _is_conversation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def _conversation(file: ImportFile, value: dict[str, object], place: str) -> Iterator[Imported]:
    mapping = mapping_at(value, "mapping")
    title = value.get("title")
    draft = Draft(file, _SOURCE, _key(value), title=title if isinstance(title, str) else "")
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
        if not isinstance(node, dict):
            raise Malformed(f"a node that is a {type(node).__name__}, not an object")
        message = node.get("message")
        if message is None:
            # The root of the tree.
            draft.pass_over(node_id, above)
            return
        if not isinstance(message, dict):
            raise Malformed(f"a message that is a {type(message).__name__}, not an object")
        _message(draft, node_id, above, message, place)
    except Malformed as error:
        draft.problem(place, str(error))
        draft.pass_over(node_id, above)


def _message(
    draft: Draft, node_id: str, parent: str | None, message: dict[str, object], place: str
) -> None:
    author = mapping_at(message, "author")
    role = text_at(author, "role")
    content = mapping_at(message, "content")
    kind = _left_out_kind(message, role, content)
    if kind:
        draft.skip(kind, node_id, parent)
        return
    if role not in {"user", "assistant"}:
        raise Malformed(f"the role {role[:40]!r} is not known")
    words, attachments = _words(content)
    if attachments:
        draft.left_out[ATTACHMENT] += attachments
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
        return TOOL_OUTPUT
    kind = _LEFT_OUT_CONTENT.get(str(content.get("content_type")))
    if kind:
        return kind
    if role == "system":
        return INSTRUCTIONS
    if hidden is True:
        return HIDDEN
    recipient = message.get("recipient")
    # An assistant that speaks to a tool ("python", "browser", "dalle.text2im") calls it.
    if role == "assistant" and isinstance(recipient, str) and recipient not in {"all", ""}:
        return TOOL_CALL
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
        elif part.get("content_type") == _SPOKEN or "text" in part:
            words.append(text_at(part, "text"))
        else:
            others += 1
    # A picture beside no words leaves an empty part behind.
    return ([w for w in words if w] if others else words), others


FORMAT = Format(_SOURCE, detect, read)
