"""What each tool of the kernel does: one call of the facade, and its result as JSON and as text.

A model reads the results, so secrets in recalled text are masked.

The calls run in a worker thread with validated arguments, and raise the facade's own errors.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import InvalidInput, NotFound
from anaphora.ingest.live_turns import extend_by_new
from anaphora.ingest.secrets.masking import mask, mask_handle
from anaphora.surfaces.mcp_server import render
from anaphora.surfaces.mcp_server.tool import Answer, Arguments, CallContext
from anaphora.surfaces.wire import (
    named_in,
    plain,
    recalled_turns,
    times_between,
    would_forget,
)
from anaphora.system.repositories import repository_of
from anaphora.values.conversations import READ_AWAITED, NewTurn, Recall
from anaphora.values.memories import NewMemory

if TYPE_CHECKING:
    from anaphora.api.memory import Memory

SEARCHED: Final = 8
"""Results of each lane that `search` lists."""
_FETCHED: Final = frozenset(("turn", "memory", "document"))
"""Kinds that `search` writes before an id."""
_TITLE: Final = 80
_NAMED: Final = 20
"""Memories whose words are shown before they are forgotten."""
_OF_SEARCH: Final = frozenset(("text", "matches", "answers", "index"))
"""Fields of a hit that `recall` omits: `fetch` gives the text, and `score` is the probability."""
_FORMULA: Final = frozenset(("similarity", "decay", "reinforcement"))
"""The factors of a memory's score, omitted unless they alone make it."""
_PARTS: Final = frozenset(("factors", "related", "read"))
"""Fields that only explain the order of hits, omitted everywhere."""
_EMPTY: Final[tuple[Any, ...]] = ("", None, [], {})


