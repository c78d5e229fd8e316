"""ChatGPT: `conversations.json` of a data export, a tree of messages per conversation.

Every branch comes out, the one of `current_node` first. Tool calls and output, thinking, hidden
and system messages, pictures and sound are left out and counted; the words of a voice conversation,
of a canvas and of a report of deep research are kept. It follows no link to a file beside the
export.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from anaphora.features.importing.formats.base import (
    ImportFile,
    ImportItem,
    Malformed,
    mapping_at,
    objects_in,
    text_at,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut
from anaphora.features.importing.formats.facts import text_or
from anaphora.features.importing.formats.json_reader import conversation_format
from anaphora.features.importing.formats.written import ConversationTexts
from anaphora.language.word_lists import by_word
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
_CANVAS: Final = "canmore."
# What asks the user back before a long search.
_ASKED_BACK: Final = "research_kickoff_tool.clarify_with_text"


def _read_conversation(
    file: ImportFile, value: dict[str, object], place: str
) -> Iterator[ImportItem]:
    mapping = mapping_at(value, "mapping")
    ids = [value.get(name) for name in ("conversation_id", "id")]
    own_ids = [own_id for own_id in ids if isinstance(own_id, str) and own_id]
    if own_ids:
        key = own_ids[0]
    else:
        # A hash of what never changes in a growing chat. Not its place in the file: newer chats
        # come first in an export, and every place would shift.
        first_node = next(
            (
                digest(node_id, repr(node["message"].get("content")))
                for node_id, node in mapping.items()
                if isinstance(node, dict) and isinstance(node.get("message"), dict)
            ),
            "",
        )
        key = digest(repr(value.get("create_time")), first_node)[:16]
    draft = Draft(file, "chatgpt", key, title=value.get("title"))
    draft.start(value.get("create_time") or value.get("update_time"), place)
    conversation_texts = ConversationTexts()
    draft.add_nodes(mapping, place, partial(_add_message, draft, conversation_texts))
    leaf = value.get("current_node")
    yield from draft.results(leaf if isinstance(leaf, str) and leaf in mapping else None)


def _add_message(
    draft: Draft,
    written: ConversationTexts,
    node_id: str,
    parent: str | None,
    message: dict[str, object],
    place: str,
) -> None:
    author = mapping_at(message, "author")
    role = text_at(author, "role")
    content = mapping_at(message, "content")
    work = _read_work(written, author, message, content)
    if work:
        ts = draft.time(message.get("create_time"), place)
        draft.add("assistant", work, key=node_id, parent=parent, ts=ts)
        return
    kind = _classify_left_out(message, role, content)
    if kind:
        draft.skip(kind, node_id, parent)
        return
    if role not in {"user", "assistant"}:
        raise Malformed(f"unknown role {role[:40]!r}")
    words, other_parts = _read_words(content)
    # A picture is a part of the message and one of its files; another file is only the latter.
    metadata = message.get("metadata")
    files = metadata.get("attachments") if isinstance(metadata, dict) else None
    attachments = max(other_parts, len(files) if isinstance(files, list) else 0)
    if attachments:
        draft.left_out[LeftOut.ATTACHMENT] += attachments
        if not any(words):
            draft.pass_over(node_id, parent)
            return
    ts = draft.time(message.get("create_time"), place)
    draft.add(role, "\n".join(words), key=node_id, parent=parent, ts=ts)


def _read_work(
    written: ConversationTexts,
    author: Mapping[str, object],
    message: Mapping[str, object],
    content: Mapping[str, object],
) -> str:
    """What was written for the user in a message that looks like work with a tool: the text of a
    canvas or comments on it, a report of deep research, or what was asked before that."""
    recipient, metadata = message.get("recipient"), message.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if author.get("role") == "assistant" and str(recipient).startswith(_CANVAS):
        call = _parse_object(_join_texts(content))
        if text := text_or(call, "content"):
            return written.write(text_or(call, "name") or "canvas", call.get("name"), text)
        words = [
            written.change_pattern(text_or(change, "pattern"), replacement)
            for change in objects_in(call.get("updates"))
            if isinstance(replacement := change.get("replacement"), str)
        ]
        words += [text_or(comment, "comment") for comment in objects_in(call.get("comments"))]
        return "\n\n".join(dict.fromkeys(word for word in words if word))
    if author.get("role") not in {"assistant", "tool"}:
        return ""
    if metadata.get("is_async_task_result_message") is True:
        return _join_texts(content)
    if author.get("role") == "tool" and author.get("name") == _ASKED_BACK:
        return _join_texts(content)
    widget = metadata.get("chatgpt_sdk")
    state = _parse_object(text_or(widget, "widget_state")) if isinstance(widget, dict) else {}
    report = state.get("report_message")
    within = report.get("content") if isinstance(report, dict) else None
    return _join_texts(within) if isinstance(within, dict) else ""


def _parse_object(text: str) -> dict[str, Any]:
    """The object that a text holds as JSON; an empty one if it holds none."""
    try:
        parsed_json = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}
    return parsed_json if isinstance(parsed_json, dict) else {}


def _join_texts(content: Mapping[str, object]) -> str:
    """The texts of a message's content, regardless of its declared type."""
    parts = content.get("parts")
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    return "\n".join(texts) or text_or(content, "text")


def _classify_left_out(
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


def _read_words(content: Mapping[str, object]) -> tuple[list[str], int]:
    """The written and spoken parts, and the number of other parts."""
    parts = content.get("parts")
    if parts is None and isinstance(content.get("text"), str):
        return [text_at(content, "text")], 0
    if not isinstance(parts, list):
        raise Malformed(f"content without text (type {str(content.get('content_type'))[:40]!r})")
    words: list[str] = []
    other_parts = 0
    for part in parts:
        if isinstance(part, str):
            words.append(part)
        elif not isinstance(part, dict):
            raise Malformed(f"a part that is a {type(part).__name__}, not text")
        elif part.get("content_type") == "audio_transcription" or "text" in part:
            words.append(text_at(part, "text"))
        else:
            other_parts += 1
    # A picture beside no words leaves an empty part behind.
    return ([w for w in words if w] if other_parts else words), other_parts


FORMAT = conversation_format(
    "chatgpt",
    lambda value: isinstance(value, dict) and isinstance(value.get("mapping"), dict),
    "not a conversation: it has no mapping of messages",
    _read_conversation,
)
