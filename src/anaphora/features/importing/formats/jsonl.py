"""Plain messages: one JSON object a line or an array of them, or `{"messages": […]}` objects.

An object has who spoke (`role`, `speaker`, `from`, `sender`) and what was said (`text`, `content`,
`value`, `message`), optionally a time, a conversation, an id and a parent. A conversation that is
very long comes in pieces that continue each other. Tool messages are left out and counted; a
system message keeps its role.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
    text_at,
)
from anaphora.features.importing.formats.drafts import (
    AFTER_LAST,
    Draft,
    LeftOut,
    chat_key,
    check_room,
)
from anaphora.features.importing.formats.json_reader import JsonRecord, read_log
from anaphora.language.word_lists import by_word, words

_WHO = ("role", "speaker", "from", "sender", "author")
_WHAT = ("text", "content", "value", "message", "body")
_WHEN = ("ts", "timestamp", "created_at", "create_time", "time", "date")
_WHERE = ("conversation_id", "session_id", "thread_id", "chat_id")
_ID = ("id", "message_id", "uuid")
_PARENT = ("parent", "parent_id", "parent_message_id")
_ROLES = by_word(
    {
        "user": "user human",
        "assistant": "assistant ai bot gpt chatgpt claude model",
        "system": "system developer",
    }
)
_TEXT_BLOCKS = words("text input_text output_text")
_LEFT_OUT_BLOCKS = by_word(
    {
        LeftOut.THINKING: "thinking redacted_thinking reasoning thought thoughts",
        LeftOut.TOOL_CALL: "tool_use server_tool_use tool_call tool-call function_call",
        LeftOut.TOOL_OUTPUT: "tool_result tool-result function_call_output function_response",
    }
)
_TOOLS = words("tool function tool_result observation")


def _read(file: ImportFile) -> Iterator[ImportItem]:
    drafts: dict[str, Draft] = {}

    def take(record: JsonRecord) -> Iterable[ImportItem]:
        messages = _find_messages(record.value)
        if messages is not None:
            fields = record.value if isinstance(record.value, dict) else {}
            own_id = _read_first(fields, (*_WHERE, *_ID))
            conversation = Draft(
                file, "jsonl", chat_key(file, own_id, messages[0]), title=fields.get("title")
            )
            conversation.start(_read_first(fields, _WHEN), record.place)
            conversation.add_all(messages, record.place, _add_message)
            return conversation.results()
        message = record.value
        conversation_id = _read_first(message, _WHERE) if isinstance(message, dict) else None
        key = (
            file.stem
            if conversation_id is None or isinstance(conversation_id, dict | list | bool)
            else str(conversation_id)
        )
        draft = drafts.get(key)
        if draft is None:
            check_room(file, len(drafts))
            draft = Draft(file, "jsonl", key)
        _add_message(draft, message, record.place)
        drafts[key] = draft
        return ()

    # Conversations of single lines go on with what follows.
    def results() -> Iterator[ImportItem]:
        return (imported_record for draft in drafts.values() for imported_record in draft.results())

    return read_log(file, take, results, _is_known)


def _is_known(value: object) -> bool:
    return _is_message(value) or _find_messages(value) is not None


def _find_messages(value: object) -> Sequence[object] | None:
    """The messages of a value that is a whole conversation, None if it is not one."""
    messages = value.get("messages") if isinstance(value, dict) else value
    if isinstance(messages, list) and any(map(_is_message, messages)):
        return messages
    return None


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or not any(name in value for name in _WHAT):
        return False
    inner_message = value.get("message")
    return any(isinstance(value.get(name), str) for name in _WHO) or _is_message(inner_message)


def _read_first(value: Mapping[str, object], names: Sequence[str]) -> object:
    """The first of these fields that says something."""
    return next((value[name] for name in names if value.get(name) not in (None, "")), None)


def _add_message(draft: Draft, message: object, place: str) -> None:
    fields = as_object(message, "a message")
    inner_message = fields.get("message")
    if isinstance(inner_message, dict):
        fields = {**fields, **inner_message}
        fields.pop("message")
    key = _read_id(_read_first(fields, _ID))
    parent = _read_id(_read_first(fields, _PARENT)) or AFTER_LAST
    # A name is that of a person: the role is "user" unless one is given too.
    names = [
        name for field in (*_WHO, "name") if isinstance(name := fields.get(field), str) and name
    ]
    if not names:
        raise Malformed(f"no speaker: none of {', '.join(_WHO)} is there")
    roles: list[str] = []
    speaker = None
    for name in names:
        role_or_tool = name.lower() if name.lower() in _TOOLS else _ROLES.get(name.lower())
        if role_or_tool is not None:
            roles.append(role_or_tool)
        else:
            speaker = speaker or name
    role = roles[0] if roles else "user"
    if role in _TOOLS:
        draft.skip(LeftOut.TOOL_OUTPUT, key, parent)
        return
    calls = fields.get("tool_calls") or fields.get("function_call")
    if calls:
        draft.left_out[LeftOut.TOOL_CALL] += len(calls) if isinstance(calls, list) else 1
        if not fields.get("content"):
            if key is not None:
                draft.pass_over(key, parent)
            return
    ts = draft.time(_read_first(fields, _WHEN), place)
    draft.add(role, _read_text(draft, fields), key=key or "", parent=parent, ts=ts, speaker=speaker)


def _read_id(value: object) -> str | None:
    if isinstance(value, bool):
        return None
    return str(value) if isinstance(value, str | int) else None


def _read_text(draft: Draft, value: Mapping[str, object]) -> str:
    name = next((n for n in _WHAT if value.get(n) not in (None, "", [])), _WHAT[0])
    content = value.get(name)
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    if not isinstance(content, list):
        return text_at(value, name)
    runs: list[str] = []
    kinds: set[str] = set()
    for block in content:
        if isinstance(block, str):
            kinds.add("")
            runs.append(block)
        elif not isinstance(block, dict):
            raise Malformed(f"a content block that is a {type(block).__name__}, not text")
        else:
            kind = str(block.get("type") or "text")
            fields = [block.get(name) for name in ("text", "refusal", "transcript")]
            # The answers of one API have their text one level further down.
            texts = (part.get("value") if isinstance(part, dict) else part for part in fields)
            text = next((part for part in texts if isinstance(part, str)), None)
            if text is None and kind in _TEXT_BLOCKS:
                text = text_at(block, "text")
            if text is None or kind in _LEFT_OUT_BLOCKS:
                draft.left_out[_LEFT_OUT_BLOCKS.get(kind, LeftOut.ATTACHMENT)] += 1
            else:
                kinds.add("text" if kind in _TEXT_BLOCKS else kind)
                runs.append(text)
    # Runs of one text join as they stand. Blocks that are texts of their own are separated by
    # a blank line: they are all of one kind, without white space at their ends.
    edges = any(a[-1:].isspace() or b[:1].isspace() for a, b in itertools.pairwise(runs))
    plain = kinds <= {""} or kinds <= {"text"}
    return ("\n\n" if plain and not edges else "").join(runs)


FORMAT = Format("jsonl", lambda sample: any(map(_is_known, sample.values)), _read)
