"""docs/comparison.md: the comparison with other products, and with figures that others publish."""

from __future__ import annotations

from tools.claims.model import Claim, Table, Value
from tools.claims.sources import at, cell, derived

__all__ = ["COMPARISON", "COMPARISON_TABLES"]

_BOTH = "both, 437 questions: recall@5"
_TURNS = "1. Old turns"
_MEMORIES = "2. Lasting memories"
_FILES = "3. Files"


def _turns(contestant: str, column: str) -> Value:
    """The row of a contestant in the section about turns; each has one row there."""
    forms = {"BM25": "prepared", "BM25 + cosine, RRF": "prepared"}
    row = (contestant, forms.get(contestant, "plain"))
    return cell("compare", row, column, section=_TURNS)


def _memories(contestant: str, column: str) -> Value:
    return cell("compare", (contestant, "prepared"), column, section=_MEMORIES)


def _speed(contestant: str, name: str, form: str = ".1f") -> Value:
    return at("compare", "speed", contestant, name, form=form)


def _waiting(contestant: str, what: str, which: str, form: str = ".1f") -> Value:
    return at("compare", "waiting", contestant, f"{what}: {which}, s", form=form)


def _special(data: str, name: str, ranking: str) -> Value:
    return at("measures", "sets", (("name", data),), "special", name, ranking, form=".3f")


_COMPARED = Table(
    "compare",
    "Old turns of a conversation, compared with other products",
    ("", "recall@5", "recall@10", "MRR"),
    tuple(
        Claim(
            f"compare.{contestant}",
            (f"{label} | {{five}} | {{ten}} | {{mrr}}",),
            {
                "five": _turns(contestant, _BOTH),
                "ten": _turns(contestant, "recall@10"),
                "mrr": _turns(contestant, "MRR"),
            },
        )
        for contestant, label in (
            ("Anaphora", "Anaphora"),
            ("LanceDB hybrid", "LanceDB, its hybrid search"),
            ("BM25 + cosine, RRF", "BM25 and cosine, fused by rank"),
            ("Chroma", "Chroma"),
            ("LangGraph SqliteStore", "LangGraph's SqliteStore and InMemoryStore"),
            ("mem0", "mem0, without its model"),
            ("BM25", "BM25"),
        )
    ),
)

_ALL, _HELD_OUT = "realtalk, all", "realtalk, chats 6-10"
_MACRO = "LMEB: recall@10, each category the same"
_LMEB = Table(
    "lmeb",
    "REALTALK by message, beside the figures of LMEB",
    ("recall@10, macro", "model", "all chats", "chats 6 to 10"),
    tuple(
        Claim(
            f"lmeb.{ranking}",
            (f"{label} | {{whole}} | {{held_out}}",),
            {
                "whole": _special(_ALL, _MACRO, ranking),
                "held_out": _special(_HELD_OUT, _MACRO, ranking),
            },
        )
        for ranking, label in (
            ("Anaphora", "Anaphora | its own, 22 M"),
            ("BM25", "BM25, here | –"),
            ("cosine", "cosine, here | the same"),
        )
    )
    + tuple(
        Claim(f"lmeb.theirs.{label}", (f"{label} | {rest} | –",), cited="LMEB, arXiv 2603.12572")
        for label, rest in (
            ("GIST-large, LMEB", "335 M | 0.588"),
            ("bge-multilingual-gemma2, LMEB", "9 B | 0.586"),
            ("NV-Embed-v2, LMEB", "7 B | 0.578"),
            ("e5-small-v2, LMEB", "33 M | 0.513"),
            ("BM25s, LMEB", "– | 0.445"),
            ("MiniLM, LMEB", "22 M | 0.396"),
        )
    ),
)

