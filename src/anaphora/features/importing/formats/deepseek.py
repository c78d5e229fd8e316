"""DeepSeek: `conversations.json` of a data export, a tree of messages per conversation.

It looks like ChatGPT's, but a message has no author: it is made of fragments, of which a REQUEST is
the user's and a RESPONSE the answer. Thinking, searches and files are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from anaphora.features.importing.formats.base import (
    ImportFile,
    ImportItem,
    as_object,
    mapping_at,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut, chat_key
from anaphora.features.importing.formats.facts import text_or
from anaphora.features.importing.formats.json_reader import conversation_format
from anaphora.features.importing.formats.written import labelled
from anaphora.language.word_lists import by_word

_ASKED, _SAID = "REQUEST", "RESPONSE"
_LEFT_OUT = by_word(
    {
        LeftOut.THINKING: "THINK",
        LeftOut.TOOL_CALL: "TOOL_CALL",
        LeftOut.TOOL_OUTPUT: "SEARCH READ_LINK TOOL_SEARCH TOOL_OPEN TOOL_RESULT",
    }
)
_TEXTS = ("content", "extracted_content", "text")


def _is_conversation(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("mapping"), dict):
        return False
    if "inserted_at" in value:
        return True
    nodes = [node for node in value["mapping"].values() if isinstance(node, dict)]
    messages = [node["message"] for node in nodes if isinstance(node.get("message"), dict)]
    return any("fragments" in message for message in messages)


def _read_conversation(
    file: ImportFile, value: dict[str, object], place: str
) -> Iterator[ImportItem]:
    mapping = mapping_at(value, "mapping")
    first_node = next((node for key, node in mapping.items() if key != "root"), None)
    draft = Draft(
        file, "deepseek", chat_key(file, value.get("id"), first_node), title=value.get("title")
    )
    draft.start(value.get("inserted_at"), place)
    roles: dict[str | None, str] = {}
    draft.add_nodes(mapping, place, partial(_add_message, draft, roles))
    yield from draft.results()


def _add_message(
    draft: Draft,
    roles: dict[str | None, str],
    node_id: str,
    parent: str | None,
    message: dict[str, object],
    place: str,
) -> None:
    fragments = message.get("fragments")
    if isinstance(fragments, list):
        kinds = [str(as_object(fragment, "a fragment").get("type")) for fragment in fragments]
        role = "user" if _ASKED in kinds else "assistant"
    else:
        # Earlier exports have one text a message, and the two speak in turn.
        draft.left_out[LeftOut.THINKING] += bool(text_or(message, "reasoning_content"))
        role = "assistant" if roles.get(parent) == "user" else "user"
        fragments, kinds = [message], [""]
    roles[node_id] = role
    words: list[str] = []
    for fragment, kind in zip(fragments, kinds, strict=True):
        text = text_or(fragment, *_TEXTS)
        if text and kind not in _LEFT_OUT:
            words.append(text)
        elif text or kind in _LEFT_OUT:
            draft.left_out[_LEFT_OUT[kind]] += 1
        elif kind not in ("", _ASKED, _SAID):
            draft.left_out[LeftOut.ATTACHMENT] += 1
    # The texts of the files that were sent along, if the export has them.
    files = message.get("files")
    for attached_file in files if isinstance(files, list) else ():
        text = text_or(attached_file, *_TEXTS) if isinstance(attached_file, dict) else ""
        if text:
            words.append(labelled(attached_file.get("file_name"), text))
        else:
            draft.left_out[LeftOut.ATTACHMENT] += 1
    if not words:
        draft.pass_over(node_id, parent)
        return
    ts = draft.time(message.get("inserted_at"), place)
    draft.add(role, "\n\n".join(words), key=node_id, parent=parent, ts=ts)


FORMAT = conversation_format(
    "deepseek",
    _is_conversation,
    "not a conversation: it has no mapping of messages",
    _read_conversation,
)
