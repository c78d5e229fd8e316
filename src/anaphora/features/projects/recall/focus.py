"""Reads focus statements: what to look up, how much each word counts, what the task needs.

A statement is a task line, a question or a whole bug report with code and tracebacks. It is cut
into parts that count differently (first line, prose, code, traceback); the `FocusReading` has the
weighted terms, what is named (paths, dotted names, symbols in back-ticks, frames, error classes),
intents, and the words to embed. A focus without useful terms gives an empty reading, never a guess.
Any string of any length is fine. Pure: it knows no project, no index and no clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Final, Literal

from anaphora.features.projects.values import Focus, Intent
from anaphora.language.analyser import STOP_WORDS, analyse, fold
from anaphora.recall.query import truncated_questions
from anaphora.values.conversations import Degraded

PartKind = Literal["first", "prose", "code", "frame", "error", "form"]

WEIGHTS: Final[dict[PartKind, float]] = {
    "first": 1.0,
    "prose": 0.7,
    "code": 0.5,
    "frame": 0.4,
    "error": 0.6,
    "form": 0.0,
}
"""What a word counts by where it stands. `form` is what a template asks of everybody."""


@dataclass(frozen=True, slots=True)
class FocusPart:
    """A piece of a statement. A `frame` of a traceback has its file and function."""

    kind: PartKind
    text: str
    weight: float
    place: str = ""
    symbol: str = ""


_FENCE: Final = re.compile(r"^\s{0,3}(```+|~~~+)")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG: Final = re.compile(r"</?(?:details|summary|br|p|b|i|img|kbd|sub|sup)\b[^>\n]{0,200}>")
_URL: Final = re.compile(r"\b(?:https?|ftp)://[^\s<>\"'`|)\]]+")
_FRAME: Final = re.compile(
    r"""^\s*(?:-->\s*)?(?:File\s+"(?P<quoted>[^"\n]{1,300})",\s+line\s+\d+(?:,\s+in\s+(?P<f1>[\w.<>]+))?
        |File\s+(?P<bare>[^\s:"]{1,300}):\d+(?:,\s+in\s+(?P<f2>[\w.]+))?
        |at\s+(?P<f3>[\w.$<>]+)\s+\((?P<js>[^():\n]{1,300}):\d+(?::\d+)?\)
        |(?P<short>[\w./\\~-]{1,300}\.\w{1,5}):\d+:(?:\s+in\s+(?P<f4>[\w.]+))?)""",
    re.VERBOSE,
)
_RAISED: Final = re.compile(
    r"^\s*(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Failure|Exit|Interrupt)\b(?::.*)?$"
)
_TRACE_NOISE: Final = re.compile(
    r"^\s*(?:Traceback \(most recent|During handling of|The above exception|-{5,}|\.\.\.\s*$)"
)
_HEADING: Final = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$|^\s*\*\*(.+?)\*\*:?\s*$")
_FORM_HEADING: Final = re.compile(
    r"^(?:describe the (?:bug|issue|problem|feature|solution)|(?:the )?expected"
    r" (?:behaviou?r|results?|outcome)|(?:the )?(?:actual|current|observed)"
    r" (?:behaviou?r|results?|outcome)|(?:steps )?to reproduce|steps|repro\w*(?: steps)?"
    r"|reproduction steps|environment|system info\w*|versions?"
    r"|additional (?:context|info\w*)|screenshots?|checklist|summary|description|context|notes?"
    r"|minimal (?:reproducible )?example|what happened|what did you (?:do|expect).*"
    r"|your environment"
    r"|platform|configuration|logs?)\W*$",
    re.IGNORECASE,
)
_FORM_LINE: Final = re.compile(
    r"^\s*(?:[-*]\s*)?(?:\[[ xX]\]\s|(?:python|os|platform|version|\w+ version|implementation|arch"
    r"|kernel|node|browser)\s*[:=]\s)",
    re.IGNORECASE,
)
_ENVIRONMENT: Final = re.compile(
    r"^(?:your )?(?:environment|system info\w*|versions?|platform)\W*$", re.IGNORECASE
)


def parts_of(statement: str) -> list[FocusPart]:
    """The parts of a statement, in order. The first line that is not a form counts most."""
    parts: list[FocusPart] = []
    lines = _read_lines(_TAG.sub(" ", _COMMENT.sub(" ", statement)))
    for kind, alike in groupby(lines, key=lambda part: part.kind):
        # Neighbouring lines of one kind become one part, but for frames.
        if kind == "frame":
            parts += alike
        else:
            parts.append(_make_part(kind, "\n".join(part.text for part in alike)))
    return parts


def _read_lines(text: str) -> Iterator[FocusPart]:
    fence, begun, environment = "", False, False
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)[:3]
            continue
        if not line.strip():
            continue
        frame = _FRAME.match(line)
        if frame is not None:
            path = frame["quoted"] or frame["bare"] or frame["js"] or frame["short"]
            symbol = frame["f1"] or frame["f2"] or frame["f3"] or frame["f4"] or ""
            symbol = "" if symbol.startswith("<") else symbol
            yield FocusPart(
                "frame", f"{path} {symbol}", WEIGHTS["frame"], path.replace("\\", "/"), symbol
            )
            continue
        if _RAISED.match(line) or _TRACE_NOISE.match(line):
            yield _make_part("error" if _RAISED.match(line) else "form", line)
            continue
        if fence or line.startswith((">>> ", "In [")):
            yield _make_part("code", line)
            continue
        form = _HEADING.match(line)
        heading = (form.group(1) or form.group(2)) if form is not None else ""
        if heading:
            environment = _ENVIRONMENT.match(heading) is not None
        if environment or _FORM_LINE.match(line) or _FORM_HEADING.match(heading or line.strip()):
            yield _make_part("form", line)
        else:
            yield _make_part("prose" if begun else "first", _URL.sub(" ", line))
            begun = True


def _make_part(kind: PartKind, text: str) -> FocusPart:
    return FocusPart(kind, text, WEIGHTS[kind])


MentionKind = Literal["path", "dotted", "symbol", "frame", "error", "module"]

MOST_TERMS: Final = 256
"""Terms of a reading; the index keeps the weightiest of them once it knows how rare each is."""

MOST_MENTIONS: Final = 64

LEAD_CHARACTERS: Final = 1_200
"""What is embedded: about the 256 tokens that the bundled model reads."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Something that the focus calls by its name, and how surely it is meant (0 … 1)."""

    text: str
    kind: MentionKind
    weight: float


@dataclass(frozen=True, slots=True)
class FocusReading:
    """A focus as it was read.

    `weights` has each term of `focus.terms` (tokens of the index's analyser) with how much it
    counts before its rarity is known; `lead` is what to embed, "" where there is nothing; `log` is
    True where a change log is asked for; `degraded` says what of a long focus was not read.
    """

    focus: Focus
    weights: Mapping[str, float]
    mentions: tuple[Mention, ...] = ()
    lead: str = ""
    log: bool = False
    degraded: tuple[Degraded, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.weights)


def read_focus(statements: str | Iterable[str]) -> FocusReading:
    """Read one statement or several; blank ones count for nothing."""
    texts = (statements,) if isinstance(statements, str) else tuple(statements)
    texts, cut_notices = truncated_questions(
        [statement for statement in texts if statement.strip()]
    )
    parts, leads = list[FocusPart](), list[str]()
    for statement in texts:
        statement_parts = parts_of(statement)
        parts.extend(statement_parts)
        # The first line, then the prose, then what else there is.
        prose = [part.text for part in statement_parts if part.kind in ("first", "prose", "error")]
        leads.append("\n".join(text for text in prose if text))
    # What is named, once each with its greatest weight, in order of appearance.
    mention_weights: dict[tuple[str, MentionKind], float] = {}
    for part in parts:
        for text, kind, weight in _find_in_part(part):
            # Of a frame that comes again the place counts: the last one is where it was raised.
            key = (text, kind)
            before = (
                mention_weights.pop(key, 0.0) if kind == "frame" else mention_weights.get(key, 0.0)
            )
            mention_weights[key] = min(1.0, max(before, weight))
    chosen = set(sorted(mention_weights, key=lambda key: -mention_weights[key])[:MOST_MENTIONS])
    mentions = tuple(
        Mention(*key, weight) for key, weight in mention_weights.items() if key in chosen
    )
    weights = _weigh_terms(parts)
    terms = sorted(weights, key=lambda term: -weights[term])[:MOST_TERMS]
    paths = ("path", "dotted", "frame")
    names = dict.fromkeys(mention.text for mention in mentions if mention.kind in paths)
    # In the order of appearance: a reader of the package recognises the focus in it.
    term_set = set(terms)
    weights = {term: weight for term, weight in weights.items() if term in term_set}
    return FocusReading(
        focus=Focus(
            statements=texts,
            terms=tuple(weights),
            names=tuple(names) if weights else (),
            intents=_read_intents(parts) if weights else (),
        ),
        weights=weights,
        mentions=mentions if weights else (),
        lead="\n".join(leads)[:LEAD_CHARACTERS].strip() if weights else "",
        log=_LOG.search("\n".join(leads)) is not None,
        degraded=cut_notices,
    )


REPEATED: Final = 0.25
"""What the second and the fourth time that a term comes add to its weight: a report's theme is what
it repeats. No more than that: in a pasted log everything comes a thousand times."""


def _weigh_terms(parts: Sequence[FocusPart]) -> dict[str, float]:
    """Each useful term's weight: that of the best part that holds it, raised by repetition."""
    best_weights: dict[str, float] = {}
    count: dict[str, int] = {}
    for part in parts:
        if part.weight <= 0.0:
            continue
        for term in analyse(part.text, keep_stop_words=False):
            # A digit or a letter alone, "0x7f…" or a bare small number is on every line of a log.
            if (len(term) < 2 and term.isascii()) or (term.isdecimal() and len(term) < 3):
                continue
            if term in STOP_WORDS:
                continue
            best_weights[term] = max(best_weights.get(term, 0.0), part.weight)
            count[term] = count.get(term, 0) + 1
    weights = {}
    for term, weight in best_weights.items():
        raised_weight = weight * (1.0 + REPEATED * min(2, count[term].bit_length() - 1))
        # Nothing that is repeated further below outgrows the first line.
        weights[term] = raised_weight if weight >= 1.0 else min(1.0, raised_weight)
    return weights


_PATH: Final = re.compile(
    r"""(?<![\w/.-])(?:[\w.@~+-]+[/\\])+[\w@+.-]+          # folders and a last component
        |(?<![\w/.-])\.?[\w@+-]+(?:\.[\w+-]+)+            # a lone file name
    """,
    re.VERBOSE,
)
_FILE: Final = re.compile(
    r"\.(?:py[iwx]?|ipynb|[cm]?[jt]sx?|vue|svelte|go|rs|java|kts?|scala|cc?|cpp|cxx|hh?|hpp|cs|fs|rb|php"
    r"|swift|m|mm|lua|pl|pm|r|jl|hs|exs?|erl|clj|dart|zig|sh|bash|zsh|fish|ps1|bat|sql|proto|graphql"
    r"|md|mdx|rst|txt|adoc|org|tex|html?|css|scss|less|xml|svg|json[5c]?|ya?ml|toml|ini|cfg|conf|env"
    r"|lock|csv|tsv|mk|cmake|gradle|tf|dockerfile|properties|in|j2|jinja|tpl|tmpl)$",
    re.IGNORECASE,
)
_MODULE: Final = re.compile(
    r"\b(?:sub)?(?:module|package|folder|directory)\s+`{0,2}(?P<after>\w[\w./-]*)"
    r"|(?<![\w./-])(?P<before>\w[\w./-]*)`{0,2}\s+(?=(?:sub)?(?:module|package|folder|directory)\b)",
    re.IGNORECASE,
)
"""A word beside what says that it is a folder: "the shop package", "package shop"."""
_DOTTED: Final = re.compile(r"(?<![\w/.])[A-Za-z_]\w+(?:(?:\.|::|#)[A-Za-z_]\w*)+(?![\w/])")
_TICKED: Final = re.compile(r"`{1,2}([^`\n]{1,120})`{1,2}")
_SYMBOL: Final = re.compile(r"[A-Za-z_][\w.:#-]*")
_CALL: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w{2,})\(")
_SHAPED: Final = re.compile(r"(?<![\w.])(?:[A-Za-z]+_\w+|_+[A-Za-z]\w+|[A-Za-z]*[a-z][A-Z]\w*)")
_ERROR: Final = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning|Failure)\b")

