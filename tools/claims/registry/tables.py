"""The tables: two for the README, and the complete ones of docs/claims.md."""

from __future__ import annotations

from tools.claims.model import Claim, Table, Value
from tools.claims.registry.shared import always, category, history, recalled, share_first
from tools.claims.sources import Step, at, figure, target

__all__ = ["TABLES"]

_FULL = "full ranking"
_TURNS = "speed"
_10K, _100K = "memory_speed_10000", "memory_speed_100000"


def _row(name: str, words: str, **values: Value) -> Claim:
    return Claim(name, (words,), values)


def _timed(
    name: str, words: str, result: str, key: str, form: str, *, unit: str = "ms", times: float = 1
) -> Claim:
    """A row with a measured value and its target."""
    return _row(
        name,
        f"{words} | {{value}} {unit} | {{target}} {unit}",
        value=figure(result, key, form, times=times),
        target=target(result, key, times=times),
    )


def _asked(form: str) -> Value:
    return at("conversation", form, "rows", (("name", _FULL),), "overall", "questions", form=",.0f")


def _commits(name: str, words: str, form: str) -> Claim:
    return _row(
        name,
        f"{words} | {{baseline}} | **{{value}}**",
        count=history("recall package", "as written", "questions").formatted(",.0f"),
        baseline=history("BM25 of files", form, "recall_at_10"),
        value=history("recall package", form, "recall_at_10"),
    )


QUALITY = Table(
    "quality",
    "How well",
    ("what was measured", "plain method", "Anaphora"),
    (
        _row(
            "quality.realtalk",
            "people chatting for weeks (REALTALK, {questions} questions): share of the evidence"
            " among the first ten turns | {baseline} (BM25) | **{value}**",
            questions=_asked("realtalk"),
            baseline=recalled("realtalk", "BM25 alone"),
            value=recalled("realtalk", _FULL),
        ),
        _row(
            "quality.beam",
            "long chats with an assistant (BEAM-100K, {questions} questions): the same |"
            " {baseline} (cosine) | **{value}**",
            questions=_asked("beam"),
            baseline=recalled("beam", "cosine alone"),
            value=recalled("beam", _FULL),
        ),
        _row(
            "quality.injected",
            "precision of injected context | {baseline} (the five best hits, always) | **{value}**",
            baseline=always("evidence", ".2f"),
            value=figure("injection", "chats and facts: of what is put in, evidence", ".2f"),
        ),
        _commits(
            "quality.files",
            "{count} commit subjects: share of the files they touch among the first ten",
            "as written",
        ),
        _row(
            "quality.deep",
            "{tasks} exact questions over {turns} turns (how often, when first, who): right |"
            " {baseline} (recall, 20 hits) | **{value}** (a scripted program in place of a model)",
            tasks=figure("deep_aggregation", "tasks"),
            turns=figure("deep_aggregation", "turns"),
            baseline=figure("deep_aggregation", "exact by plain recall, 20 hits", ".2f"),
            value=figure("deep_aggregation", "exact by deep recall", ".2f"),
        ),
    ),
)

_FIGURES = ("first", "first three", "first ten", "recall@10")


def _compared(name: str, lane: str, words: str) -> Claim:
    """Four figures of a held-out set, by the better of two plain methods and by recall."""

    def value(figure_name: str, *steps: Step) -> Value:
        row = (("set", name), ("lane", lane), ("kind", "all"), ("figure", figure_name))
        return at("parts", "rows", row, *steps)

    count = (("set", name), ("lane", lane), ("kind", "all"), ("figure", "first"))
    values = {"n": at("parts", "rows", count, "questions", form=",.0f")}
    for number, figure_name in enumerate(_FIGURES):
        values[f"part{number}"] = value(figure_name, "verdict", "part")
        values[f"whole{number}"] = value(figure_name, "means", "hybrid")
    cells = " | ".join(
        " / ".join(f"{{{side}{number}}}" for number in range(len(_FIGURES)))
        for side in ("part", "whole")
    )
    return Claim(f"parts.{name}_{lane}", (f"{words} ({{n}}) | {cells}",), values)


