"""What each tool does: one call of the facade, and its result as JSON and as text.

A model reads the results: secrets in what was said are masked in them.

The calls run in a worker thread, with arguments that were checked, and raise the facade's own
errors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from anaphora.core.repositories import repository_of
from anaphora.errors import InvalidInput, NotFound
from anaphora.ingest.secrets.masking import mask
from anaphora.surfaces.mcp_server import render
from anaphora.surfaces.wire import plain, recalled_turns, refuse_unknown, times_between
from anaphora.values.conversations import READ_AWAITED, Degraded, NewTurn, Recall, Turn
from anaphora.values.deep import Budget

if TYPE_CHECKING:
    from anaphora.api.memory import Memory
    from anaphora.values.deep import DeepStep
    from anaphora.values.search import SearchHit

NOTHING_YET: Final = "Nothing is kept yet that a new session should know."
SEARCHED: Final = 8
"""Results of each lane that `search` lists."""
_TITLE: Final = 80


Given = Mapping[str, Any]
"""Arguments by the names of the facade's parameters, checked, defaults filled in."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where a call comes from: folder, known project it is about, what to say about its indexing.

    `on_step` is told the steps of a deep question; `background` runs work that nobody waits for.
    """

    project: str | None = None
    degraded: tuple[Degraded, ...] = ()
    on_step: Callable[[DeepStep], None] | None = None
    background: Callable[[Callable[[], object]], object] | None = None
    directory: str | None = None

    def in_project(self, given: Given) -> Given:
        """The arguments of a call, about the known project unless they name another one."""
        return {"project": self.project, **given}


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON form and the text form. `bare` ones are the whole result, without an envelope.

    Where `text` is None the text form is the result as one line of JSON, with `excerpts` in place
    of `data` if they are given. `note` says in the result how to read it.
    """

    data: Any
    text: str | None
    degraded: Sequence[Degraded] = ()
    notices: Sequence[str] = ()
    confidence: float | None = None
    bare: bool = False
    note: str = ""
    excerpts: Any = None


