"""`python -m tools.claims`: the figures of README.md and docs/comparison.md, out of the results.

Each figure is a claim: its words with a placeholder for each value, and where the value is read
from in bench/results/. Without an option the values and the tables between `<!-- claims: NAME -->`
and `<!-- end of claims -->` are written into the pages; `--check` changes nothing, and lists each
value that differs, each claim that no page states, and each result that is not what its measurement
wrote or whose command does not exist. The exit code is then 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.measured import measurements, stale
from bench.results_page import COMMANDS

__all__ = ["CLAIMS", "PAGES", "TABLES", "Claim", "Value", "figure", "problems", "renewed"]

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ("README.md", "docs/comparison.md")
END: Final = "<!-- end of claims -->"
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_NUMBER: Final = r"[−-]?\d+(?:[.,]\d+)*"


class ClaimError(Exception):
    """A value cannot be read: a result lacks it."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a result, which `read` takes out of its JSON, in the form that pages show."""

    result: str
    read: Callable[[Any], float]
    form: str = ".2f"

    def shown(self, root: Path) -> str:
        """The value as the pages have it. Raises `ClaimError`."""
        file = root / "bench" / "results" / f"{self.result}.json"
        try:
            return format(self.read(json.loads(file.read_text("utf-8"))), self.form)
        except (OSError, LookupError, TypeError, ZeroDivisionError) as error:
            raise ClaimError(f"{self.result}.json: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Claim:
    """Words of a page, and the values at their placeholders."""

    words: str
    values: Mapping[str, Value] = field(default_factory=dict)

    @property
    def pattern(self) -> re.Pattern[str]:
        """What finds the words on a page, whatever their values and line breaks."""
        parts = _PLACEHOLDER.split(self.words)
        return re.compile(
            "".join(
                f"(?P<{part}>{_NUMBER})" if at % 2 else r"\s+".join(map(re.escape, _split(part)))
                for at, part in enumerate(parts)
            )
        )

    def shown(self, root: Path) -> str:
        """The words with their values."""
        return _PLACEHOLDER.sub(lambda name: self.values[name[1]].shown(root), self.words)


def _split(text: str) -> list[str]:
    return re.split(r"\s+", text)


def claim(words: str, **values: Value) -> Claim:
    """A claim with its values by name."""
    return Claim(words, values)


def figure(result: str, name: str, form: str = ".2f", *, times: float = 1) -> Value:
    """A figure that `bench.figures` wrote, by its name."""
    return Value(result, lambda content: _figure(content, name)["value"] * times, form)


def target(result: str, name: str, form: str = "g") -> Value:
    """The limit that a figure is to keep."""
    return Value(result, lambda content: float(_figure(content, name)["target"].split()[-1]), form)


def total(result: str, words: str) -> Value:
    """The sum of the figures whose names hold some words."""

    def read(content: Any) -> float:
        values = [row["value"] for row in content["figures"] if words in row["name"]]
        return float(sum(values)) if values else float("nan")

    return Value(result, read, ".0f")


def _figure(content: Any, name: str) -> dict[str, Any]:
    rows = [row for row in content["figures"] if row["name"] == name]
    if not rows:
        raise LookupError(f"no figure {name!r}")
    row: dict[str, Any] = rows[0]
    return row


# -- the claims

_REALTALK, _BEAM = "REALTALK, chats 6-10", "BEAM-100K, chats 6-10"
_METHODS = ("BM25", "cosine")


def _quality(name: str, measure: str, method: str = "Anaphora", form: str = ".2f") -> Value:
    return figure("quality", f"{name}: {measure}, {method}", form)


def _better(name: str, measure: str) -> Value:
    """The better of the two plain methods."""

    def read(content: Any) -> float:
        names = (f"{name}: {measure}, {method}" for method in _METHODS)
        return float(max(_figure(content, each)["value"] for each in names))

    return Value("quality", read)


def _questions(name: str) -> Value:
    return figure("quality", f"{name}: questions", ".0f")


def _commits(ranking: str, measure: str, form: str = ".2f") -> Value:
    return figure("project", f"history, all, {ranking}, as written: {measure}", form)


def _part(name: str, words: str) -> Claim:
    measures = ("first", "first 3", "first 10", "recall@10")
    values = {"n": _questions(name)}
    for at, measure in enumerate(measures):
        values[f"part{at}"], values[f"whole{at}"] = _better(name, measure), _quality(name, measure)
    cells = " | ".join(
        " / ".join(f"{{{side}{at}}}" for at in range(len(measures))) for side in ("part", "whole")
    )
    return Claim(f"{words} ({{n}}) | {cells}", values)


def _timed(words: str, result: str, name: str, form: str, unit: str = "ms") -> Claim:
    values = {"value": figure(result, name, form), "target": target(result, name)}
    return Claim(f"{words} | {{value}} {unit} | {{target}} {unit}", values)


def _compared(part: str, contestant: str, name: str, group: str = "all") -> Value:
    """A figure of a contestant over all questions, in the form of the texts that did better."""

    def read(content: Any) -> float:
        rows = [
            row
            for row in content[part]
            if (row["contestant"], row["category"]) == (contestant, "all")
        ]
        form = max(
            (row for row in rows if row["group"] in ("all", "history, all")),
            key=lambda row: row["figures"]["recall@10"],
        )["form"]
        (best,) = (row for row in rows if (row["group"], row["form"]) == (group, form))
        return float(best["figures"][name])

    return Value("compare", read, ".3f")


def _cost(contestant: str, name: str, form: str = ".1f") -> Value:
    return Value("compare", lambda content: content["speed"][contestant][name], form)


def _waiting(contestant: str, name: str, form: str = ".1f") -> Value:
    return Value("compare", lambda content: content["waiting"][contestant][name], form)


def _percent(value: Value) -> Value:
    return Value(value.result, lambda data: value.read(data) * 100, ".0f")


_MACRO = "recall@10, each category the same"
_ONES, _WITHOUT = "recall@10 by round, abstention as 1.0", "recall@10 by round"

TABLES: Final[Mapping[str, tuple[tuple[str, ...], tuple[Claim, ...]]]] = {
    "quality": (
        ("what was measured", "plain method", "Anaphora"),
        (
            claim(
                "people chatting for weeks (REALTALK, {n} questions): share of the evidence among"
                " the first ten turns | {plain} (the better of BM25 and cosine) | **{value}**",
                n=_questions(_REALTALK),
                plain=_better(_REALTALK, "recall@10"),
                value=_quality(_REALTALK, "recall@10"),
            ),
            claim(
                "long chats with an assistant (BEAM-100K, {n} questions): the same | {plain} (the"
                " same) | **{value}**",
                n=_questions(_BEAM),
                plain=_better(_BEAM, "recall@10"),
                value=_quality(_BEAM, "recall@10"),
            ),
            claim(
                "precision of injected context | {plain} (the five best hits, always)"
                " | **{value}**",
                plain=figure("injection", "the five best hits, always: evidence"),
                value=figure("injection", "chats and facts: of what is put in, evidence"),
            ),
            claim(
                "{n} commit subjects: share of the files they touch among the first ten"
                " | {plain} | **{value}**",
                n=_commits("recall package", "questions", ".0f"),
                plain=_commits("BM25 of files", "recall@10"),
                value=_commits("recall package", "recall@10"),
            ),
            claim(
                "{tasks} exact questions over {turns} turns (how often, when first, who): right |"
                " {plain} (recall, 20 hits) | **{value}** (a scripted program in place of a model)",
                tasks=figure("deep_aggregation", "tasks", ".0f"),
                turns=figure("deep_aggregation", "turns", ",.0f"),
                plain=figure("deep_aggregation", "exact by plain recall, 20 hits"),
                value=figure("deep_aggregation", "exact by deep recall"),
            ),
        ),
    ),
    "parts": (
        (
            "held-out questions: the first hit, one of three, one of ten, recall@10",
            "better of BM25 and cosine",
            "Anaphora",
        ),
        (
            _part(_REALTALK, "REALTALK, turns"),
            _part(_BEAM, "BEAM-100K, turns"),
            _part("stories in which facts change, turns", "stories in which facts change, turns"),
            _part("stories in which facts change, facts", "the same, facts"),
            _part(
                "questions in other words, turns",
                "questions in other words than the answers, turns",
            ),
            _part("questions in other words, facts", "the same, facts"),
        ),
    ),
    "speed": (
        ("what was measured", "measured", "target"),
        (
            _timed(
                "recall over 10,000 real turns, without embedding the question, median",
                "speed",
                "recall less the question's embedding, p50",
                ".1f",
            ),
            _timed("the whole recall, 99th percentile", "speed", "whole recall, p99", ".1f"),
            _timed(
                "one recall on the command line, start to exit",
                "speed",
                "one recall by the command line, 10,000 turns",
                ".2f",
                "s",
            ),
            _timed(
                "`remember` at 10,000 memories, without embedding the text, median",
                "memory_speed_10000",
                "remember over its embedding, p50",
                ".1f",
            ),
            _timed(
                "recall at 10,000 memories, the same",
                "memory_speed_10000",
                "recall less E, p50",
                ".1f",
            ),
            _timed(
                "resident memory at 10,000 memories",
                "memory_speed_10000",
                "resident memory",
                ".0f",
                "MB",
            ),
            _timed(
                "a hook of a coding agent, beyond the interpreter's start, median",
                "hooks",
                "a hook with a warm process, over that, p50",
                ".0f",
            ),
        ),
    ),
    "compare": (
        ("", "recall@5", "recall@10", "MRR"),
        tuple(
            claim(
                f"{words} | {{five}} | {{ten}} | {{mrr}}",
                five=_compared("conversations", contestant, "recall@5"),
                ten=_compared("conversations", contestant, "recall@10"),
                mrr=_compared("conversations", contestant, "MRR"),
            )
            for contestant, words in (
                ("Anaphora", "Anaphora"),
                ("LanceDB hybrid", "LanceDB, its hybrid search"),
                ("BM25 + cosine, RRF", "BM25 and cosine, fused by rank"),
                ("Chroma", "Chroma"),
                ("LangGraph SqliteStore", "LangGraph's SqliteStore and InMemoryStore"),
                ("mem0", "mem0, without its model"),
                ("BM25", "BM25"),
            )
        ),
    ),
    "lmeb": (
        ("recall@10, macro", "model", "all chats", "chats 6 to 10"),
        (
            *(
                claim(
                    f"{words} | {{whole}} | {{half}}",
                    whole=_quality("REALTALK, all chats", _MACRO, method, ".3f"),
                    half=_quality(_REALTALK, _MACRO, method, ".3f"),
                )
                for method, words in (
                    ("Anaphora", "Anaphora | its own, 22 M"),
                    ("BM25", "BM25, here | –"),
                    ("cosine", "cosine, here | the same"),
                )
            ),
            # LMEB, arXiv 2603.12572.
            Claim("GIST-large, LMEB | 335 M | 0.588 | –"),
            Claim("bge-multilingual-gemma2, LMEB | 9 B | 0.586 | –"),
            Claim("NV-Embed-v2, LMEB | 7 B | 0.578 | –"),
            Claim("e5-small-v2, LMEB | 33 M | 0.513 | –"),
            Claim("BM25s, LMEB | – | 0.445 | –"),
            Claim("MiniLM, LMEB | 22 M | 0.396 | –"),
        ),
    ),
    "ogham": (
        ("recall@10", "chats", "abstention as 1.0", "without it"),
        (
            *(
                claim(
                    f"{words} | {{ones}} | {{without}}",
                    ones=_quality(name, _ONES, method, ".3f"),
                    without=_quality(name, _WITHOUT, method, ".3f"),
                )
                for method, name, words in (
                    ("Anaphora", _BEAM, "Anaphora | 6 to 10"),
                    ("Anaphora", "BEAM-100K, all chats", "Anaphora | 10"),
                    ("BM25", "BEAM-100K, all chats", "BM25, here | 10"),
                    ("cosine", "BEAM-100K, all chats", "cosine, here | 10"),
                )
            ),
            # Ogham v0.9.1, its result files.
            Claim("Ogham v0.9.1 | 20 | 0.737 | 0.708"),
            Claim("Ogham, BGE-M3 sparse and dense | 20 | 0.616 | –"),
        ),
    ),
}

_LESS, _ADD = "query less embedding, p50 ms", "one add less embedding, p50 ms"
_GONE, _MANY, _SIZE = "one delete, p50 ms", "16 threads, answers/s", "resident, MB"
_BULK, _OURS, _LANCE = "add, texts/s", "Anaphora", "LanceDB hybrid"
_TURNS, _FILES = "1,511 turns", "flask, 214 files"
_FIRST, _VECTORS = "first answer, s", "all vectors there, s"

CLAIMS: Final = (
    claim(
        "Anaphora puts the two in the right order in {share} of 100 cases",
        share=figure("changes", "held out, implicit: right first", ".0f", times=100),
    ),
    claim(
        "of 100 questions that the history does not answer although it speaks of the same people"
        " and things, recall returns nothing for {never}, and of 100 questions about something"
        " else for {others}. Of 100 questions that the history does answer, it wrongly returns"
        " nothing for {answered}.",
        never=figure("silence", "all: silent, never said", ".0f", times=100),
        others=figure("silence", "all: silent, asked of others", ".0f", times=100),
        answered=figure("silence", "all: silent, answered", ".0f", times=100),
    ),
    claim(
        "Of {turns} turns acknowledged by processes that were killed at random moments,"
        " {lost} were lost",
        turns=figure("durability", "turns acknowledged", ",.0f"),
        lost=figure("durability", "acknowledged turns lost", ".0f"),
    ),
    claim(
        "Another {killed} processes were killed while they remembered, forgot, reindexed and"
        " backed up; {lost} of their writes were lost",
        killed=total("memory_faults", "kills during "),
        lost=total("memory_faults", "acknowledged writes lost"),
    ),
    claim(
        "LanceDB's hybrid search finds {lance} % of the evidence in conversations, Chroma, mem0 and"
        " LangGraph's stores find {chroma} %, and Anaphora finds {ours} %",
        lance=_percent(_compared("conversations", _LANCE, "recall@10")),
        chroma=_percent(_compared("conversations", "Chroma", "recall@10")),
        ours=_percent(_compared("conversations", _OURS, "recall@10")),
    ),
    claim(
        "On lasting memories without speakers, Anaphora is level with LanceDB: Anaphora finds"
        " {ours} %, and LanceDB {lance} %",
        lance=_percent(_compared("memories", _LANCE, "recall@10")),
        ours=_percent(_compared("memories", _OURS, "recall@10")),
    ),
    Claim(
        "(recall@10: {lance} and {fused}, compared with Anaphora's {ours}), and better on BEAM's"
        " chats ({lance_beam} and {fused_beam}, compared with {ours_beam})",
        {
            f"{name}{ending}": _compared("memories", contestant, "recall@10", group)
            for name, contestant in (
                ("lance", _LANCE),
                ("fused", "BM25 + cosine, RRF"),
                ("ours", _OURS),
            )
            for ending, group in (("", "all"), ("_beam", "beam"))
        },
    ),
    claim(
        "(recall@10: {ours} of the files that a commit touched; LanceDB: {lance})",
        ours=_compared("projects", _OURS, "recall@10", "history, all"),
        lance=_compared("projects", _LANCE, "recall@10", "history, all"),
    ),
    claim(
        "When texts are added in bulk with known vectors, LanceDB stores {lance} texts per second,"
        " Anaphora {ours} (because it compares each text with all others and links similar ones)"
        " and Chroma {chroma}.",
        lance=_cost(_LANCE, _BULK, ",.0f"),
        ours=_cost(_OURS, _BULK, ",.0f"),
        chroma=_cost("Chroma", _BULK, ",.0f"),
    ),
    claim(
        "takes {lance} ms in LanceDB, {ours} ms in Anaphora and {chroma} ms in Chroma; removing one"
        " takes {lance_gone}, {ours_gone} and {chroma_gone} ms, respectively. Closing the home"
        " afterwards takes {closing} s in Anaphora",
        lance=_cost(_LANCE, _ADD),
        ours=_cost(_OURS, _ADD),
        chroma=_cost("Chroma", _ADD),
        lance_gone=_cost(_LANCE, _GONE),
        ours_gone=_cost(_OURS, _GONE),
        chroma_gone=_cost("Chroma", _GONE),
        closing=_cost(_OURS, "closed after that, s", ".2f"),
    ),
    Claim(
        "A query over 10,000 turns, without its embedding, takes {chroma} ms in Chroma, {ours} ms"
        " in Anaphora and {lance} ms in LanceDB. With sixteen threads in one process, they answer"
        " {chroma_many}, {ours_many} and {lance_many} queries per second, respectively. Resident"
        " memory is {ours_size} MB for Anaphora, {chroma_size} MB for Chroma and {lance_size} MB"
        " for LanceDB.",
        {
            f"{name}{ending}": _cost(contestant, what, form)
            for name, contestant in (("chroma", "Chroma"), ("ours", _OURS), ("lance", _LANCE))
            for ending, what, form in (
                ("", _LESS, ".1f"),
                ("_many", _MANY, ".0f"),
                ("_size", _SIZE, ".0f"),
            )
        },
    ),
    claim(
        "In an earlier run, mem0 stored {add} texts per second and took {one} ms for one add and"
        " {query} ms for a query",
        add=_cost("mem0", _BULK, ".0f"),
        one=_cost("mem0", _ADD),
        query=_cost("mem0", _LESS, ".0f"),
    ),
    claim(
        "a conversation of 1,511 turns can be searched after {ours} s (with vectors after"
        " {ours_vectors} s; Chroma needs {chroma} s, and LanceDB {lance} s), and the 214 files of"
        " flask after {files} s (with vectors after {files_vectors} s; Chroma needs"
        " {chroma_files} s, and LanceDB {lance_files} s)",
        ours=_waiting(_OURS, f"{_TURNS}: {_FIRST}"),
        ours_vectors=_waiting(_OURS, f"{_TURNS}: {_VECTORS}"),
        chroma=_waiting("Chroma", f"{_TURNS}: {_FIRST}"),
        lance=_waiting(_LANCE, f"{_TURNS}: {_FIRST}"),
        files=_waiting(_OURS, f"{_FILES}: {_FIRST}"),
        files_vectors=_waiting(_OURS, f"{_FILES}: {_VECTORS}"),
        chroma_files=_waiting("Chroma", f"{_FILES}: {_FIRST}", ".0f"),
        lance_files=_waiting(_LANCE, f"{_FILES}: {_FIRST}", ".0f"),
    ),
)


# -- the check


def problems(root: Path = ROOT) -> list[str]:
    """One line for each thing that is wrong."""
    texts = {page: (root / page).read_text("utf-8") for page in PAGES}
    lines = [line for page in PAGES for line in _differing(root, page, texts[page])]
    lines += [
        f"no page says: {claim.words}"
        for claim in CLAIMS
        if not any(claim.pattern.search(text) for text in texts.values())
    ]
    rows = [claim for _, claims in TABLES.values() for claim in claims]
    used = {value.result for claim in (*CLAIMS, *rows) for value in claim.values.values()}
    return lines + [line for result in sorted(used) for line in _unshown(root, result)]


def _differing(root: Path, page: str, text: str) -> Iterator[str]:
    try:
        wanted = renewed(root, text)
    except ClaimError as error:
        yield f"{page}: {error}"
        return
    lines = zip(text.splitlines(), wanted.splitlines(), strict=False)
    for number, (line, right) in enumerate(lines, 1):
        if line != right:
            yield f"{page}:{number}: {line.strip()!r}, but the results give {right.strip()!r}"


def _unshown(root: Path, result: str) -> Iterator[str]:
    command = COMMANDS.get(result, "")
    module = re.match(r"python -m ([\w.]+)", command)
    if module is None or importlib.util.find_spec(module[1]) is None:
        yield f"bench/results/{result}: no command makes it"
    if result not in measurements(root):
        yield f"bench/results/{result}: measured.json has no date, commit and machine for it"
    elif stale(root, result):
        yield f"bench/results/{result}: not what the measurement wrote; measure it again"


def renewed(root: Path, text: str) -> str:
    """A page with every value as it is now, and the tables between their comments."""
    for claim in CLAIMS:
        for match in reversed(list(claim.pattern.finditer(text))):
            for name in sorted(match.groupdict(), key=match.start, reverse=True):
                value = claim.values[name].shown(root)
                text = text[: match.start(name)] + value + text[match.end(name) :]
    for name, (head, claims) in TABLES.items():
        begin = f"<!-- claims: {name} -->\n"
        if begin in text:
            lines = [f"| {' | '.join(head)} |", f"|---{'|---:' * (len(head) - 1)}|"]
            lines += [f"| {claim.shown(root)} |" for claim in claims]
            before, _, rest = text.partition(begin)
            text = before + begin + "\n".join(lines) + "\n" + END + rest.partition(END)[2]
    return text


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.claims", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, list what is wrong")
    if not parser.parse_args(words).check:
        for page in PAGES:
            text = (ROOT / page).read_text("utf-8")
            (ROOT / page).write_text(renewed(ROOT, text), "utf-8")
    lines = problems()
    print("\n".join(lines) or f"{len(CLAIMS)} claims and {len(TABLES)} tables hold")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
