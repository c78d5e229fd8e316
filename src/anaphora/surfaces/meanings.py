"""What parameters mean: one text for REST, MCP and the command line, where they say the same.

A name means the same wherever it stands, but for the few that are listed with their place: a path
of the HTTP API, or the name of a schema. Plain data, without a library.
"""

from __future__ import annotations

from typing import Final

from anaphora.values.memories import MEMORY_FIELDS

QUERY: Final = "What to look for, in your own words."
TOKENS: Final = "At most this many tokens."
NOTE: Final = "The note, with the names of what it concerns."
FILTER_EXAMPLE: Final = '{"AND": [{"category": "development"}, {"tags": {"contains": "testing"}}]}'

_EVERYWHERE: Final = {
    **{name: field.meaning for name, field in MEMORY_FIELDS.items()},
    "again": "Bring back turns that were deleted or redacted here.",
    "as_of": "Answer for this moment of the past: what was true then.",
    "budget": "What may be spent at most.",
    "conversation_id": "The conversation.",
    "cursor": "Where the page before ended: its `cursor`. Without it, the first page.",
    "dollars": "Money for models, by the prices that are configured.",
    "exclude": "Texts that are in sight already: they are left out before anything is filled.",
    "execution_seconds": "Seconds that one block of the model's code may run.",
    "explain": "Also return what was rejected, each with the reason.",
    "filters": "Only what the filter lets through; applied before anything is cut.",
    "focus": "The task, in one or several statements; name files and symbols.",
    "format": "The importer's name; without it the format is recognised.",
    "id": "The memory to forget.",
    "importance": "1 to 5: one of 5 stands a little before its equals.",
    "include_memory": "Also look at lasting memories.",
    "include_sources": "Also return scores and relations.",
    "index": "The place of the turn in its conversation, from 0.",
    "intent_id": "What the turn belongs to, in the caller's own words; kept with it.",
    "iterations": "Programs that the model writes and runs; the answer comes after them.",
    "kind": "What kind of note it is.",
    "limit": "At most this many.",
    "memory_id": "The memory.",
    "min_score": "Leave out what scores lower. 0 shows also what has nothing in common with the "
    "question; without it and without filters that is left out.",
    "mode": "`hybrid`: meaning and words; `words`: words alone; `vector`: bare cosine.",
    "model": "Whether a model may be asked; without one a cycle costs nothing.",
    "name": "What to call it; without one, the folder's name.",
    "project": "Name, id or folder of the project; without one, all.",
    "query": f"{QUERY} Of a blank one comes an empty answer.",
    "question": "The question, in your own words.",
    "role": "Who speaks: `user`, `assistant`, `system`, `tool`, or another word.",
    "root": "The folder, on the server's machine.",
    "scope": "How far to look.",
    "seconds": "Seconds that the whole answer may take.",
    "soft": "Keep the history, only leave it out of recall.",
    "speaker": "The speaker's name.",
    "status": "Only those of this status.",
    "sub_calls": "Calls of the cheap model.",
    "subject": "What it is about.",
    "summary": "The entry.",
    "text": "The words, kept as they are.",
    "title": "The title; with an empty one the first question stands for it again.",
    "tokens": "Tokens of all calls together, in and out.",
    "top_k": "At most this many hits.",
    "topic": "What the session is about, if that is known.",
    "trace_id": "The trace.",
    "ts": "When it was said; without it, now.",
    "turns": "In their order; all of them are kept, or none.",
    "within": "A folder of the project: the map shows its files.",
}
_ABOUT: Final = "Name, id or folder of the project that it is about."
_CLEANED: Final = "The words to keep; keys and card numbers are taken out of them."
_ONE: Final = "Name, id or folder of the project."
_TOKENS: Final = "At most this many tokens of text."
_HERE: Final = {
    ("ContextQuestion", "budget"): _TOKENS,
    ("TurnQuestion", "budget"): _TOKENS,
    ("Forgetting", "filters"): "All that the filter finds; give either this or `id`.",
    ("NewObservation", "text"): NOTE,
    ("/v1/warm-up", "budget"): _TOKENS,
    ("TurnQuestion", "conversation_id"): "Only this conversation; without it, all.",
    ("DeepQuestion", "conversation_id"): "The conversation, where `scope` asks for one.",
    ("NewMemoryBody", "text"): _CLEANED,
    ("MemoryChanges", "text"): _CLEANED,
    ("NewObservation", "project"): _ABOUT,
    ("NewDiaryEntry", "project"): _ABOUT,
    ("/v1/projects/{project}", "project"): _ONE,
    ("/v1/projects/{project}/map", "project"): _ONE,
    ("NewMemoryBody", "conversation_id"): "Which conversation it comes from.",
    ("/v1/memories/history", "path"): "What the memories are values of, as `user.editor`.",
}


def meaning(name: str, place: str = "") -> str:
    """What `name` means at `place`; "" where nobody said."""
    return _HERE.get((place, name)) or _EVERYWHERE.get(name, "")
