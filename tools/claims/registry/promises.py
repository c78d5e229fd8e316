"""Sentences of the pages that promise something, and the promise of tests/behaviours.py that each
gives; and sentences that only look so."""

from __future__ import annotations

from tools.claims.model import Claim
from tools.claims.scan import NoClaim

__all__ = ["NO_PROMISES", "PROMISES"]

_README = "README.md"
_GUIDES = "docs/how-to/"


def _of(page: str, words: str, *promises: str) -> Claim:
    """A sentence on a page (or on several whose names begin so), and what it promises."""
    name = f"said.{page.removeprefix('docs/').removesuffix('.md').strip('/')}.{words[:40].strip()}"
    return Claim(name, (words,), promises=promises, page=page)


PROMISES: tuple[Claim, ...] = (
    _of(
        "docs/sync.md",
        "on which of them were offline, or on any clock",
        "sync.removal",
    ),
    _of(
        "docs/sync.md",
        "Entries behind the end of a removed device are never a reason to stop",
        "sync.removal",
    ),
    _of(
        f"{_GUIDES}troubleshooting",
        "It never has error messages, arguments, memories, tokens, or paths of your files",
        "incidents.log",
    ),
    _of(
        _README,
        "It stores every conversation verbatim in plain files",
        "threads.go_bytes",
        "threads.unbounded",
    ),
    _of(
        _README,
        "The embedding model is included: no API key, no server, no network, no telemetry",
        "package.offline",
        "package.no_telemetry",
    ),
    _of(_README, "at the system call level", "package.no_telemetry"),
    _of(_README, "When `append_user` returns, the turn is on disk.", "threads.durable"),
    _of(_README, "sessions are stored as they end", "hooks.life"),
    _of(_README, "and nothing when none is", "hooks.life", "search.silence"),
    _of(
        _README,
        "without `--dry-run` it asks first, and `--undo` reverts it byte for byte",
        "setup.clients",
        "setup.undo",
    ),
    _of(_README, "Threads of any length, verbatim.", "threads.unbounded", "threads.go_bytes"),
    _of(
        _README,
        "Recall combines words and meaning with neighbouring turns, speakers, sessions and times",
        "recall.neighbours",
        "recall.speakers",
        "recall.times",
    ),
    _of(
        _README,
        "Current facts rank above the ones they replaced, with dates and a link to the old value",
        "recall.current",
    ),
    _of(_README, "repeated statements are merged into one result", "recall.repetition"),
    _of(
        _README,
        "a question without an answer gets no result, with the closest ones on request",
        "recall.silence",
    ),
    _of(
        _README,
        "A repeated fact grows stronger, a new value of a path supersedes the old one, similar"
        " facts are linked and never merged",
        "remember.reinforces",
        "remember.supersedes",
        "remember.never_merges",
    ),
    _of(
        _README,
        "are reported, and resolved with one call",
        "contradictions.told",
        "contradictions.settled",
    ),
    _of(_README, "`forget` really deletes", "forget.hard", "forget.bytes"),
    _of(
        _README,
        "Secrets are redacted from memories, notes and project files before they are stored;"
        " `.env` and key files are not read at all. Only turns stay verbatim.",
        "remember.every_way",
        "project.secrets",
        "sealed.words",
    ),
    _of(
        _README,
        "in sections: found with page and heading, versioned by name, and forgotten with their"
        " files",
        "documents.found",
        "documents.versions",
        "documents.forgotten",
    ),
    _of(
        _README,
        "pinned memories, rules and preferences stand at the beginning of every session, within"
        " a budget, and follow their new values",
        "core.block",
        "core.budget",
        "core.follows",
    ),
    _of(
        _README,
        "with hard limits, and the answer's sources are checked to exist",
        "sandbox.limits",
        "deep.submission",
    ),
    _of(
        _README,
        "Without a model you get the best evidence, and a note that says so",
        "deep.no_model",
    ),
    _of(_README, "Every command has `--json` and meaningful exit codes", "cli.json", "cli.errors"),
    _of(_README, "Every guarantee, with its test", "durable.document"),
    _of(_README, "tests run every command and program in them", "docs.run"),
    _of(
        "docs/DOMAIN.md",
        "They are written with fsync, locks and transactions, and never discarded",
        "threads.durable",
        "threads.processes",
        "durable.killed",
    ),
    _of("docs/DOMAIN.md", "When the call returns, the turn is on disk.", "threads.durable"),
    _of("docs/DOMAIN.md", "It can be deleted at any time and is rebuilt", "index.disposable"),
    _of("docs/DOMAIN.md", "a conversation's turns, verbatim and in order", "threads.go_bytes"),
    _of("docs/DOMAIN.md", "**Turn**: one message, verbatim: role, text, time.", "threads.go_bytes"),
    _of(
        "docs/DOMAIN.md",
        "It never changes, except by redaction",
        "threads.redact",
        "threads.go_bytes",
    ),
    _of("docs/DOMAIN.md", "and reported. Never overwritten", "threads.corrupt"),
    _of("docs/DOMAIN.md", "vectors of different embedders are never compared", "embed.identity"),
    _of("docs/DOMAIN.md", "One hit always comes", "recall.budget"),
    _of("docs/DOMAIN.md", "links duplicates. It never deletes.", "deep.dream"),
    _of(
        "docs/durability.md",
        "as it was before or as it was to become, never in between",
        "durable.power",
        "durable.killed",
    ),
    _of("docs/formats.md", "Every Python string survives", "truth.round_trip", "care.export"),
    _of("docs/formats.md", "one turn, verbatim", "care.export"),
    _of(
        f"{_GUIDES}agent-framework.md", "a recalled block is never kept", "adapters.agent_framework"
    ),
    _of(f"{_GUIDES}agno.md", "It is never kept with the run", "adapters.agno"),
    _of(
        f"{_GUIDES}anthropic-memory-tool.md",
        "Edits of several processes wait for each other: none is lost",
        "adapters.memory_tool_races",
    ),
    _of(
        f"{_GUIDES}audit-trail.md",
        "A trail is in backups, never in exports, and never sent to other devices",
        "audit.wordless",
        "audit.one_chain",
    ),
    _of(f"{_GUIDES}backup-and-move.md", "An existing file is never overwritten", "care.backup"),
    _of(
        f"{_GUIDES}change-and-contradiction.md",
        "It proposes, and never decides",
        "contradictions.settled",
    ),
    _of(
        f"{_GUIDES}claude-code.md",
        "What is recalled is marked as data and never imported as news",
        "hooks.data",
    ),
    _of(f"{_GUIDES}claude-code.md", "A hook never blocks and never fails", "hooks.fail_open"),
    _of(
        f"{_GUIDES}come-over.md",
        "Words come in verbatim, with the dates of the original",
        "import.memories",
    ),
    _of(
        f"{_GUIDES}come-over.md",
        "[JSON Lines](import-your-history.md#plain-json-lines) always work",
        "import.unknown",
    ),
    _of(
        f"{_GUIDES}embedders.md",
        "Texts longer than the window are embedded in parts, never cut",
        "embed.whole",
    ),
    _of(
        f"{_GUIDES}embedders.md",
        "Nothing is ever downloaded, pulled or sent anywhere but to the endpoint that you name",
        "package.offline",
        "embed.endpoint",
    ),
    _of(f"{_GUIDES}embedders.md", "Keys are never written", "embed.endpoint_key"),
    _of(
        f"{_GUIDES}encryption.md",
        "The conversion can be interrupted at any moment",
        "sealed.converts",
    ),
    _of(f"{_GUIDES}forget-for-real.md", "**Turns are kept verbatim**", "remember.every_way"),
    _of(f"{_GUIDES}llama-index.md", "a recalled block is never kept", "adapters.llama_index"),
    _of(f"{_GUIDES}local-model.md", "and nothing leaves your machine", "package.offline"),
    _of(
        f"{_GUIDES}local-model.md",
        "A provider's key is never sent to a server of your own",
        "deep.keys",
    ),
    _of(
        f"{_GUIDES}own-agent-loop.md",
        "a turn that is nothing else is never a hit",
        "recall.own_echo",
    ),
    _of(f"{_GUIDES}own-agent-loop.md", "One hit always comes", "recall.budget"),
    _of(
        f"{_GUIDES}postgresql.md",
        "its own index in its home, which can be deleted at any time",
        "index.disposable",
        "threads.servers",
    ),
    _of(
        f"{_GUIDES}pydantic-ai.md",
        "keeps prompts and answers, never a recalled block",
        "adapters.pydantic_ai_history",
    ),
    _of(f"{_GUIDES}troubleshooting.md", "it never changes a word you stored", "care.repair"),
    _of("docs/project.md", "A superseded note is never returned as current", "context.superseded"),
    _of(
        "docs/project.md",
        "Then come excerpts and notes, verbatim except for secrets",
        "context.in_truth",
        "project.secrets",
    ),
    _of(
        "docs/ranking.md",
        "Its words are verbatim, `excerpt` and a line on every surface",
        "recall.long_turn",
    ),
    _of(
        "docs/ranking.md",
        "A marked hit never stands before what replaced it",
        "recall.current",
    ),
    _of("docs/ranking.md", "A word that any text holds is never taken for another", "recall.typos"),
    _of("docs/ranking.md", "never what this session has or was given", "hooks.life"),
    _of(
        "docs/ranking.md",
        "a file without any word of the focus is never a target",
        "context.grounded",
    ),
    _of(
        "docs/ranking.md",
        "Questions about counts, order, time or completeness never take this shortcut",
        "deep.shortcut_never",
    ),
    _of(
        "docs/sandbox.md",
        "It can change nothing: no file, no process, no network",
        "sandbox.attacks",
    ),
    _of(
        "docs/sandbox.md",
        "no value of the code is ever converted to a Python object",
        "sandbox.attacks",
        "sandbox.data",
    ),
    _of("docs/sandbox.md", "no network, no new process, no writing", "sandbox.walls"),
    _of(
        "docs/scale.md",
        "any of them may be killed, or lose its folder, at any time",
        "servers.killed",
    ),
    _of("docs/scale.md", "vectors of different embedders are never compared", "embed.identity"),
    _of("docs/scale.md", "a writer never waits forever", "servers.waiting"),
    _of(
        "docs/scale.md",
        "Stickiness is never needed for correctness",
        "threads.servers",
        "truth.servers",
    ),
    _of(
        "docs/scale.md",
        "A test writes and recalls through PgBouncer in transaction mode with this setting",
        "servers.poolers",
    ),
    _of("docs/security.md", "and damaged data is never shown", "sealed.tampered"),
    _of(
        "docs/security.md",
        "An encrypted home is never opened as an unencrypted one and never gets a second key",
        "sealed.fails_closed",
    ),
    _of(
        "docs/security.md",
        "Without the key an entry cannot be changed, left out or added unnoticed",
        "audit.verified",
    ),
    _of(
        "docs/security.md",
        "write Go's files again, byte for byte",
        "sealed.converts",
        "threads.go_bytes",
    ),
    _of(
        "docs/security.md", "`encrypt` and `decrypt` can be killed at any moment", "sealed.converts"
    ),
    _of("docs/surfaces.md", "A hook never blocks and never fails its client", "hooks.fail_open"),
    _of(
        "docs/surfaces.md",
        "between two lines that no turn can forge, and is never imported as news",
        "hooks.data",
        "marks.unforgeable",
    ),
    _of("docs/surfaces.md", "and never executes stored text", "page.data"),
    _of("docs/sync.md", "which never leaves the devices", "sync.sealed"),
    _of(
        "docs/tutorial.md",
        "When `append_user` returns, the turn is on disk; if it could not be stored, the call"
        " raises",
        "threads.durable",
        "threads.strict",
    ),
    _of("docs/tutorial.md", "no API key, no network", "package.offline"),
    _of("docs/tutorial.md", "Similar sentences are linked, never merged", "remember.never_merges"),
    _of(
        "docs/tutorial.md",
        "conversation turns stay verbatim, secrets included",
        "remember.every_way",
    ),
)

