"""Claude Code: session transcripts, one JSON record a line (`~/.claude/projects/*/*.jsonl`).

A file may hold several sessions. What the user typed and what the assistant said to the user comes
out, and of each call of a tool a line; tool output, thinking, side tasks of subagents, wrappers
that the program put in, and its own records are left out and counted. A slash command with words
behind it is kept as it was typed. What was typed while the assistant worked stands in a record of
its own kind, or in the queue alone; what the user answered to a question, or said on refusing a
call or a plan, in the output of a tool; a plan in the call of one.

Of a session on the web there is no documented export. What `claude --teleport` writes is such a
transcript; what its service answers is evidently the same records in one object, under `loglines`,
or as `events` with the times that they were created. Both are read.

The log's `parentUuid` forks wherever tools run side by side. A conversation forks only where the
user went back and asked again: between two prompts of the user, the order of the file counts.

The ids of records are unique: a session that was copied under another id (sent to the background,
forked, resumed) is told by them. Some programs give the copies ids of their own, and the records
that they copied in `forkedFrom`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from anaphora.features.importing.formats.answers import (
    answers_of,
    asks,
    plan_of,
    plans,
    read_plan_output,
    refusal_of,
)
from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
    companions,
    mapping_at,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut, blocks_of, check_room
from anaphora.features.importing.formats.json_reader import JsonRecord, read_log
from anaphora.features.importing.formats.queued import PromptQueue
from anaphora.features.importing.formats.tools import output_text
from anaphora.ingest.markup import elements
from anaphora.language.word_lists import by_word, words
from anaphora.store.hashing import digest
from anaphora.text.synthetic import synthetic_kind

_LEFT_OUT_BLOCKS = by_word(
    {
        LeftOut.TOOL_OUTPUT: "web_search_tool_result",
        LeftOut.THINKING: "thinking redacted_thinking",
    }
)
_CALLS = frozenset({"tool_use", "server_tool_use"})
_OUTPUTS = frozenset({"tool_result"})
_MOST_LOOKED_AT = 50
# Others than the user that send messages in between.
_PROGRAMS = words("agent auto-continuation coordinator hook peer system task-notification teammate")
# What may stand alone in the file of a session in which nothing was said.
_RECORDS = words(
    "agent-name agent-setting ai-title bridge-session custom-title last-prompt mode "
    "permission-mode pr-link queue-operation worktree-state"
)
# Agents that the program has of its own to help a session. With `claude --agent NAME`, and from the
# agent view, a session of the user has such a setting too, of "claude" or an agent of the user's.
_HELPERS = words(
    "Explore Plan claude-code-guide general-purpose output-style-setup statusline-setup "
    "verification"
)
_TYPED_BY_USER = (
    ("type", "custom-title"),
    ("promptSource", "typed"),
    ("origin", {"kind": "human"}),
)
_TAG = re.compile(r"</?[a-z][\w-]*>")
_COMMAND = re.compile(r"\s*<command-(name|message|args)>")


def _detect(sample: Sample) -> bool:
    """Whether any of the first lines is a message with a session and an id, or a record."""
    return any(_find_log(record) is not None for record in sample.objects()) or any(
        (
            kind in ("user", "assistant")
            and "message" in record
            and ("uuid" in record or ("sessionId" in record and "messageId" not in record))
        )
        or (kind == "summary" and "leafUuid" in record)
        or kind == "file-history-snapshot"
        or (kind in _RECORDS and isinstance(record.get("sessionId"), str))
        for record in sample.objects()
        if isinstance(kind := record.get("type"), str)
    )


def _read(file: ImportFile) -> Iterator[ImportItem]:
    transcript = _Transcript(file)
    return read_log(file, transcript.take, transcript.results)


@dataclass(slots=True)
class _Transcript:
    """The sessions of a file while it is read; titles by the id of what they are given to: those
    that were made, those that the user gave, and all that there were."""

    file: ImportFile
    sessions: dict[str, _TranscriptSession] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    all_titles: dict[str, None] = field(default_factory=dict)

    def take(self, record: JsonRecord) -> Iterator[ImportItem]:
        fields = as_object(record.value, "a record")
        log = _find_log(fields)
        if log is None:
            self._take(fields, record.place)
            return
        title = fields.get("title") or fields.get("name")
        key = fields.get("session_id") or fields.get("id") or self.file.stem
        if isinstance(title, str):
            self.titles[str(key)] = title
        for number, line in enumerate(log, start=1):
            line_place = f"{record.place}, line {number}"
            try:
                web_record = as_object(line, "a line")
                aside = web_record.get("parent_tool_use_id") is not None
                # With the names that a transcript has for them.
                renamed_fields = {
                    "sessionId": web_record.get("sessionId")
                    or web_record.get("session_id")
                    or str(key),
                    "timestamp": web_record.get("timestamp") or web_record.get("created_at"),
                    "isSidechain": web_record.get("isSidechain") is True or aside,
                }
                self._take({**web_record, **renamed_fields}, line_place)
            except Malformed as error:
                yield self.file.problem(line_place, str(error))

    def _take(self, value: dict[str, object], place: str) -> None:
        kind = value.get("type")
        if not isinstance(kind, str):
            raise Malformed("the record has no type")
        session_id = value.get("sessionId")
        name, made_title = value.get("customTitle"), value.get("aiTitle") or value.get("summary")
        leaf = value.get("leafUuid") or session_id
        if kind not in ("user", "assistant") and isinstance(leaf, str):
            title = made_title if name is None else name
            if isinstance(title, str):
                (self.titles if name is None else self.names)[leaf] = title
                self.all_titles[title.strip()] = None
                return
        key = session_id if isinstance(session_id, str) and session_id else self.file.stem
        if key not in self.sessions:
            check_room(self.file, len(self.sessions))
            self.sessions[key] = _TranscriptSession(
                Draft(self.file, "claude_code", key, unique_keys=True)
            )
        self.sessions[key].take(value, kind, place)

    def results(self) -> Iterator[ImportItem]:
        """The items of the sessions so far; they may go on."""
        for key, session in self.sessions.items():
            titles = (
                title for leaf, title in self.titles.items() if leaf == key or leaf in session.draft
            )
            session.draft.title = self.names.get(key, "") or next(titles, "")
            session.draft.former_titles = tuple(self.all_titles)
            session.say_queued()
            if session.is_helper:
                session.draft.leave_out(LeftOut.SIDECHAIN)
            yield from session.draft.results()


@dataclass(slots=True)
class _TranscriptSession:
    """A session while it is read: the prompt above each record, and the last turn under a prompt.

    `calls` are the calls of tools with which the assistant asks or shows a plan: name, what for.
    """

    draft: Draft
    prompt_of: dict[str, str] = field(default_factory=dict)
    last_under: dict[str, str] = field(default_factory=dict)
    last_record: str | None = None
    queue: PromptQueue = field(default_factory=PromptQueue)
    calls: dict[str, tuple[str, object]] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    agent: str = ""
    is_typed: bool = False

    @property
    def is_helper(self) -> bool:
        """Whether it is the session of a helper that the program started, not of the user."""
        return self.agent in _HELPERS and not self.is_typed

    def take(self, value: dict[str, object], kind: str, place: str) -> None:
        if kind == "agent-setting":
            self.agent = str(value.get("agentSetting"))
        self.is_typed = self.is_typed or any(
            value.get(name) == mark for name, mark in _TYPED_BY_USER
        )
        if kind == "user" and value.get("permissionMode") is not None:
            self.is_typed = True
        if value.get("isSidechain") is True or _is_of_helper(value):
            self.draft.left_out[LeftOut.SIDECHAIN] += 1
            return
        attachment = value.get("attachment") if kind == "attachment" else None
        is_queued = isinstance(attachment, dict) and attachment.get("type") == "queued_command"
        if kind not in ("user", "assistant") and not is_queued:
            self.draft.left_out[LeftOut.RECORD] += 1
            if kind == "queue-operation":
                words = output_text(value.get("content"))
                key = self.queue.move(value, words, self.draft.time(value.get("timestamp"), place))
                if key is not None and key not in self.draft:
                    prompt, follows = self._find_prompt(value)
                    self.draft.pass_over(key, follows)
                    self._settle(key, prompt or key)
                if self.queue.is_long:
                    self.say_queued()
            self._follow(value)
            return
        try:
            if isinstance(attachment, dict):
                self._add_queued_command(value, attachment, place)
            else:
                self._add_message(value, kind, place)
        except Malformed:
            self._follow(value)
            raise

    def say_queued(self) -> None:
        """Say what the queue alone holds, where it went in; count what did not."""
        for prompt in self.queue.sent_alone():
            self.draft.fill(prompt.key, "user", prompt.text, prompt.ts)
        self.draft.left_out[LeftOut.NOT_SENT] += self.queue.count_not_sent()

    def _add_message(self, value: dict[str, object], kind: str, place: str) -> None:
        draft = self.draft
        message = mapping_at(value, "message")
        content = message.get("content")
        draft.locate("claude-code", directory=value.get("cwd"), branch=value.get("gitBranch"))
        if kind == "user" and value.get("isMeta") is not True:
            self._claim(content)
        is_hidden = value.get("isMeta") is True or _read_origin(value) in _PROGRAMS
        left_out_kind: str | None = None
        if value.get("isCompactSummary") is True:
            left_out_kind = LeftOut.SUMMARY
        elif is_hidden or value.get("isApiErrorMessage") is True:
            left_out_kind = LeftOut.HIDDEN
        words = [] if left_out_kind else _read_words(draft, content, typed=kind == "user")
        if left_out_kind:
            draft.left_out[left_out_kind] += 1
        text = "\n\n".join(words)
        ts = draft.time(value.get("timestamp"), place)
        if str(value.get("uuid")) in self.sources:
            # It came in while the assistant worked.
            draft.left_out[LeftOut.REPEATED] += 1
            self._follow(value)
        elif text.strip():
            self._say(value, kind, text, ts, opens=kind == "user")
        else:
            self._follow(value)
        for block in content if isinstance(content, list) else ():
            block_type = str(block.get("type")) if isinstance(block, dict) else ""
            if block_type in _CALLS:
                self._keep_call(value, block, ts)
            elif block_type in _OUTPUTS:
                self._keep_output(value, block, ts)

    def _add_queued_command(
        self, value: dict[str, object], command: Mapping[str, object], place: str
    ) -> None:
        """A prompt that was typed while the assistant worked, or a notice in its place."""
        draft, prompt, source = self.draft, command.get("prompt"), command.get("source_uuid")
        ts = draft.time(value.get("timestamp"), place)
        self._claim(prompt)
        mode = command.get("commandMode")
        origin = _read_origin(command) or _read_origin(value)
        is_meta = value.get("isMeta") is True or command.get("isMeta") is True
        by_program = command.get("humanTurn") is False if origin is None else origin != "human"
        if mode == "bash":
            draft.left_out[LeftOut.COMMAND] += 1
        elif mode not in (None, "prompt") or is_meta or by_program:
            draft.left_out[LeftOut.HIDDEN] += 1
        elif isinstance(source, str) and source in draft:
            draft.left_out[LeftOut.REPEATED] += 1
        elif text := "\n\n".join(_read_words(draft, prompt, typed=True)):
            if isinstance(source, str):
                self.sources.add(source)
            key = "" if "uuid" in value else f"queued:{digest(str(value.get('timestamp')), text)}"
            self._say(value, "user", text, ts, key=key)
            return
        self._follow(value)

    def _claim(self, content: object) -> None:
        blocks = content if isinstance(content, list) else [content]
        for block in blocks:
            text = block.get("text") if isinstance(block, dict) else block
            if isinstance(text, str):
                # Commands stand in tags, which the queue does not have.
                self.queue.claim(_TAG.sub("\n", text) if text.lstrip().startswith("<") else text)

    def _say(
        self,
        value: Mapping[str, object],
        role: str,
        text: str,
        ts: datetime | None,
        *,
        key: str = "",
        opens: bool = False,
    ) -> None:
        """Keep words; with `opens` what follows hangs on them, and the user may go back to them."""
        draft, uuid = self.draft, value.get("uuid")
        origin = value.get("forkedFrom")
        # With the id of the original it is known by that.
        is_renamed = isinstance(origin, dict) and origin.get("messageUuid") != uuid
        parent = origin.get("sessionId") if is_renamed and isinstance(origin, dict) else None
        copied = isinstance(parent, str) and parent != draft.key
        if copied and not draft.copy_of:
            draft.copy_of = (str(parent),)
        prompt, follows = self._find_prompt(value)
        previous_count = draft.count
        base_key = key or (uuid if isinstance(uuid, str) else "")
        key = draft.add(role, text, key=base_key, parent=follows, ts=ts, copied=copied)
        if draft.count > previous_count:
            # The same line again: what follows hangs where it hung.
            self._settle(key, key if opens or prompt is None else prompt)

    def _find_prompt(self, value: Mapping[str, object]) -> tuple[str | None, str | None]:
        """The prompt that a record lies under, and the last turn below that."""
        parent_key = self._find_parent(value)
        prompt = self.prompt_of.get(parent_key) if parent_key else None
        if prompt is None:
            prompt = self.prompt_of.get(self.last_record or "")
        return prompt, self.last_under.get(prompt) if prompt else None

    def _settle(self, key: str, prompt: str) -> None:
        self.last_under[prompt] = key
        self.prompt_of[key] = prompt
        self.last_record = key

    def _keep_call(
        self, value: Mapping[str, object], block: Mapping[str, object], ts: datetime | None
    ) -> None:
        key, name, arguments = block.get("id"), block.get("name"), block.get("input")
        if (asks(name) or plans(name)) and isinstance(key, str):
            if len(self.calls) < self.draft.file.bounds.messages:
                self.calls[key] = (str(name), arguments)
            if plans(name):
                self._say_through(value, key, "assistant", plan_of(arguments), ts)
        self.draft.call_tool(key, name, arguments, ts)

    def _keep_output(
        self, value: Mapping[str, object], block: Mapping[str, object], ts: datetime | None
    ) -> None:
        call, content = block.get("tool_use_id"), block.get("content")
        is_failed = block.get("is_error") is True
        key = call if isinstance(call, str) else ""
        name, arguments = self.calls.get(key, ("", None))
        tool_result = value.get("toolUseResult", value.get("tool_use_result"))
        denial = value.get("toolDenialKind")
        if is_failed if denial is None else denial == "user-rejected":
            words = refusal_of(content, value.get("userFeedback"))
            self._say_plan(value, key, arguments, content, tool_result, ts)
            self._say_through(value, key, "user", words, ts)
        elif asks(name) or (
            isinstance(tool_result, dict)
            and "questions" in tool_result
            and "answers" in tool_result
            and not self.draft.knows_call(key)
        ):
            self._say_through(value, key, "user", answers_of(arguments, tool_result, content), ts)
        elif plans(name):
            self._say_plan(value, key, arguments, content, tool_result, ts)
        self.draft.tool_gave(call, content, failed=is_failed)

    def _say_plan(
        self,
        value: Mapping[str, object],
        call: str,
        arguments: object,
        content: object,
        tool_result: object,
        ts: datetime | None,
    ) -> None:
        """Say the plan that an output repeats, unless its call told it."""
        if not plans(self.calls.get(call, ("", None))[0]):
            return
        repeated_plan, is_edited = read_plan_output(content)
        plan = repeated_plan or plan_of(tool_result)
        if plan and plan.strip() != plan_of(arguments).strip():
            self._say_through(value, f"{call}:plan", "user" if is_edited else "assistant", plan, ts)

    def _say_through(
        self, value: Mapping[str, object], call: str, role: str, text: str, ts: datetime | None
    ) -> None:
        """Keep words that stand in the call of a tool, or in its output."""
        if not text.strip():
            return
        uuid = value.get("uuid")
        parent_key = uuid if isinstance(uuid, str) else self.draft.key
        if parent_key not in self.prompt_of:
            self._follow(value)
        parent_record = {"parentUuid": parent_key} if parent_key in self.prompt_of else value
        self._say(parent_record, role, text, ts, key=f"{parent_key}:{call}")

    def _find_parent(self, value: Mapping[str, object]) -> str | None:
        """The record that this one names as its parent, if known; the one before it otherwise.

        A compaction starts a new root and names what it continues in `logicalParentUuid`.
        """
        for name in ("parentUuid", "logicalParentUuid"):
            parent_key = value.get(name)
            if isinstance(parent_key, str) and parent_key in self.prompt_of:
                return parent_key
        return self.last_record

    def _follow(self, value: Mapping[str, object]) -> None:
        """Remember under which prompt a record lies that is not kept."""
        uuid = value.get("uuid")
        if not isinstance(uuid, str) or len(self.prompt_of) >= self.draft.file.bounds.messages:
            return
        lies_under = self.prompt_of.get(self._find_parent(value) or "")
        if lies_under is not None:
            self.prompt_of[uuid] = lies_under
            self.last_record = uuid


def _is_of_helper(value: Mapping[str, object]) -> bool:
    """Whether a record is of a helper, or of a member of a team that another session leads."""
    if isinstance(value.get("agentId"), str):
        return value.get("type") in ("user", "assistant")
    member = value.get("agentName")
    return isinstance(value.get("teamName"), str) and member not in (None, "", "team-lead")


def _find_log(value: Mapping[str, object]) -> list[object] | None:
    """The records of a session on the web, where a value is one."""
    for name in ("loglines", "events", "data"):
        records = value.get(name)
        if isinstance(records, list) and any(
            isinstance(line, dict)
            and line.get("type") in ("user", "assistant")
            and isinstance(line.get("message"), dict)
            and "uuid" in line
            for line in records[:_MOST_LOOKED_AT]
        ):
            return records
    return None


def _read_origin(value: Mapping[str, object]) -> str | None:
    """The sender of a message in its record; None if it has none."""
    origin = value.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else origin
    return kind if isinstance(kind, str) else None


def _read_words(draft: Draft, content: object, *, typed: bool) -> list[str]:
    """The texts of a message, block by block, without what is left out."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        defect = "missing" if content is None else f"a {type(content).__name__}"
        raise Malformed(f"the message's content is {defect}, not text or blocks")
    words: list[str] = []
    for text in blocks_of(draft, content, _LEFT_OUT_BLOCKS, kept=_CALLS | _OUTPUTS):
        # A program's words stand alone in their message or block.
        left_out: str | None = synthetic_kind(text) if typed else None
        if typed and not left_out and _COMMAND.match(text):
            name = next(elements(text, "command-name"), None)
            arguments = next(elements(text, "command-args"), "").strip()
            if not arguments:
                left_out = LeftOut.COMMAND
            elif name is not None:
                # As it was typed, out of the tags that the program put around it.
                words.append(f"{name.strip()} {arguments}")
                continue
        if left_out:
            draft.left_out[left_out] += 1
        elif text.strip():
            words.append(text)
    return words


_COMPANIONS = companions(
    r"agent-[^/]*\.meta\.json|(?:\.?claude|keybindings|mcp|settings(?:\.local)?|statsig"
    r"|[a-z-]+-(?:cache|index|limits|pointer|settings|state))\.json|(?:history|journal)\.jsonl",
    "backups|cache|debug|ide|jobs|plugins|sessions|session-env|skills|statsig|subagents|tasks|teams"
    "|telemetry|todos|usage-data|workflows",
)
FORMAT = Format("claude_code", _detect, _read, _COMPANIONS)