_ONES = "Ogham: recall@10 by round, abstention as 1.0"
_WITHOUT = "Ogham: recall@10 by round, without abstention"
_OGHAM = Table(
    "ogham",
    "BEAM-100K by round, beside the figures of Ogham",
    ("recall@10", "chats", "abstention as 1.0", "without it"),
    tuple(
        Claim(
            f"ogham.{ranking}.{chats}",
            (f"{label} | {chats} | {{ones}} | {{without}}",),
            {
                "ones": _special(data, _ONES, ranking),
                "without": _special(data, _WITHOUT, ranking),
            },
        )
        for ranking, label, chats, data in (
            ("Anaphora", "Anaphora", "6 to 10", "beam-100k, chats 6-10"),
            ("Anaphora", "Anaphora", "10", "beam-100k, all"),
            ("BM25", "BM25, here", "10", "beam-100k, all"),
            ("cosine", "cosine, here", "10", "beam-100k, all"),
        )
    )
    + tuple(
        Claim(
            f"ogham.theirs.{label}",
            (f"{label} | 20 | {rest}",),
            cited="Ogham v0.9.1, its result files",
        )
        for label, rest in (
            ("Ogham v0.9.1", "0.737 | 0.708"),
            ("Ogham, BGE-M3 sparse and dense", "0.616 | –"),
        )
    ),
)

COMPARISON_TABLES: tuple[Table, ...] = (_COMPARED, _LMEB, _OGHAM)

_LESS = "query less embedding, p50 ms"
_ADD = "one add less embedding, p50 ms"
_CONVERSATION, _FLASK = "1,511 turns", "flask, 214 files"
_FIRST, _VECTORS = "first answer", "all vectors there"