def recall(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Whatever was kept, for a question."""
    times = times_between(given, memory.local_time)
    asked = {**given, **times, "directory": context.directory, "read": READ_AWAITED}
    found = mask(memory.search(**asked))
    notices = [*found.notices, *([render.silence_text(found)] if found.nearest else [])]
    rows = [_row(hit) for hit in found]
    text = render.found_text(found)
    return Answer(rows, text, found.degraded, tuple(notices), found.confidence)


def _row(hit: SearchHit) -> dict[str, Any]:
    """A hit without its whole text, which `fetch` and the caller's own tools give."""
    told = plain(hit)
    for name in ("text", "factors", "matches", "answers"):
        told.pop(name, None)
    return {name: value for name, value in told.items() if value not in ("", None, [], {})}


def recall_memory(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Lasting memories for a query, as JSON in the text form too."""
    hits = memory.recall(**given, read=READ_AWAITED)
    answer = _rows(hits, None)
    excerpts = [render.excerpted(row, given["query"]) for row in answer.data]
    return replace(answer, note=render.JSON_DATA, excerpts=excerpts)


def store_memory(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Keep one memory."""
    kept = dict(given)
    if "supersedes" in kept:
        try:
            kept["supersedes"] = memory.resolve_id(kept["supersedes"], "memory")
        except InvalidInput as error:
            raise error.named("supersedes") from None
    if context.directory is not None and "source" not in kept:
        # Where it was learned says later which project it belongs to.
        kept["source"] = repository_of(context.directory) or context.directory
    done = memory.remember(**kept)
    return Answer(plain(done), render.remembered_text(done))


def update_memory(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Change a memory, or show what would change."""
    changes = {name: one for name, one in given.items() if name not in {"id", "dry_run"}}
    if not changes:
        raise InvalidInput("content", "", "nothing to change: give content or another field")
    record_id = memory.resolve_id(given["id"], "memory")
    if given["dry_run"]:
        record = memory.get(record_id)
        data = {"id": record_id, "action": "none", "before": plain(record), "changes": changes}
        return Answer(data, f"Nothing was changed. It is now:\n{render.memory_text(record)}")
    done = memory.update(record_id, **changes)
    return Answer(plain(done), render.remembered_text(done))


def recall_conversation(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Turns of earlier conversations."""
    times = times_between(given, memory.local_time)
    asked = {"conversation_id": None, **given, **times, "read": READ_AWAITED}
    found = mask(recalled_turns(memory, **asked))
    return _rows(found, render.turns_text(found, given["query"]))


def _rows(found: Recall[Any], text: str | None) -> Answer:
    notices = [*found.notices, *([render.silence_text(found)] if found.nearest else [])]
    rows = [plain(hit) for hit in found]
    return Answer(rows, text, found.degraded, tuple(notices), found.confidence)


def recall_context(memory: Memory, given: Given, context: CallContext) -> Answer:
    """What a task in a project needs."""
    from anaphora.recall.context.package import render_package

    found = mask(memory.recall_context(**context.in_project(given)))
    found = replace(found, degraded=(*context.degraded, *found.degraded))
    return Answer(plain(found), render_package(found))


def warm_up(memory: Memory, given: Given, context: CallContext) -> Answer:
    """What a new session should know."""
    from anaphora.recall.context.package import HEADER
    from anaphora.recall.context.warm_up import render_warm_up

    found = mask(memory.warm_up(**context.in_project(given), directory=_here(given, context)))
    found = replace(found, degraded=(*context.degraded, *found.degraded))
    text = render_warm_up(found)
    return Answer(plain(found), text if text != HEADER else NOTHING_YET)


def _here(given: Given, context: CallContext) -> str | None:
    """Where a session begins, unless a project was named."""
    return context.directory if "project" not in given else None


def deep_recall(memory: Memory, given: Given, context: CallContext) -> Answer:
    """An answer from the whole history."""
    refuse_unknown(memory, given.get("conversation_id"))
    question = dict(given)
    budget = Budget(execution_seconds=question.pop("execution_seconds", None))
    found = mask(memory.deep_recall(**question, budget=budget, on_step=context.on_step))
    return Answer(plain(found), render.deep_text(found))


def save_diary(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Keep a diary entry."""
    done = memory.write_diary(**context.in_project(given))
    return Answer(plain(done), _kept("diary entry", done.id, done.redacted))


def observe(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Keep a note about the project."""
    done = memory.observe(**context.in_project(given))
    return Answer(plain(done), _kept(done.kind.replace("_", " "), done.id, done.redacted))


def forget(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Delete by id or by filter."""
    chosen = dict(given)
    if chosen.get("id") is not None:
        chosen["id"] = memory.resolve_id(chosen["id"], "memory")
    done = memory.forget(**chosen)
    tried = "Nothing was changed; this would be: " if given["dry_run"] else ""
    return Answer(plain(done), tried + render.forgotten_text(done))


def contradictions(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Memories that seem to contradict each other."""
    found = memory.contradictions(**given)
    return Answer([plain(one) for one in found], render.contradictions_text(found))


def settle_contradiction(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Resolve a contradiction."""
    done = memory.settle_contradiction(**given)
    return Answer(plain(done), render.contradictions_text([done]))


def reopen_contradiction(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Take a verdict back."""
    done = memory.reopen_contradiction(**given)
    return Answer(plain(done), render.contradictions_text([done]))


def gaps(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Questions without an answer."""
    found = memory.gaps(given["status"])
    return Answer([plain(gap) for gap in found], render.gaps_text(found, given["status"]))


# Two calls at once must not both find the same turns missing.
_saving = threading.Lock()


def save_turns(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Keep the turns that the thread does not end with already."""
    to, ended = given["conversation_id"], given["ended"]
    turns = [NewTurn(one["role"], one["text"]) for one in given["turns"] if one["text"].strip()]
    with _saving:
        thread = memory.conversations.get(to)
        known = _overlap(thread.turns if thread is not None else (), turns)
        if turns[known:]:
            memory.conversations.extend(to, turns[known:])
    jobs = memory.end_session(to) if ended else 0
    if ended and context.background is not None:
        context.background(memory.run_jobs)
    data = {"conversation_id": to, "kept": len(turns) - known, "known": known, "jobs": jobs}
    text = f"{data['kept']} kept, {known} there already."
    return Answer(data, text + (" The session has ended." if ended else ""))


def _overlap(kept: Sequence[Turn], turns: Sequence[NewTurn]) -> int:
    """How many of the first new turns are the last ones of the thread."""
    tail = [(turn.role, turn.text) for turn in kept[max(0, len(kept) - len(turns)) :]]
    given = [(turn.role, turn.text) for turn in turns]
    sizes = range(min(len(tail), len(given)), 0, -1)
    return next((size for size in sizes if tail[-size:] == given[:size]), 0)


def search(memory: Memory, given: Given, context: CallContext) -> Answer:
    """Ids and titles of what matches, from the lanes of memories, turns and documents."""
    query = given["query"]
    memories = memory.recall(query, top_k=SEARCHED)
    turns = mask(memory.recall_conversation(None, query, top_k=SEARCHED))
    results = [_result("memory", hit.id, hit.text) for hit in memories]
    results += [_result("turn", f"{hit.conversation_id}#{hit.index}", hit.text) for hit in turns]
    found = mask(memory.search(query, top_k=SEARCHED, kinds=("document",)))
    results += [_result("document", hit.id, f"{hit.title}: {hit.snippet}") for hit in found]
    notices = dict.fromkeys((*memories.notices, *turns.notices, *found.notices))
    return _as_json({"results": results, **({"notices": [*notices]} if notices else {})})


def _result(kind: str, of: str, text: str) -> dict[str, str]:
    title = " ".join(text.split())
    return {
        "id": f"{kind}:{of}",
        "title": title if len(title) <= _TITLE else title[: _TITLE - 1] + "…",
        "url": f"anaphora://{kind}/{of}",
    }


def fetch(memory: Memory, given: Given, context: CallContext) -> Answer:
    """The whole text behind an id of `search`."""
    kind, _, of = given["id"].partition(":")
    if kind == "memory" and of:
        record = memory.get(of)
        more = plain(record)
        text = more.pop("text")
    elif kind == "turn" and "#" in of:
        turn = mask(_turn(memory, of))
        more = plain(turn)
        text = more.pop("text")
    elif kind == "document" and of:
        text, more = _document(memory, of)
    else:
        raise InvalidInput("id", given["id"], "expected an id that `search` gave")
    return _as_json({**_result(kind, of, text), "text": text, "metadata": more})


def _document(memory: Memory, of: str) -> tuple[str, dict[str, Any]]:
    """The text of a document, or of one section of it, and what is known of it."""
    document, (_, mark, number) = memory.document(of), of.partition("#")
    found = memory.document_sections(document.id)
    if mark:
        found = tuple(one for one in found if str(one.number) == number)
        if not found:
            raise NotFound("section", of)
        return found[0].text, {**plain(document), "place": found[0].place}
    return "\n\n".join(one.text for one in found), plain(document)


def _turn(memory: Memory, of: str) -> Turn:
    conversation_id, _, index = of.rpartition("#")
    thread = memory.conversations.get(conversation_id)
    if thread is None or not index.isdecimal() or int(index) >= len(thread.turns):
        raise NotFound("turn", of)
    return thread.turns[int(index)]


def _as_json(data: dict[str, Any]) -> Answer:
    # The connectors that use this pair read the text as JSON.
    return Answer(data, None, bare=True)


def _kept(what: str, of: str, redacted: Sequence[str]) -> str:
    out = f" Taken out before it was stored: {', '.join(redacted)}." if redacted else ""
    return f"Kept the {what} {of}.{out}"


CALLS: Final[Mapping[str, Callable[[Memory, Given, CallContext], Answer]]] = {
    call.__name__: call
    for call in (
        *(recall, recall_memory, store_memory, update_memory, recall_conversation, recall_context),
        *(warm_up, deep_recall),
        *(save_diary, save_turns, observe, forget, gaps, search, fetch),
        *(contradictions, settle_contradiction, reopen_contradiction),
    )
}