_OTHERS = "of another product, by its documentation"

NO_PROMISES: tuple[NoClaim, ...] = (
    NoClaim(
        r"It is not right always|It is\s+not always right", "says what it does not reach", _README
    ),
    NoClaim(r"\bnever answered\b|\bthey never saw\b", "of questions and data", ""),
    NoClaim(r"\bnever owns\b", "the head of a column", "docs/DOMAIN.md"),
    NoClaim(
        r"Computed (?:from\s+times|for each question), never stored",
        "how a term is defined",
        "docs/DOMAIN.md",
    ),
    NoClaim(r"rules that always hold", "what a reader wants", "docs/comparison.md"),
    NoClaim(r"always in the context(?:,\s+so never missed)?", _OTHERS, "docs/comparison.md"),
    NoClaim(
        r"other memories never count as restatements", "the meaning of a member", "docs/formats.md"
    ),
    NoClaim(r"what\s+must\s+never\s+be\s+done|\"never\"|\"always …\"", "words of a user", "docs/"),
    NoClaim(r"holds ONNX, here, offline", "where a model is", f"{_GUIDES}embedders.md"),
    NoClaim(
        r"says what\s+is on disk|whether the trail ever had it",
        "what a page or a command tells",
        "",
    ),
    NoClaim(r"had never seen that memory", "of the example above it", f"{_GUIDES}postgresql.md"),
    NoClaim(
        r"never put anything into it|If words must\s+never reach", "advice to the reader", "docs/"
    ),
    NoClaim(r"always\s+so on Windows", "what is missing there", "docs/sandbox.md"),
    NoClaim(r"Never\s+an index, a vector", "what is left out", "docs/sync.md"),
)