COMPARISON: tuple[Claim, ...] = (
    Claim(
        "compare.questions",
        ("{count} questions about chats 6 to 10 of REALTALK and BEAM-100K",),
        {
            "count": derived(
                ".0f",
                lambda *counts: sum(counts),
                *(
                    at(
                        "conversation",
                        form,
                        "rows",
                        (("name", "full ranking"),),
                        "overall",
                        "questions",
                    )
                    for form in ("realtalk", "beam")
                ),
            )
        },
    ),
    Claim(
        "compare.found",
        (
            "LanceDB's hybrid search finds {lance} of the evidence in conversations, Chroma, mem0"
            " and LangGraph's stores {chroma}, and Anaphora {ours}",
        ),
        {
            "lance": _turns("LanceDB hybrid", "recall@10").rounded(),
            "chroma": _turns("Chroma", "recall@10").rounded(),
            "ours": _turns("Anaphora", "recall@10").rounded(),
        },
    ),
    Claim(
        "compare.memories_level",
        ("on lasting memories without speakers it is level with LanceDB ({lance} and {ours})",),
        {
            "lance": _memories("LanceDB hybrid", "recall@10").rounded(),
            "ours": _memories("Anaphora", "recall@10").rounded(),
        },
    ),
    Claim(
        "compare.memories",
        (
            "(recall@10 {lance} and {fused}; Anaphora {ours}), and better on BEAM's chats"
            " ({lance_beam} and {fused_beam}; {ours_beam})",
        ),
        {
            "lance": _memories("LanceDB hybrid", "recall@10"),
            "fused": _memories("BM25 + cosine, RRF", "recall@10"),
            "ours": _memories("Anaphora", "recall@10"),
            "lance_beam": _memories("LanceDB hybrid", "BEAM, 89: recall@10"),
            "fused_beam": _memories("BM25 + cosine, RRF", "BEAM, 89: recall@10"),
            "ours_beam": _memories("Anaphora", "BEAM, 89: recall@10"),
        },
    ),
    Claim(
        "compare.files",
        ("({ours} of the files that a commit touched among ten; LanceDB {lance})",),
        {
            "ours": cell("compare", ("Anaphora",), "recall@10", section=_FILES),
            "lance": cell("compare", ("LanceDB hybrid",), "recall@10", section=_FILES),
        },
    ),
    Claim(
        "compare.bulk",
        (
            "Bulk adds with known vectors: LanceDB {lance} texts a second, Anaphora {ours} (it"
            " compares each text with all others and links similar ones), Chroma {chroma}.",
        ),
        {
            "lance": _speed("LanceDB hybrid", "add, texts/s", ",.0f"),
            "ours": _speed("Anaphora", "add, texts/s", ",.0f"),
            "chroma": _speed("Chroma", "add, texts/s", ",.0f"),
        },
    ),
    Claim(
        "compare.add",
        (
            "takes {lance} ms in LanceDB, {ours} in Anaphora, {chroma} in Chroma; removing one"
            " {lance_gone}, {ours_gone} and {chroma_gone}, and closing then {closing} s in"
            " Anaphora",
        ),
        {
            "lance": _speed("LanceDB hybrid", _ADD),
            "ours": _speed("Anaphora", _ADD),
            "chroma": _speed("Chroma", _ADD),
            "lance_gone": _speed("LanceDB hybrid", "one delete, p50 ms"),
            "ours_gone": _speed("Anaphora", "one delete, p50 ms"),
            "chroma_gone": _speed("Chroma", "one delete, p50 ms"),
            "closing": _speed("Anaphora", "closed after that, s"),
        },
    ),
    Claim(
        "compare.query",
        (
            "A query without its embedding, over 7,035 turns: Chroma {chroma} ms, Anaphora {ours},"
            " LanceDB {lance}. Sixteen threads in one process get {chroma_many}, {ours_many} and"
            " {lance_many} answers a second. Resident: Anaphora {ours_size} MB, Chroma"
            " {chroma_size}, LanceDB {lance_size}.",
        ),
        {
            "chroma": _speed("Chroma", _LESS),
            "ours": _speed("Anaphora", _LESS),
            "lance": _speed("LanceDB hybrid", _LESS),
            "chroma_many": _speed("Chroma", "16 threads, answers/s", ".0f"),
            "ours_many": _speed("Anaphora", "16 threads, answers/s", ".0f"),
            "lance_many": _speed("LanceDB hybrid", "16 threads, answers/s", ".0f"),
            "ours_size": _speed("Anaphora", "resident, MB", ".0f"),
            "chroma_size": _speed("Chroma", "resident, MB", ".0f"),
            "lance_size": _speed("LanceDB hybrid", "resident, MB", ".0f"),
        },
    ),
    Claim(
        "compare.mem0_times",
        ("In an earlier run: mem0 {add} texts a second, {one} and {query} ms",),
        {
            "add": _speed("mem0", "add, texts/s", ".0f"),
            "one": _speed("mem0", _ADD),
            "query": _speed("mem0", _LESS, ".0f"),
        },
    ),
    Claim(
        "compare.waiting",
        (
            "a conversation of 1,511 turns answers after {ours} s (vectors after {ours_vectors};"
            " Chroma {chroma}, LanceDB {lance}), the 214 files of flask after {files} s"
            " ({files_vectors}; {chroma_files} and {lance_files})",
        ),
        {
            "ours": _waiting("Anaphora", _CONVERSATION, _FIRST),
            "ours_vectors": _waiting("Anaphora", _CONVERSATION, _VECTORS),
            "chroma": _waiting("Chroma", _CONVERSATION, _FIRST),
            "lance": _waiting("LanceDB hybrid", _CONVERSATION, _FIRST),
            "files": _waiting("Anaphora", _FLASK, _FIRST),
            "files_vectors": _waiting("Anaphora", _FLASK, _VECTORS),
            "chroma_files": _waiting("Chroma", _FLASK, _FIRST, ".0f"),
            "lance_files": _waiting("LanceDB hybrid", _FLASK, _FIRST, ".0f"),
        },
    ),
    Claim(
        "ogham.chats",
        ("Ogham ran 20 chats, of which 10 are at hand here",),
        cited="Ogham v0.9.1, its result files",
    ),
)
