"""The descriptions of parameters: one text for REST, MCP and the command line.

A name means the same everywhere, except for the few listed with their context: a path of the HTTP
API, or the name of a schema. Plain data, without a library.
"""

from __future__ import annotations

from typing import Final

from anaphora.values.conversations import READ_AWAITED, READ_MOST
from anaphora.values.memories import MEMORY_FIELDS

QUERY: Final = "What to look for, in your own words."
TOKENS: Final = "At most this many tokens."
NOTE: Final = "The note, with the names of what it concerns."
FILTER_EXAMPLE: Final = '{"AND": [{"category": "development"}, {"tags": {"contains": "testing"}}]}'

_EVERYWHERE: Final = {
    **{name: field.meaning for name, field in MEMORY_FIELDS.items()},
    "after": "Only entries after this number.",
    "again": "Bring back turns that were deleted or redacted here.",
    "as_of": "Answer as of this moment in the past.",
    "budget": "The limits of the call.",
    "conversation_id": "The conversation.",
    "cursor": "The `cursor` of the previous page; without it, the first page.",
    "dedupe": "Whether a restatement reinforces the stored memory instead of being added.",
    "device": "The device, by its name in the project.",
    "date": "Its date; by default that of its file.",
    "document_id": "The document.",
    "dry_run": "Report what would be forgotten; change nothing.",
    "dollars": "Maximum cost of model calls in dollars, by the configured prices.",
    "entries": "Entries as devices make them, each following the last one of its device.",
    "exclude": "Texts the model already sees; they are removed before the budget is filled.",
    "execution_seconds": "Seconds that one block of the model's code may run; without it, "
    "`ANAPHORA_EXECUTION_SECONDS`, else 10.",
    "explain": "Also return what was rejected, each with the reason.",
    "filters": "A filter; applied before results are cut to the limit.",
    "focus": "The task, in one or several statements; name files and symbols.",
    "format": "The importer's name; without it the format is detected.",
    "history": "Also past versions.",
    "guarded": "Refuse it unless what it supersedes is current and its path has no other value.",
    "id": "The memory to forget.",
    "importance": "1 to 5; higher ranks slightly before equal notes.",
    "include_memory": "Also look at lasting memories.",
    "include_sources": "Also return scores and relations.",
    "index": "The position of the turn in its conversation, from 0.",
    "intent_id": "An id of the caller's own, stored with the turn.",
    "iterations": "Programs that the model writes and runs; the answer comes after them.",
    "keep_file": "Store the file with its text; by default unless the text had secrets.",
    "kind": "What kind of note it is.",
    "items": "The memories, in order.",
    "last": "Only this many of its last turns; by default all.",
    "limit": "At most this many.",
    "memory_id": "The memory.",
    "min_confidence": "Return nothing if the probability that a result answers the question is "
    "lower: 0 to 1, by default a calibrated floor. 0 shows the nearest, however far.",
    "min_score": "Leave out lower scores. 0 also returns memories that have nothing in common with "
    "the question; by default they are left out unless there are filters.",
    "mode": "`hybrid`: semantic and keyword; `words`: keyword only (BM25); `vector`: cosine only.",
    "model": "Whether a model may be called; without one a cycle costs nothing.",
    "name": "What to call it; without one, the folder's name.",
    "origin": "Where it comes from.",
    "other_id": "The other memory of the two.",
    "position": "Its position among the pinned memories, from 1; by default last.",
    "project": "Name, id or folder of the project; without one, all.",
    "project_id": "The project that the devices share.",
    "query_hash": "The digest of a path or a conversation, as the project's devices make it.",
    "query": f"{QUERY} A blank query returns nothing.",
    "question": "The question, in your own words.",
    "read": "How many of the best candidates are read together with the question: 0 (none) to "
    f"{READ_MOST}, by default {READ_AWAITED}. None without a reader (`ANAPHORA_READER`).",
    "redact": "Whether keys and card numbers are redacted.",
    "role": "Who speaks: `user`, `assistant`, `system`, `tool`, or another word.",
    "root": "The folder, on the server's machine.",
    "scope": "How far to look.",
    "seconds": "Seconds that the whole answer may take.",
    "soft": "Keep the history, only leave it out of recall.",
    "shape": "Whether the project itself is described.",
    "short": "The end of the id, or all of it.",
    "since": "Only results from this time on; a day counts from its beginning.",
    "speaker": "The speaker's name.",
    "status": "Only those of this status.",
    "settled": "Resolved ones, to undo a resolution.",
    "sub_calls": "Calls of the cheap model.",
    "subject": "What it is about.",
    "summary": "The entry.",
    "tag": "A word to filter by; may be repeated.",
    "text": "The text, stored verbatim.",
    "timeout": "Wait at most this many seconds.",
    "whole": "Return long turns in full instead of a passage: the best always, others if they fit.",
    "title": "The title; if empty, the first question becomes the title again.",
    "tokens": "Tokens of all calls together, in and out.",
    "top_k": "At most this many hits.",
    "topic": "What the session is about, if that is known.",
    "trace_id": "The trace.",
    "ts": "When it was said; without it, now.",
    "undoable": "Hide it at once and erase it after a day; until then it can be restored.",
    "until": "Only results before this time; a day counts to its end.",
    "turns": "In order; either all are stored or none.",
    "verdict": "The verdict: `id` `replaces` the other, they `both_hold`, or `id` is `wrong`.",
    "within": "A folder of the project: the map shows its files.",
}
_ABOUT: Final = "Name, id or folder of the project that it is about."
_CLEANED: Final = "The text; keys and card numbers are redacted."
_ONE: Final = "Name, id or folder of the project."
_TOKENS: Final = "At most this many tokens of text."
LIMIT: Final = "Time limit in seconds; after it, keywords alone answer, and the answer says so."
_QUESTIONS: Final = ("Ask", "SearchQuestion", "TurnQuestion", "ContextQuestion")
_HERE: Final = {
    ("ContextQuestion", "budget"): _TOKENS,
    ("TurnQuestion", "top_k"): "At most this many hits. Without it, `ANAPHORA_RECALL_TOP_K`, "
    "else 6.",
    ("TurnQuestion", "budget"): f"{_TOKENS} Without it, `ANAPHORA_RECALL_BUDGET`, else 2,500.",
    **{(question, "timeout"): LIMIT for question in _QUESTIONS},
    ("SearchQuestion", "budget"): "At most this many tokens of snippets.",
    ("SearchQuestion", "project"): "Only what belongs to this project: name, folder or repository.",
    ("SearchQuestion", "speaker"): "Only turns by this speaker: the name, or its first word.",
    ("SearchQuestion", "tags"): "Only memories, notes and documents with all of these.",
    ("/v1/audit", "before"): "Only entries with lower numbers: the next page.",
    ("/v1/audit", "action"): "Only entries of this kind.",
    ("/v1/audit", "about"): "Only entries about this memory, note or conversation.",
    ("/v1/audit", "question"): "Only entries of this question, in exactly this wording.",
    ("/v1/audit/verify", "tip"): "An earlier tip: `NUMBER:LINK`.",
    ("Unpinning", "id"): "The memory.",
    ("Pinning", "id"): "The memory.",
    ("/v1/core", "budget"): f"{_TOKENS} Without it, `ANAPHORA_CORE_TOKENS`, else 400.",
    ("Unforgetting", "id"): "The memory to restore.",
    ("Forgetting", "filters"): "All memories that match; give either this or `id`.",
    ("Reopening", "id"): "One of the two memories.",
    ("Settling", "id"): "The memory that the verdict is about.",
    ("NewObservation", "text"): NOTE,
    ("/v1/warm-up", "budget"): _TOKENS,
    ("TurnQuestion", "speaker"): "Only turns by this speaker: the name, or its first word.",
    ("TurnQuestion", "role"): "Only turns in this role; `other` is any but the first two.",
    ("TurnQuestion", "conversation_id"): "Only this conversation; without it, all.",
    ("DeepQuestion", "conversation_id"): "The conversation, where `scope` asks for one.",
    ("AppendTurns", "title"): "The title of a conversation that begins with these turns.",
    ("/v1/resolve", "kind"): "The kind of thing that it identifies.",
    ("NewMemoryBody", "text"): _CLEANED,
    ("MemoryChanges", "text"): _CLEANED,
    ("NewObservation", "project"): _ABOUT,
    ("NewDiaryEntry", "project"): _ABOUT,
    ("/v1/projects/{project}", "project"): _ONE,
    ("/v1/projects/{project}/map", "project"): _ONE,
    ("NewMemoryBody", "conversation_id"): "Which conversation it comes from.",
    ("/v1/documents", "name"): "Its name; another file of this name is a new version.",
    ("/v1/documents", "title"): "Its title; by default that of its file.",
    ("/v1/memories/history", "path"): "The key of the memories, e.g. `user.editor`.",
}


def meaning(name: str, place: str = "") -> str:
    """The description of `name` in the context `place`; "" if there is none."""
    return _HERE.get((place, name)) or _EVERYWHERE.get(name, "")
