"""ShareGPT: `{id, conversations: [{from, value}]}`, an array of them or one a line.

The system prompt comes as a turn of role "system", as the format has it among the messages.
Function calls and what they gave back are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from anaphora.features.importing.formats.base import (
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
    text_at,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut, chat_key
from anaphora.features.importing.formats.json_reader import conversation_format
from anaphora.language.word_lists import by_word

_ROLES = by_word(
    {
        "user": "human user",
        "assistant": "gpt chatgpt assistant bing bard",
        "system": "system",
    }
)
_LEFT_OUT = by_word(
    {
        LeftOut.TOOL_CALL: "function_call",
        LeftOut.TOOL_OUTPUT: "observation function_response tool",
    }
)


def _is_conversation(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("conversations"), list):
        return False
    return any(isinstance(m, dict) and "from" in m and "value" in m for m in value["conversations"])


def _read_conversation(
    file: ImportFile, value: dict[str, object], place: str
) -> Iterator[ImportItem]:
    messages = cast("list[object]", value["conversations"])
    key = chat_key(file, value.get("id"), messages[0] if messages else None)
    draft = Draft(file, "sharegpt", key)
    draft.add_all(messages, place, _add_message)
    yield from draft.results()


def _add_message(draft: Draft, value: object, _place: str) -> None:
    message = as_object(value, "a message")
    sender = text_at(message, "from")
    kind = _LEFT_OUT.get(sender.lower())
    if kind:
        draft.skip(kind)
        return
    role = _ROLES.get(sender.lower())
    if role is None:
        raise Malformed(f"unknown sender {sender[:40]!r}")
    draft.add(role, text_at(message, "value"))


FORMAT = conversation_format(
    "sharegpt",
    lambda value: isinstance(value, dict) and isinstance(value.get("conversations"), list),
    "not a conversation: it has no list of conversations",
    _read_conversation,
    detect=lambda sample: any(map(_is_conversation, sample.values)),
)