def recall(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Search everything stored."""
    times = times_between(arguments, memory.local_time)
    options = {**arguments, **times, "directory": context.directory, "read": READ_AWAITED}
    answer = mask(memory.search(**options))
    # One line about each other text: that it contradicts comes before what its time tells.
    lines = [
        {line.partition('"')[2] or line: line for line in reversed(hit.versions)} for hit in answer
    ]
    hits = [
        replace(hit, versions=tuple(reversed(by_text.values())))
        for hit, by_text in zip(answer, lines, strict=True)
    ]
    answer = replace(answer, hits=tuple(hits))
    text = render.found_text(answer)
    return _rows(answer, text, _OF_SEARCH)


def recall_memory(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Search lasting memories; JSON in the text form, too."""
    hits = memory.recall(**arguments, read=READ_AWAITED)
    left_out = frozenset() if arguments["mode"] == "vector" else _FORMULA
    answer = _rows(hits, None, left_out)
    excerpts = [render.excerpted(row, arguments["question"]) for row in answer.data]
    return replace(answer, note=render.JSON_DATA, excerpts=excerpts)


def store_memory(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Store one memory."""
    fields = dict(arguments)
    if "supersedes" in fields:
        try:
            fields["supersedes"] = memory.resolve_id(fields["supersedes"], "memory")
        except InvalidInput as error:
            raise error.named("supersedes") from None
    if context.directory is not None and "source" not in fields:
        # The source later tells which project the memory belongs to.
        fields["source"] = repository_of(context.directory) or context.directory
    report = memory.remember(**fields)
    return Answer(plain(report), render.remembered_text(report))


def update_memory(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Change a memory, or show what would change."""
    changes = {name: change for name, change in arguments.items() if name not in {"id", "dry_run"}}
    if not changes:
        raise InvalidInput("content", "", "nothing to change: give content or another field")
    record_id = memory.resolve_id(arguments["id"], "memory")
    if arguments["dry_run"]:
        record = memory.get(record_id)
        preview = {"id": record_id, "action": "none", "before": plain(record), "changes": changes}
        return Answer(preview, f"Nothing was changed. It is now:\n{render.memory_text(record)}")
    report = memory.update(record_id, **changes)
    return Answer(plain(report), render.remembered_text(report))


def recall_conversation(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Search the turns of earlier conversations."""
    times = times_between(arguments, memory.local_time)
    options = {"conversation_id": None, **arguments, **times, "read": READ_AWAITED}
    answer = mask(recalled_turns(memory, **options))
    return _rows(answer, render.turns_text(answer, arguments["question"]), frozenset())


def _rows(found: Recall[Any], text: str | None, left_out: frozenset[str]) -> Answer:
    """The hits without what only explains their order, and without the fields of `left_out`."""
    notices = [*found.notices, *([render.silence_text(found)] if found.nearest else [])]
    rows = [_row(hit, _PARTS | left_out) for hit in found]
    return Answer(rows, text, found.degraded, tuple(notices), found.confidence)


def _row(record: Any, left_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A frozen value as JSON, without empty fields and those that have their usual value."""
    usual = {field.name: field.default for field in (*fields(record), *fields(NewMemory))}
    return {
        name: field
        for name, field in plain(record).items()
        if name not in left_out and field not in (*_EMPTY, usual.get(name, MISSING))
    }


def forget(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Delete by id or by filter."""
    chosen_arguments = dict(arguments)
    if chosen_arguments.get("id") is not None:
        chosen_arguments["id"] = memory.resolve_id(chosen_arguments["id"], "memory")
    report = memory.forget(**chosen_arguments)
    if not arguments["dry_run"]:
        return Answer(plain(report), render.forgotten_text(report))
    would_go = would_forget(memory, report, _NAMED)
    return Answer(named_in(report, would_go), render.would_forget_text(report, would_go))


def contradictions(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """List memories that seem to contradict each other."""
    pairs = memory.contradictions(**arguments)
    return Answer([plain(pair) for pair in pairs], render.contradictions_text(pairs))


def settle_contradiction(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Resolve a contradiction."""
    ids = {name: memory.resolve_id(arguments[name], "memory") for name in ("id", "other_id")}
    report = memory.settle_contradiction(**{**arguments, **ids})
    return Answer(plain(report), render.contradictions_text([report]))


def reopen_contradiction(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Undo the resolution of a contradiction."""
    ids = {name: memory.resolve_id(arguments[name], "memory") for name in ("id", "other_id")}
    report = memory.reopen_contradiction(**ids)
    return Answer(plain(report), render.contradictions_text([report]))


def save_turns(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Store the turns that are not yet at the end of the thread."""
    to, is_ended = arguments["conversation_id"], arguments["ended"]
    turns = [
        NewTurn(turn["role"], turn["text"]) for turn in arguments["turns"] if turn["text"].strip()
    ]
    stored_count = extend_by_new(memory.conversations, to, turns)
    jobs = memory.end_session(to) if is_ended else 0
    if is_ended and context.background is not None:
        context.background(memory.run_jobs)
    counts = {
        "conversation_id": to,
        "kept": len(turns) - stored_count,
        "known": stored_count,
        "jobs": jobs,
    }
    text = f"{counts['kept']} stored, {stored_count} already there."
    return Answer(counts, text + (" The session has ended." if is_ended else ""))


def search(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Ids and titles of matching memories, turns and documents."""
    query = arguments["query"]
    memories = memory.recall(query, top_k=SEARCHED)
    turns = mask(memory.recall_conversation(None, query, top_k=SEARCHED))
    results = [_search_result("memory", hit.id, hit.text) for hit in memories]
    results += [
        _search_result("turn", f"{hit.conversation_id}#{hit.index}", hit.text) for hit in turns
    ]
    documents = mask(memory.search(query, top_k=SEARCHED, kinds=("document",)))
    results += [
        _search_result("document", hit.id, f"{hit.title}: {hit.snippet}") for hit in documents
    ]
    notices = dict.fromkeys((*memories.notices, *turns.notices, *documents.notices))
    return _as_json({"results": results, **({"notices": [*notices]} if notices else {})})


def _search_result(kind: str, of: str, text: str) -> dict[str, str]:
    title = " ".join(text.split())
    return {
        "id": f"{kind}:{of}",
        "title": title if len(title) <= _TITLE else title[: _TITLE - 1] + "…",
        "url": f"anaphora://{kind}/{of}",
    }


def fetch(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """All of the turn, memory, document or section of which an answer gave the id."""
    kind, _, name = arguments["id"].partition(":")
    full_id = memory.resolve_id(name if kind in _FETCHED else arguments["id"])
    owner, mark, number = full_id.rpartition("#")
    thread = memory.conversations.get(owner) if mark else None
    if thread is not None:
        if not number.isdecimal() or int(number) >= len(thread.turns):
            raise NotFound("turn", mask_handle(full_id))
        kind, record = "turn", _row(mask(thread.turns[int(number)]))
    else:
        try:
            kind, record = "memory", _row(memory.get(full_id))
        except NotFound:
            kind, record = "document", _document(memory, full_id)
    text = record.pop("text")
    return _as_json(
        {**_search_result(kind, mask_handle(full_id), text), "text": text, "metadata": record}
    )


def _document(memory: Memory, full_id: str) -> dict[str, Any]:
    """A document with its text, or one section of it."""
    document, (_, mark, number) = memory.document(full_id), full_id.partition("#")
    sections = memory.document_sections(document.id)
    if mark:
        sections = tuple(section for section in sections if str(section.number) == number)
        if not sections:
            raise NotFound("section", full_id)
    text = "\n\n".join(section.text for section in sections)
    return {**_row(document), **({"place": sections[0].place} if mark else {}), "text": text}


def _as_json(data: dict[str, Any]) -> Answer:
    # Connectors that use `search` and `fetch` parse the text as JSON.
    return Answer(data, None, bare=True)
