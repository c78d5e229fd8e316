"""The comparison as Markdown and JSON. It measures nothing.

The Markdown shows the better of a contestant's two forms of texts, and where Anaphora is behind;
the JSON has every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.compare.quality import ALL, Row
from bench.compare.speed import LIMIT

__all__ = ["Measured", "as_json", "as_markdown"]

OWN = "Anaphora"
_BY = "recall@10"


@dataclass(slots=True)
class Measured:
    """All that a run found. Empty where it was not run."""

    ran_on: str = ""
    command: str = ""
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    conversations: list[Row] = field(default_factory=list)
    memories: list[Row] = field(default_factory=list)
    projects: list[Row] = field(default_factory=list)
    speed: dict[str, dict[str, float]] = field(default_factory=dict)
    waiting: dict[str, dict[str, float]] = field(default_factory=dict)
    behaviours: dict[str, dict[str, str]] = field(default_factory=dict)


def as_json(found: Measured) -> dict[str, Any]:
    """Plain values."""
    return asdict(found)


def as_markdown(found: Measured) -> str:
    """The page."""
    said = "; ".join(f"{name}: {what}" for name, what in found.versions.items())
    parts = [_paragraphs(_HEAD), "", f"{found.ran_on}. Versions: {said}."]
    if found.missing:
        parts += ["", f"Not installed, so not measured: {', '.join(found.missing)}."]
    if found.conversations:
        parts += [
            "",
            _paragraphs(_CONVERSATIONS),
            *_ranked(found.conversations, _SETS),
            *_behind(found),
        ]
    if found.memories:
        parts += ["", _paragraphs(_MEMORIES), *_ranked(found.memories, _SETS)]
    if found.projects:
        parts += ["", _paragraphs(_PROJECTS), *_ranked(found.projects, _projects(found.projects))]
    if found.speed:
        parts += ["", _paragraphs(_SPEED), *_side_by_side(found.speed), "", _faster(found.speed)]
    if found.waiting:
        parts += ["", _paragraphs(_WAITING), *_side_by_side(found.waiting)]
    if found.behaviours:
        parts += ["", _paragraphs(_BEHAVIOURS), *_seen(found.behaviours)]
    return "\n".join(parts)


_SETS = {ALL: "both", "realtalk": "REALTALK", "beam": "BEAM"}


def _projects(rows: Sequence[Row]) -> dict[str, str]:
    single = sorted({row.group for row in rows if row.group.startswith("history: ")})
    return {
        "history, all": "history",
        "issues": "issues",
        **{name: name.removeprefix("history: ").split("/")[-1] for name in single},
    }


def _better(rows: Sequence[Row]) -> dict[str, str]:
    """The form of each contestant that finds more; Anaphora's first, which is its default."""
    first = rows[0].group if all(row.group != ALL for row in rows) else ALL
    found: dict[str, tuple[float, str]] = {}
    for row in rows:
        if (row.group, row.category) != (first, ALL):
            continue
        value = (row.figures[_BY], row.form)
        if row.contestant not in found or (row.contestant != OWN and value > found[row.contestant]):
            found[row.contestant] = value
    return {name: form for name, (_, form) in found.items()}


def _ranked(rows: Sequence[Row], groups: Mapping[str, str]) -> list[str]:
    """All figures of the first group, then what is found of each further group; best first."""
    whole, *others = groups
    at = {
        (r.contestant, r.form, r.group): r for r in rows if r.category == ALL and r.group in groups
    }
    better = _better(rows)
    shown = [
        row
        for row in at.values()
        if row.group == whole and (row.form == better[row.contestant] or row.contestant == OWN)
    ]
    names = list(shown[0].figures)
    first = f"{groups[whole]}, {shown[0].questions} questions: {names[0]}"
    heads = [first, *names[1:]]
    for group in others:
        count = next(row.questions for row in at.values() if row.group == group)
        heads.append(f"{groups[group]}, {count}: {_BY}")
    forms = any(row.form for row in shown)
    lines = ["", "| contestant | " + "texts | " * forms + " | ".join(heads) + " |"]
    lines += ["|---|" + "---|" * forms + "---:|" * len(heads)]
    for row in sorted(shown, key=lambda row: -row.figures[_BY]):
        values = [row.figures[name] for name in names]
        values += [at[row.contestant, row.form, group].figures[_BY] for group in others]
        cells = " | ".join(f"{value:.3f}" for value in values)
        lines.append(f"| {row.contestant} | " + f"{row.form} | " * forms + f"{cells} |")
    return lines


