"""Codex: session rollouts, one JSON record a line (`~/.codex/sessions/**/rollout-*.jsonl`).

The current layout (records with a `payload`) and the first one (bare items) are read. A message
stands there up to three times, as a `response_item`, as an `event_msg` of its own, and since 0.147
as an `item_completed`: it comes out once, and a line of each call of a tool. Answers to what was
asked through a tool are words of the user. Instructions and context that programs put in,
reasoning, and what tools gave back are left out and counted.

A session that was forked or resumed begins with a copy of another's records: `codex_forks` tells
what of it was said before. The session of an agent that a program started is no talk of the user.

Messages have no ids. One that readers before 0.147 knew has the key that it had for them: a hash of
all that they kept up to it. So a rollout that came in earlier gets what it lacked, and no more.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from anaphora.features.importing.formats.answers import answers_of, asks
from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
    companions,
    mapping_at,
    text_at,
)
from anaphora.features.importing.formats.codex_forks import Fork, is_of_agent, read_names
from anaphora.features.importing.formats.drafts import Draft, LeftOut, blocks_of
from anaphora.features.importing.formats.json_reader import JsonRecord, read_log
from anaphora.language.word_lists import by_word, words
from anaphora.store.hashing import digest
from anaphora.text.synthetic import is_one_element, typed_in_codex

_EVENTS = {"user_message": "user", "agent_message": "assistant"}
# Of `item_completed`, in one spelling.
_COMPLETED = {"usermessage": "user", "agentmessage": "assistant", "plan": "assistant"}
_TEXTS = words("input_text output_text text Text")
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
# What readers before 0.147 took for words of a program. Keys are made of what they kept.
_CONTEXT_BEFORE: Final = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|permissions instructions"
    r"|turn_aborted|user_shell_command|skill|collaboration_mode|subagent_notification)\b"
    r"|# AGENTS\.md instructions)"
)
_PLAN: Final = re.compile(r"<proposed_plan>((?:(?!<proposed_plan>).)*?)</proposed_plan>", re.DOTALL)
_NEARBY: Final = 200
"""The most messages between the records of one message."""

Channel = Literal["item", "event", "completed"]


def _detect(sample: Sample) -> bool:
    """Whether the first lines have a session's meta record, payloads, or an old rollout's head."""
    objects = sample.objects()
    if any(
        record.get("type") in ("session_meta", "response_item", "event_msg", "turn_context")
        and "payload" in record
        for record in objects
    ):
        return True
    old_head = bool(objects) and {"id", "timestamp", "instructions"} <= set(objects[0])
    return old_head and "role" not in objects[0]


def _read(file: ImportFile) -> Iterator[ImportItem]:
    rollouts: list[_Rollout] = []

    def take(record: JsonRecord) -> None:
        fields = as_object(record.value, "a record")
        if not rollouts:
            payload = fields.get("payload")
            session_id = (payload if isinstance(payload, dict) else fields).get("id")
            is_head = fields.get("type") in ("session_meta", None)
            if not isinstance(session_id, str) or not session_id or not is_head:
                # Its record is damaged: the id in the file's name.
                uuid_match = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", file.stem)
                session_id = uuid_match[0] if uuid_match else file.stem
            head = payload if is_head and isinstance(payload, dict) else {}
            fork = Fork(session_id, head, fields.get("timestamp"))
            rollouts.append(_Rollout(Draft(file, "codex", session_id), fork, is_of_agent(head)))
        rollouts[0].add(fields, record.place)

    return read_log(
        file,
        take,
        lambda: (imported_record for rollout in rollouts for imported_record in rollout.results()),
    )


@dataclass(slots=True)
class _Saying:
    """A message that was kept: a digest of its words, its key, which records have told it."""

    words: str
    key: str
    told_by: set[Channel]
    chained: bool


class _Rollout:
    """One session while it is read.

    Records of several kinds tell the same words, in any order and a few lines apart: what one has
    told and another tells the first time is the same message.
    """

    def __init__(self, draft: Draft, fork: Fork, of_agent: bool) -> None:
        self.draft = draft
        self._fork = fork
        self._of_agent = of_agent
        self._names: list[str] = []
        self._recent: deque[_Saying] = deque(maxlen=_NEARBY)
        self._asked: dict[str, object] = {}
        self._completed: Counter[str] = Counter()
        # For keys alone: what readers before 0.147 waited for.
        self._twins: Counter[tuple[bool, str]] = Counter()

    def results(self) -> Iterator[ImportItem]:
        """The items so far, under the last name that the session got."""
        if self._of_agent:
            self.draft.leave_out(LeftOut.SIDECHAIN)
        self.draft.copy_of = self._fork.of
        names = [*self._names, *read_names(self.draft.file, self.draft.key)]
        *former_names, self.draft.title = names or [""]
        self.draft.former_titles = tuple(former_names)
        return self.draft.results()

    def add(self, record: dict[str, object], place: str) -> None:
        """Take the next record."""
        record_type = record.get("type")
        kind = record_type if isinstance(record_type, str) else ""
        if "payload" not in record:
            # The first layout: the line is the item itself, or the head, or a state record.
            if kind in _ALL_ITEMS:
                self._read_item(record, record, place)
            else:
                self.draft.left_out[LeftOut.RECORD] += 1
            return
        payload = mapping_at(record, "payload")
        self._fork.follow(record, payload)
        if kind in {"session_meta", "turn_context"}:
            if kind == "session_meta":
                if payload.get("id") in self._fork.of:
                    return
                self.draft.start(payload.get("timestamp") or record.get("timestamp"), place)
            else:
                self.draft.left_out[LeftOut.RECORD] += 1
            git = payload.get("git")
            branch = git.get("branch") if isinstance(git, dict) else ""
            self.draft.locate("codex", directory=payload.get("cwd"), branch=branch)
        elif kind == "response_item":
            self._read_item(payload, record, place)
        elif kind == "event_msg":
            self._read_event(payload, record, place)
        elif kind == "compacted":
            self.draft.left_out[LeftOut.SUMMARY] += 1
        else:
            self.draft.left_out[LeftOut.RECORD] += 1

    def _read_item(
        self, item: Mapping[str, object], record: Mapping[str, object], place: str
    ) -> None:
        kind = text_at(item, "type")
        if kind in _CALLS:
            ts = self._time(record, place)
            arguments = item.get("arguments") or item.get("input") or item.get("action")
            name = item.get("name") or kind.removesuffix("_call")
            key = item.get("call_id") or item.get("id")
            if asks(name) and isinstance(key, str):
                self._asked[key] = arguments
            self.draft.call_tool(key, name, arguments, ts)
            return
        if kind in _OUTPUTS:
            # The user's own words, if the call asked for them.
            call_id, output = item.get("call_id"), item.get("output")
            if isinstance(call_id, str) and call_id in self._asked:
                content = output.get("content", output) if isinstance(output, dict) else output
                if words := answers_of(self._asked.pop(call_id), None, content):
                    answered_at = self._time(record, place)
                    self.draft.add("user", words, key=f"answer:{call_id}", ts=answered_at)
            self.draft.tool_gave(call_id, output)
            return
        if kind != "message":
            self.draft.left_out[_ITEMS.get(kind, LeftOut.RECORD)] += 1
            return
        role = text_at(item, "role")
        if role not in {"user", "assistant"}:
            # "developer" and "system": what the program tells the model.
            self.draft.left_out[LeftOut.INSTRUCTIONS] += 1
            return
        blocks = self._read_blocks(item.get("content"))
        context_texts = [
            text for text in blocks if role != "user" or not _CONTEXT_BEFORE.match(text)
        ]
        spoken_blocks: list[str] = []
        for text in blocks:
            typed = text
            if role == "user":
                # A text that is a single element is dropped: unlike an event, an item may be a
                # block that a program inserted.
                typed = typed_in_codex(text)
                typed = "" if is_one_element(typed) else typed
                self.draft.left_out[LeftOut.INSTRUCTIONS] += len(typed) < len(text.strip())
            spoken_blocks.append(typed)
        self._say(
            role,
            _join_blocks(spoken_blocks),
            record,
            place,
            "item",
            before=_join_blocks(context_texts),
        )

    def _read_blocks(self, content: object) -> list[str]:
        """The texts of a message; what else it has is counted."""
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            raise Malformed(f"the message's content is a {type(content).__name__}, not blocks")
        return list(blocks_of(self.draft, content, texts=_TEXTS))

    def _read_event(
        self, event: Mapping[str, object], record: Mapping[str, object], place: str
    ) -> None:
        kind = text_at(event, "type")
        if kind == "item_completed":
            completed_item = mapping_at(event, "item")
            kind = text_at(completed_item, "type").replace("_", "").lower()
            if kind in _COMPLETED:
                role = _COMPLETED[kind]
                content = completed_item.get("content", completed_item.get("text"))
                text = _join_blocks(self._read_blocks(content))
                text = typed_in_codex(text) if role == "user" else text
                self._say(role, text, record, place, "completed")
            else:
                thought = kind == "reasoning"
                self.draft.left_out[LeftOut.THINKING if thought else LeftOut.RECORD] += 1
            return
        name = event.get("thread_name")
        if kind == "thread_name_updated" and event.get("thread_id") in (None, self.draft.key):
            # Without a name it has none any more.
            self._names.append(name if isinstance(name, str) else "")
        if kind not in _EVENTS:
            thought = kind == "agent_reasoning"
            self.draft.left_out[LeftOut.THINKING if thought else LeftOut.RECORD] += 1
            return
        role, text = _EVENTS[kind], text_at(event, "message")
        is_typed = role == "user"
        text_before = "" if is_typed and _CONTEXT_BEFORE.match(text) else text
        # Of what a program wrote the item is counted.
        text = typed_in_codex(text) if is_typed else text
        self._say(role, text, record, place, "event", before=text_before)

    def _say(
        self,
        role: str,
        text: str,
        record: Mapping[str, object],
        place: str,
        channel: Channel,
        *,
        before: str = "",
    ) -> None:
        """Keep a message that no other record has told; `before` is what older readers kept."""
        chained_key = ""
        if before.strip():
            # The key that older readers gave the message, unless they had it from another record.
            is_event, known_words = channel == "event", _digest_words(role, before)
            if self._twins.get((not is_event, known_words)):
                self._twins[(not is_event, known_words)] -= 1
            else:
                self._twins[(is_event, known_words)] += 1
                chained_key = self.draft.chained_key(role, before)
        if not text.strip():
            return
        words = _digest_words(role, text)
        twin = self._find_twin(words, channel)
        if twin is None and channel == "item" and role == "assistant":
            twin = self._find_told_plan(role, text)
        if twin is not None:
            twin.told_by.add(channel)
            if chained_key and not twin.chained:
                self.draft.rename(twin.key, chained_key)
                twin.chained = True
            return
        key = chained_key
        if not key:
            self._completed[words] += 1
            key = f"completed:{digest(words, str(self._completed[words]))}"
        ts, copied = self._time(record, place), self._fork.is_copying
        self.draft.add(role, text, key=key, ts=ts, copied=copied)
        if not copied:
            self._fork.end()
        self._recent.append(_Saying(words, key, {channel}, bool(chained_key)))
        if channel == "item" and role == "assistant":
            parts = (_digest_words(role, part) for part in _split_around_plan(text))
            self._recent.extend(_Saying(part, key, {channel}, True) for part in parts)

    def _time(self, record: Mapping[str, object], place: str) -> datetime | None:
        if self._fork.is_copying:
            return self._fork.when
        return self.draft.time(record.get("timestamp"), place)

    def _find_twin(self, words: str, channel: Channel) -> _Saying | None:
        """The first message nearby with these words that no record of this kind has told."""
        return next(
            (
                saying
                for saying in self._recent
                if saying.words == words and channel not in saying.told_by
            ),
            None,
        )

    def _find_told_plan(self, role: str, text: str) -> _Saying | None:
        """The last part of a message with a plan, where all of its parts were told apart."""
        parts = [
            self._find_twin(_digest_words(role, part), "item") for part in _split_around_plan(text)
        ]
        if not parts or None in parts:
            return None
        for part in parts:
            if part is not None:
                part.told_by.add("item")
        return parts[-1]


def _join_blocks(blocks: list[str]) -> str:
    return "\n\n".join(text for text in blocks if text.strip())


def _digest_words(role: str, text: str) -> str:
    return digest(role, " ".join(text.split()))


def _split_around_plan(text: str) -> list[str]:
    """A plan within a message, and the text around it: other records have them one by one."""
    plans = _PLAN.findall(text)
    surrounding = _PLAN.sub("", text)
    return [part for part in (surrounding, *plans) if part.strip()] if plans else []


_COMPANIONS = companions(
    r"(?:config|hooks|internal_storage|models_cache|settings|version)\.json"
    r"|(?:history|session_index)\.jsonl|state(?:_\d+)?\.sqlite",
    "ambient-suggestions|automations|cache|logs?|memories|plugins|prompts|rules|shell_snapshots"
    "|skills|sqlite|tmp|vendor_imports|worktrees",
)
FORMAT = Format("codex", _detect, _read, _COMPANIONS)