PARTS = Table(
    "parts",
    "Never worse than its parts",
    (
        "held-out questions: the first hit, one of three, one of ten, recall@10",
        "better of BM25 and cosine",
        "Anaphora",
    ),
    (
        _compared("realtalk", "turns", "REALTALK, turns"),
        _compared("beam", "turns", "BEAM-100K, turns"),
        _compared("changes", "turns", "stories in which facts change, turns"),
        _compared("changes", "facts", "the same, facts"),
        _compared("stories", "turns", "questions in other words than the answers, turns"),
        _compared("stories", "facts", "the same, facts"),
    ),
)

SPEED = Table(
    "speed",
    "How fast",
    ("what was measured", "measured", "target"),
    (
        _timed(
            "speed.recall",
            "recall over 10,000 real turns, without embedding the question, median",
            _TURNS,
            "recall less the question's embedding, p50",
            ".1f",
        ),
        _timed(
            "speed.recall_p99",
            "the whole recall, 99th percentile",
            _TURNS,
            "whole recall, p99",
            ".1f",
        ),
        _timed(
            "speed.command",
            "one recall on the command line, start to exit",
            _TURNS,
            "one recall by the command line, 10,000 turns",
            ".2f",
            unit="s",
        ),
        _timed(
            "speed.remember",
            "`remember` at 10,000 memories, without embedding the text, median",
            _10K,
            "remember over its embedding, p50",
            ".1f",
        ),
        _timed(
            "speed.memories",
            "recall at 10,000 memories, the same",
            _10K,
            "recall less E, p50",
            ".1f",
        ),
        _timed(
            "speed.resident",
            "resident memory at 10,000 memories",
            _10K,
            "resident memory",
            ".0f",
            unit="MB",
        ),
        _timed(
            "speed.hook",
            "a hook of a coding agent, beyond the interpreter's start, median",
            "hooks",
            "a hook with a warm process, over that, p50",
            ".0f",
        ),
    ),
)


CONVERSATIONS = Table(
    "conversations",
    "Conversations: share of the evidence among the first ten turns, chats 6 to 10",
    ("set", "BM25", "cosine", "Anaphora"),
    (
        *(
            _row(
                f"conversations.{form}",
                f"{name} | {{bm25}} | {{cosine}} | {{value}}",
                bm25=recalled(form, "BM25 alone"),
                cosine=recalled(form, "cosine alone"),
                value=recalled(form, _FULL),
            )
            for form, name in (("realtalk", "REALTALK"), ("beam", "BEAM-100K"))
        ),
        _row(
            "conversations.multi_hop",
            "REALTALK, questions over several turns | – | – | {value}",
            value=category("realtalk", "1 multi-hop"),
        ),
    ),
)

CURRENT = Table(
    "current",
    "What holds now: stories in which facts change, on which nothing was fitted",
    ("share of the questions", "told as conversations", "told as lasting facts"),
    tuple(
        _row(
            f"current.{name}",
            f"{words} | {{chats}} | {{facts}}",
            chats=share_first("chats", name),
            facts=share_first("facts", name),
        )
        for name, words in (
            ("right_first", "the value that holds stands before every outdated one"),
            ("first_of_all", "the first hit of all holds it"),
            ("among_first", "the answer is among the first three hits"),
        )
    ),
)

INJECTED = Table(
    "injected",
    "What is put into prompts unasked, over chats and stories on which nothing was fitted",
    ("", "the five best always", "Anaphora"),
    (
        _row(
            "injected.evidence",
            "precision of injected context | {baseline} | {value}",
            baseline=always("evidence", ".2f"),
            value=figure("injection", "chats and facts: of what is put in, evidence", ".2f"),
        ),
        _row(
            "injected.silent",
            "prompts that need nothing and get nothing | 0 | {value}",
            value=figure("injection", "nothing is put in where nothing is needed", ".2f"),
        ),
        _row(
            "injected.tokens",
            "tokens a prompt | {baseline} | {value}",
            baseline=always("tokens", ".0f"),
            value=always("own tokens", ".0f"),
        ),
    ),
)

