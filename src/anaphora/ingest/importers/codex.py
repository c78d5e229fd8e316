"""Codex: session rollouts, one JSON record a line (`~/.codex/sessions/**/rollout-*.jsonl`).

The current layout (records with a `payload`) and the first one (bare items) are read. A message
that stands there twice, as a `response_item` and as an `event_msg`, comes out once, and a line of
each call of a tool. Instructions and environment that the program put in, reasoning, and what tools
gave back are left out and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from anaphora.core.synthetic import is_context_of_codex
from anaphora.core.word_lists import by_word, words
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
from anaphora.store.hashing import digest

_EVENTS = {"user_message": "user", "agent_message": "assistant"}
_TEXTS = words("input_text output_text text")
_ITEMS = by_word(
    {
        LeftOut.THINKING: "reasoning",
        LeftOut.TOOL_CALL: "image_generation_call",
        LeftOut.SUMMARY: "compaction",
        LeftOut.RECORD: "ghost_snapshot",
    }
)
_CALLS = words("function_call custom_tool_call local_shell_call web_search_call tool_search_call")
_OUTPUTS = words("function_call_output custom_tool_call_output tool_search_output")
_ALL_ITEMS = frozenset({"message", *_ITEMS, *_CALLS, *_OUTPUTS})


def _detect(sample: Sample) -> bool:
    """Whether the first lines have a session's meta record, payloads, or an old rollout's head."""
    objects = sample.objects()
    if any(
        value.get("type") in ("session_meta", "response_item", "event_msg", "turn_context")
        and "payload" in value
        for value in objects
    ):
        return True
    old_head = bool(objects) and {"id", "timestamp", "instructions"} <= set(objects[0])
    return old_head and "role" not in objects[0]


def _read(file: ImportFile) -> Iterator[ImportItem]:
    rollouts: list[_Rollout] = []

    def take(record: Record) -> None:
        value = as_object(record.value, "a record")
        if not rollouts:
            rollouts.append(_Rollout(Draft(file, "codex", _session_id(file, value))))
        rollouts[0].add(value, record.place)

    return read_log(file, take, lambda: (item for one in rollouts for item in one.draft.results()))


def _session_id(file: ImportFile, first: Mapping[str, object]) -> str:
    """The session's id; where its record is damaged, the one in the file's name."""
    payload = first.get("payload")
    head = payload if isinstance(payload, dict) else first
    found = head.get("id")
    if isinstance(found, str) and found and first.get("type") in ("session_meta", None):
        return found
    named = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", file.stem)
    return named[0] if named else file.stem


class _Rollout:
    """One session while it is read.

    Items and events tell the same words, in either order and a few lines apart; whichever comes
    first is kept, and the other one is taken off `_twins`.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._twins: Counter[tuple[bool, str]] = Counter()

    def add(self, record: dict[str, object], place: str) -> None:
        told = record.get("type")
        kind = told if isinstance(told, str) else ""
        if "payload" not in record:
            # The first layout: the line is the item itself, or the head, or a state record.
            if kind in _ALL_ITEMS:
                self._item(record, record, place)
            else:
                self.draft.left_out[LeftOut.RECORD] += 1
            return
        payload = mapping_at(record, "payload")
        if kind in {"session_meta", "turn_context"}:
            if kind == "session_meta":
                self.draft.start(payload.get("timestamp") or record.get("timestamp"), place)
            else:
                self.draft.left_out[LeftOut.RECORD] += 1
            git = payload.get("git")
            branch = git.get("branch") if isinstance(git, dict) else ""
            self.draft.locate("codex", directory=payload.get("cwd"), branch=branch)
        elif kind == "response_item":
            self._item(payload, record, place)
        elif kind == "event_msg":
            self._event(payload, record, place)
        elif kind == "compacted":
            self.draft.left_out[LeftOut.SUMMARY] += 1
        else:
            self.draft.left_out[LeftOut.RECORD] += 1

    def _item(self, item: Mapping[str, object], record: Mapping[str, object], place: str) -> None:
        kind = text_at(item, "type")
        if kind in _CALLS:
            ts = self.draft.time(record.get("timestamp"), place)
            given = item.get("arguments") or item.get("input") or item.get("action")
            name = item.get("name") or kind.removesuffix("_call")
            self.draft.call_tool(item.get("call_id") or item.get("id"), name, given, ts)
            return
        if kind in _OUTPUTS:
            self.draft.tool_gave(item.get("call_id"), item.get("output"))
            return
        if kind != "message":
            self.draft.left_out[_ITEMS.get(kind, LeftOut.RECORD)] += 1
            return
        role = text_at(item, "role")
        if role not in {"user", "assistant"}:
            # "developer" and "system": what the program tells the model.
            self.draft.left_out[LeftOut.INSTRUCTIONS] += 1
            return
        text = "\n\n".join(self._words(item.get("content"), typed=role == "user"))
        if text.strip():
            self._say(role, text, record, place, event=False)

    def _words(self, content: object, *, typed: bool) -> list[str]:
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            raise Malformed(f"the message's content is a {type(content).__name__}, not blocks")
        words: list[str] = []
        for text in blocks_of(self.draft, content, texts=_TEXTS):
            if typed and is_context_of_codex(text):
                self.draft.left_out[LeftOut.INSTRUCTIONS] += 1
            elif text.strip():
                words.append(text)
        return words

    def _event(self, event: Mapping[str, object], record: Mapping[str, object], place: str) -> None:
        kind = text_at(event, "type")
        if kind not in _EVENTS:
            thought = kind == "agent_reasoning"
            self.draft.left_out[LeftOut.THINKING if thought else LeftOut.RECORD] += 1
            return
        text = text_at(event, "message")
        if _EVENTS[kind] == "user" and is_context_of_codex(text):
            # Its item is counted.
            return
        if text.strip():
            self._say(_EVENTS[kind], text, record, place, event=True)

    def _say(
        self, role: str, text: str, record: Mapping[str, object], place: str, *, event: bool
    ) -> None:
        words = digest(role, " ".join(text.split()))
        if self._twins.get((not event, words)):
            self._twins[(not event, words)] -= 1
            return
        self.draft.add(role, text, ts=self.draft.time(record.get("timestamp"), place))
        self._twins[(event, words)] += 1


FORMAT = Format("codex", _detect, _read)
