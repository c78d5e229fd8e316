"""ShareGPT: `{id, conversations: [{from, value}]}`, an array of them or one a line.

In: such a file. Out: what "human" and "gpt" said, with the system prompt as role "system", as the
format has it among the messages. Function calls and what they gave back are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from anaphora.ingest.importers.base import Format, Imported, ImportFile, Malformed, Sample
from anaphora.ingest.importers.drafts import TOOL_CALL, TOOL_OUTPUT, ChatKeys, Draft, text_at
from anaphora.ingest.importers.json_reader import Record, records

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


def read(file: ImportFile) -> Iterator[Imported]:
    """The file's conversations and what in them could not be read."""
    keys = ChatKeys(file)
    for record in records(file, _has_list):
        if not isinstance(record, Record):
            yield record
        elif not _has_list(record.value):
            yield file.problem(record.place, "not a conversation: it has no list of conversations")
        else:
            value = cast("dict[str, object]", record.value)
            yield from _conversation(file, value, record.place, keys)


def _has_list(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("conversations"), list)


def _is_conversation(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("conversations"), list):
        return False
    return any(isinstance(m, dict) and "from" in m and "value" in m for m in value["conversations"])


def _conversation(
    file: ImportFile, value: dict[str, object], place: str, keys: ChatKeys
) -> Iterator[Imported]:
    messages = cast("list[object]", value["conversations"])
    draft = Draft(file, _SOURCE, keys.take(value.get("id"), messages[0] if messages else None))
    for number, message in enumerate(messages, start=1):
        where = f"{place}, message {number}"
        try:
            _message(draft, message)
        except Malformed as error:
            draft.problem(where, str(error))
    yield from draft.results()


def _message(draft: Draft, message: object) -> None:
    if not isinstance(message, Mapping):
        raise Malformed(f"a message that is a {type(message).__name__}, not an object")
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