UNTICKED: Final = 0.8
"""A word that is only shaped like a symbol, beside one that stands in back-ticks."""

OF_FRAME: Final = 0.5
"""The function of a traceback's frame, beside its file."""


def _find_paths(part: FocusPart) -> Iterator[tuple[str, MentionKind, float]]:
    for match in _PATH.finditer(part.text):
        path = match.group().replace("\\", "/")
        if "/" in path or _FILE.search(path):
            yield path.rstrip("./").removeprefix("./"), "path", part.weight
    for match in _MODULE.finditer(part.text):
        yield (match["after"] or match["before"]).rstrip("./-"), "module", part.weight


def _find_in_part(part: FocusPart) -> Iterator[tuple[str, MentionKind, float]]:
    if part.kind == "frame":
        yield part.place, "frame", part.weight
        if part.symbol:
            yield part.symbol, "symbol", OF_FRAME * part.weight
        return
    yield from _find_paths(part)
    for match in _DOTTED.finditer(part.text):
        if not _FILE.search(match.group()):
            yield match.group(), "dotted", part.weight
    for match in _TICKED.finditer(part.text):
        symbol = _SYMBOL.search(match.group(1))
        if symbol is not None:
            yield symbol.group(), "symbol", part.weight
    for match in _CALL.finditer(part.text):
        yield match.group(1), "symbol", UNTICKED * part.weight
    for match in _SHAPED.finditer(part.text):
        yield match.group(), "symbol", UNTICKED * part.weight
    for match in _ERROR.finditer(part.text):
        yield match.group(), "error", part.weight


