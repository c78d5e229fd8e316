"""Cursor: transcripts of its agent (`~/.cursor/projects/*/agent-transcripts/**/*.jsonl`).

One message a line, without ids or times. What the user typed comes out of the tags that the program
puts around it; of each call of a tool comes a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from anaphora.ingest.importers.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
    mapping_at,
    text_at,
)
from anaphora.ingest.importers.drafts import Draft, LeftOut, blocks_of
from anaphora.ingest.importers.json_reader import Record, read_log

_ROLES = ("user", "assistant")
_CALLS = frozenset({"tool_use"})
_OUTPUTS = {"tool_result": LeftOut.TOOL_OUTPUT, "thinking": LeftOut.THINKING}
_TIMESTAMP = re.compile(r"\s*<timestamp>.*?</timestamp>\s*", re.DOTALL)
_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)


def _is_message(value: dict[str, object]) -> bool:
    message = value.get("message")
    return str(value.get("role")) in _ROLES and isinstance(message, dict) and "type" not in value


def _detect(sample: Sample) -> bool:
    return any(map(_is_message, sample.objects()))


def _read(file: ImportFile) -> Iterator[ImportItem]:
    draft = Draft(file, "cursor", file.stem)
    draft.locate("cursor")

    def take(record: Record) -> None:
        _take(draft, as_object(record.value, "a record"))

    return read_log(file, take, draft.results)


def _take(draft: Draft, value: dict[str, object]) -> None:
    if str(value.get("role")) not in _ROLES:
        draft.left_out[LeftOut.RECORD] += 1
        return
    role, message = text_at(value, "role"), mapping_at(value, "message")
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Malformed(f"the message's content is a {type(content).__name__}, not blocks")
    words = [_typed(text) for text in blocks_of(draft, content, _OUTPUTS, kept=_CALLS)]
    text = "\n\n".join(word for word in words if word.strip())
    if text:
        draft.add(role, text)
    for block in content:
        if str(block.get("type")) in _CALLS:
            draft.call_tool(block.get("id"), block.get("name"), block.get("input"), None)


def _typed(text: str) -> str:
    """What the user typed, out of the tags around it; other text as it is."""
    queries = _QUERY.findall(text)
    return "\n\n".join(queries) if queries else _TIMESTAMP.sub("", text, count=1)


FORMAT = Format("cursor", _detect, _read)