PROJECTS = Table(
    "projects",
    "Finding the files that a task touches",
    ("", "BM25 of files", "Anaphora"),
    (
        _commits("projects.commits", "{count} commit subjects: recall@10", "as written"),
        _commits(
            "projects.stripped",
            "{count} commit subjects without file names: recall@10",
            "paths taken out",
        ),
        _row(
            "projects.bugs",
            "{count} bug reports: an edited file first / among the first five |"
            " {baseline} / {few} | {value} / {among}",
            count=history("recall package", "as written", "questions", kind="issues").formatted(
                ".0f"
            ),
            baseline=history("BM25 of files", "as written", "at_1", kind="issues"),
            few=history("BM25 of files", "as written", "at_5", kind="issues"),
            value=history("recall package", "as written", "at_1", kind="issues"),
            among=history("recall package", "as written", "at_5", kind="issues"),
        ),
    ),
)

EVERYTHING = Table(
    "times",
    "More times and sizes",
    ("", "measured", "target"),
    (
        _timed(
            "times.repeated",
            "the same question again, 10,000 turns, median",
            _TURNS,
            "repeated question, p50",
            ".1f",
        ),
        _timed(
            "times.import",
            "`from anaphora import Memory`",
            _TURNS,
            "from anaphora import Memory",
            ".0f",
        ),
        _timed(
            "times.resident_100k",
            "resident memory at 100,000 memories",
            _100K,
            "resident memory",
            ".0f",
            unit="MB",
        ),
        _timed(
            "times.recall_100k",
            "recall at 100,000 memories, without embedding the question",
            _100K,
            "recall less E, p50",
            ".1f",
        ),
        _timed(
            "times.small_project",
            "a project of 214 files: searchable by keyword after",
            "index_speed",
            "flask: both",
            ".1f",
            unit="s",
        ),
        _timed(
            "times.large_project",
            "a project of 3,000 files: searchable by keyword after",
            "index_speed",
            "3,000 files: both",
            ".0f",
            unit="s",
        ),
        _timed(
            "times.changed_file",
            "one changed file of 3,000, until it is found",
            "index_speed",
            "3,000 files: one changed file, until it is found",
            ".0f",
        ),
        _timed(
            "times.import_turns",
            "an import of 1,218 turns: searchable by keyword after",
            "import_speed",
            "1,218 turns: until a question is answered by words",
            ".1f",
            unit="s",
        ),
        _timed(
            "times.package",
            "a package from 20,000 sections of 16 projects, checking every file for changes",
            "context_speed",
            "recall p50",
            ".1f",
        ),
        _timed(
            "times.deep_recent",
            "deep recall without the model's time, 20,000 turns, recent sessions",
            "deep_overhead",
            "recent_sessions: a whole question, p50",
            ".0f",
        ),
        _timed(
            "times.deep_all",
            "the same, all sessions",
            "deep_overhead",
            "all_sessions: a whole question, p50",
            ".0f",
        ),
        _timed(
            "times.hook_p95",
            "a hook of a coding agent, 95th percentile",
            "hooks",
            "a hook with a warm process, over that, p95",
            ".0f",
        ),
        _timed(
            "times.mcp",
            "MCP `initialize`, beyond the time of `import mcp.server`",
            "mcp_start",
            "initialize over the bare import",
            ".2f",
            unit="s",
        ),
        _row(
            "times.http",
            "`/v1/recall` over HTTP, 10,000 memories, one connection, median | {value} ms | –",
            value=figure("rest_load", "1 connection: p50 (ms)", ".1f"),
        ),
        _row(
            "times.http_16",
            "the same, 16 connections: answers a second of one process / of two | {one} / {two}"
            " | –",
            one=figure("rest_load", "16 connections: requests a second", ".0f"),
            two=figure("rest_load", "16 connections, 2 processes: requests a second", ".0f"),
        ),
    ),
)

TABLES: tuple[Table, ...] = (
    QUALITY,
    PARTS,
    SPEED,
    CONVERSATIONS,
    CURRENT,
    INJECTED,
    PROJECTS,
    EVERYTHING,
)