_LOG: Final = re.compile(
    r"\bchange ?log|\brelease notes?\b|\bCHANGES\b|\bnews file\b", re.IGNORECASE
)

_INTENT_LINES: Final[Mapping[Intent, str]] = {
    "docs": "doc docs document documentation documented docstring readme guide tutorial changelog"
    " typo spelling wording grammar explain manual howto example sphinx",
    "setup": "install installation setup dependency dependencies package packaging pyproject build"
    " release version pin ci workflow pipeline lint linter upgrade bump configure docker"
    " environment venv pip npm",
    "implementation": "implement implementation fix fixed fixes add added support refactor bug"
    " error raise raises crash crashes function class method parameter option argument code handler"
    " allow remove rename api endpoint exception feature",
    "tests": "test tests testing tested coverage pytest unittest fixture spec",
    "decisions": "why decision decisions decide decided chose choose chosen rationale adr reason"
    " tradeoff trade-off alternative alternatives constraint policy",
    # The seed's list of what asks for the past, and the ways in which it is asked for otherwise.
    "history": "historical previous previously prior old before changed why invalidated tried"
    " continue continues continued continuing resume resumes resumed resuming blocked earlier"
    " formerly used",
}
_INTENT_WORDS: Final = {intent: frozenset(line.split()) for intent, line in _INTENT_LINES.items()}
_HISTORY_WORDS: Final = (
    "history supersede replace replacement migrate migration attempt rollback decision predecessor"
)
"""Words of which every form asks for the past. Those of `_INTENT_LINES` have forms that do not:
"continuous", "invalid", "use", "block"."""
_WORDS: Final = re.compile(r"[a-z]+(?:-[a-z]+)*")


@cache
def _history_stems() -> frozenset[str]:
    return frozenset(analyse(_HISTORY_WORDS))


def _read_intents(parts: Sequence[FocusPart]) -> tuple[Intent, ...]:
    """What the first line and the prose ask for, in the order of how often they say so."""
    text = " ".join(part.text for part in parts if part.kind in ("first", "prose"))[:4_000]
    words = _WORDS.findall(fold(text))
    counts = {
        intent: sum(word in intent_words for word in words)
        for intent, intent_words in _INTENT_WORDS.items()
    }
    stems = _history_stems()
    counts["history"] += sum(token in stems for token in analyse(text))
    order = sorted((i for i in counts if counts[i]), key=lambda intent: -counts[intent])
    return tuple(order)
