"""ShareGPT: `{id, conversations: [{from, value}]}`, an array of them or one a line.

In: such a file. Out: what "human" and "gpt" said, with the system prompt as role "system", as the
format has it among the messages. Function calls and what they gave back are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import cast

from anaphora.ingest.importers.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
)
from anaphora.ingest.importers.drafts import TOOL_CALL, TOOL_OUTPUT, ChatKeys, Draft, text_at
from anaphora.ingest.importers.json_reader import conversations

_SOURCE = "sharegpt"
_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "system": "system",
}
_LEFT_OUT = {
    "function_call": TOOL_CALL,
    "observation": TOOL_OUTPUT,
    "function_response": TOOL_OUTPUT,
    "tool": TOOL_OUTPUT,
}


def detect(sample: Sample) -> bool:
    """Whether any of the first values has messages with `from` and `value`."""
    return any(map(_is_conversation, sample.values))


def read(file: ImportFile) -> Iterator[ImportItem]:
    """The file's conversations and what in them could not be read."""
    keys = ChatKeys(file)
    lacking = "not a conversation: it has no list of conversations"
    return conversations(file, _has_list, lacking, partial(_conversation, keys))


def _has_list(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("conversations"), list)


def _is_conversation(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("conversations"), list):
        return False
    return any(isinstance(m, dict) and "from" in m and "value" in m for m in value["conversations"])


def _conversation(
    keys: ChatKeys, file: ImportFile, value: dict[str, object], place: str
) -> Iterator[ImportItem]:
    messages = cast("list[object]", value["conversations"])
    draft = Draft(file, _SOURCE, keys.key_of(value.get("id"), messages[0] if messages else None))
    draft.add_all(messages, place, _message)
    yield from draft.results()


def _message(draft: Draft, value: object, _place: str) -> None:
    message = as_object(value, "a message")
    sender = text_at(message, "from")
    kind = _LEFT_OUT.get(sender.lower())
    if kind:
        draft.skip(kind)
        return
    role = _ROLES.get(sender.lower())
    if role is None:
        raise Malformed(f"the sender {sender[:40]!r} is not known")
    draft.add(role, text_at(message, "value"))


FORMAT = Format(_SOURCE, detect, read)