def _behind(found: Measured) -> list[str]:
    """The kinds of questions in which another finds more than Anaphora, and who does."""
    rows, better = found.conversations, _better(found.conversations)
    kinds: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        if row.category != ALL and row.form == better[row.contestant]:
            kinds.setdefault((row.group, row.category), {})[row.contestant] = row
    said, count = [], 0
    for (group, category), own in sorted(kinds.items(), reverse=True):
        if OWN not in own:
            continue
        count += 1
        mine = own[OWN].figures[_BY]
        ahead = [(row.figures[_BY], name) for name, row in own.items() if row.figures[_BY] > mine]
        if ahead:
            who = ", ".join(f"{name} {value:.3f}" for value, name in sorted(ahead, reverse=True))
            said.append(
                f"{_SETS[group]} {category}, {own[OWN].questions} questions "
                f"({who}; Anaphora {mine:.3f})"
            )
    if not count:
        return []
    words = "; ".join(said) if said else "none"
    return ["", f"Of {count} kinds of questions, those in which others find more: {words}."]


def _side_by_side(speed: Mapping[str, Mapping[str, float]]) -> list[str]:
    names = list(dict.fromkeys(name for figures in speed.values() for name in figures))
    lines = ["", "| contestant | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for contestant, figures in speed.items():
        cells = [_number(figures[name]) if name in figures else "-" for name in names]
        lines.append(f"| {contestant} | " + " | ".join(cells) + " |")
    return lines


def _faster(speed: Mapping[str, Mapping[str, float]]) -> str:
    """Who is ahead of Anaphora, figure by figure; more is better for rates alone."""
    said = []
    for name, mine in speed.get(OWN, {}).items():
        sign = -1 if name.endswith("/s") else 1
        ahead = [
            who
            for who, figures in speed.items()
            if who != LIMIT and name in figures and sign * figures[name] < sign * mine
        ]
        said.append(f"{name}: {', '.join(ahead) or 'nobody'}")
    if not said:
        return ""
    limits = speed.get(LIMIT, {})
    ratios = [f"{name} {speed[OWN][name] / least:.2g}" for name, least in limits.items()]
    ending = f"\n\nAnaphora as a multiple of the limit: {'; '.join(ratios)}." if ratios else ""
    return f"Ahead of Anaphora: {'; '.join(said)}.{ending}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _seen(behaviours: Mapping[str, Mapping[str, str]]) -> list[str]:
    checks = list(dict.fromkeys(check for seen in behaviours.values() for check in seen))
    lines = ["", "| contestant | " + " | ".join(checks) + " |", "|---|" + "---|" * len(checks)]
    for contestant, seen in behaviours.items():
        cells = [seen.get(check, "-").replace("|", "/") for check in checks]
        lines.append(f"| {contestant} | " + " | ".join(cells) + " |")
    return lines


def _paragraphs(text: str) -> str:
    """Each paragraph on one line: the page goes into another as a whole."""
    return "\n\n".join(
        one if one.startswith("    ") else one.strip("\n").replace("\n", " ")
        for one in text.split("\n\n")
    )


_HEAD = """# Anaphora compared with the alternatives

Same texts, same questions, same model (the one that Anaphora bundles, 8 bits), same
machine; each product in a process and an interpreter of its own. Written and run by the makers of
Anaphora. Nothing in Anaphora was tuned for this. Its weights for turns and memories were fitted on
chats 1 to 5 of both sets of conversations; the questions are from chats 6 to 10. Its ranking of
files, however, was designed with these projects in view, so its figures there promise less than the
others' (`project_ablation.md` shows how much less).

    python -m bench.compare --prepare DIR                    # environments, once
    python -m bench.compare --data DATA --environments DIR --cache DIR [--chroma-model DIR]

**Input.** "plain" texts are turns as they are, of which the shared model reads the first 256 word
pieces, as it does in the usual tools. "prepared" texts are what a careful user would make of them:
turns over 1,000 characters split into pieces, each with the speaker's name in front. Tables show
the form that did better for each product; `compare.json` has both. mem0 and InMemoryStore, which
take hundreds of milliseconds per question, were only run on plain conversations; they rank by
cosine, so the figures of cosine show what they would find in the rest. Anaphora always gets turns
as they are, with speakers and times, and splits them itself.

**Setup.** **BM25** is `bm25s` with English stop words and stems; **cosine** compares all vectors;
**RRF** fuses the first 100 of both with k = 60. These are libraries: nothing is stored unless the
user writes it. **Chroma** is a `PersistentClient`, one collection per chat, cosine distance; its
default model is the shared one in 32 bits, which is run under "speed" and "network".
**LangGraph**'s stores are queried by `search` with a query, one namespace per chat. These three
rank by meaning alone. **LanceDB** is its own hybrid search: full-text index and vectors fused by
its `RRFReranker`. **mem0** runs with `infer=False`, which stores texts as given; its main mode, in
which a language model chooses the facts to keep, is not measured, nor are its optional extras for
words. Offline it needs `MEM0_TELEMETRY=False`, an embedder of your own and a configured language
model, which is never called. **Anaphora** is `recall_conversation`, `recall` and `recall_context`
with their defaults.
"""

_CONVERSATIONS = """## 1. Old turns of a conversation

Each question is asked of its own chat: the share of its evidence among the first 5 and 10 turns,
mean reciprocal rank, nDCG@10."""

_MEMORIES = """## 2. Lasting memories

All 7,035 turns of the ten chats together, with the times at which they were said; the clock is set
to the last of them. A hit is identified by its text. For Anaphora every form that was run is shown:
its memories have no speaker, so the name in prepared texts is as new to it as to the others. Its
memories fade with age, which can only lower its scores here, because ages are unrelated to the
questions; "all of one day" is the same without times."""

_PROJECTS = """## 3. Files of a project

Commit subjects of four repositories, at most 200 each (which files were touched), and 13 bug
reports (which files were edited; one more or less is 0.08), with the wanted files' own names
removed. BM25 ranks whole files; the others rank pieces of 1,000 characters with their paths, and a
file gets the rank of its best piece; Anaphora indexes files as they are. The other stores, which
rank by meaning as Chroma does, were not run."""

_SPEED = """## 4. Speed and size

All turns together, ten results per question. "add" is the store's own work for a bulk of texts with
known vectors (mem0 takes one text per call: timed over 500). Then a new process opens the store,
loads the model, answers and adds: whole calls with embedding, and the same without the time in the
embedder. Anaphora embeds a long text in several parts, the others only its beginning. InMemoryStore
leaves nothing to open, and was queried with known vectors. "16 threads" are those of one process,
each asking a question and then the next. Deleting ends with the store's closing, in which Anaphora
takes the last bytes of what was forgotten off the disk; the others leave them there ("behaviour").
The limit is one embedding, one pass
over a float32 vector for each text (none of it in the processor's cache), and one fsync.
`--only speed`"""

_WAITING = """## 5. Until the first answer

From handing over a conversation, or the files of a project, to the first answer, in a process whose
model is loaded; no vector is known. Anaphora answers by words and symbols first, and makes vectors
behind the calls; the others keep and embed in one call. Long turns and files are embedded whole
by Anaphora (of pasted code the beginning), the first 256 word pieces of a turn, or pieces of 1,000
characters of a file, by the others. `--only waiting`"""

_BEHAVIOURS = """## 6. Behaviour

Each check runs on a store of its own; libraries without a store are left out. Network: under
strace, with the product's own defaults (including telemetry), a text is stored and found, then 30
seconds pass. The model that this comparison brings runs with onnxruntime's telemetry off; Chroma's
default model runs as Chroma runs it. `--only behaviours`"""
