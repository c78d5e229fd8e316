"""`python -m bench.compare`: Anaphora beside other products, on the same data, in one run.

In: the folder of shared data, a folder of virtual environments (`--prepare` makes them). Out:
bench/results/compare.md and .json. With `--only` and `--who`, what is not run is taken from the
last results. Everything runs without a network but `--prepare`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from anaphora.embed.minilm import MINILM
from anaphora.values.conversations import READ_AWAITED, READ_BY_DEFAULT, READ_IN_HOOKS
from bench.compare.costs import CPU, Costs, measure_costs
from bench.compare.measuring import (
    ALL,
    Place,
    Row,
    conversations,
    memories,
    pieces,
    project_sets,
    projects,
    waiting,
)
from bench.compare.process import CONTESTANTS, ONLY_SPEED, Contestant, installed, prepare, versions
from bench.compare.questions import Chat, prepared, read_chats, read_many
from bench.compare.vectors import SEAM, Vectors
from bench.figures import RESULTS, machine, write
from bench.projects import stripped

TITLES: Final = {
    "conversations": "1. Old turns of a conversation, each asked of its own chat",
    "memories": "2. Lasting memories: all 7,035 turns together, a hit is identified by its text",
    "projects": "3. Files of a project: commit subjects, and bug reports (13)",
    "speed": "4. Speed and size: 10,000 texts, ten results per question",
    "sizes": "5. Speed by the number of texts",
    "waiting": "6. Until the first answer: no vector is known, the model is loaded",
}
_WHOLE: Final = "query, p50 ms"
SIZE: Final = 10_000
SIZES: Final = (1_000, 10_000, 100_000)
SIZED: Final = ("chroma", "langgraph_sqlite", "lancedb", "anaphora", "limit")
SIZED_COSTS: Final = (
    "query, p50 ms",
    "query less embedding, p50 ms",
    "one add less embedding, p50 ms",
    "one delete, p50 ms",
    "add, texts/s",
    "opened and first answer less embedding, ms",
    "resident, MB",
    "on disk, MB",
)
_HEAD: Final = f"""# Anaphora compared with the alternatives

Same texts, same questions, same model (the one that Anaphora bundles, 8 bits), same machine; each
product in a process and an interpreter of its own. Written and run by the makers of Anaphora. Its
weights for turns and memories were fitted on chats 1 to 5 of both sets of conversations; the
questions are from chats 6 to 10. Its ranking of files, however, was designed with these projects in
view.

    python -m bench.compare --prepare DIR                    # environments, once
    python -m bench.compare --data DATA --environments DIR --cache DIR
    python -m bench.compare --data DATA --environments DIR --cache DIR --only sizes \\
        --who anaphora --sizes 1000000

**Input.** "plain" texts are turns as they are, of which the shared model reads the first 256 word
pieces, as it does in the usual tools. "prepared" texts are what a careful user would make of them:
turns over 1,000 characters split into pieces, each with the speaker's name in front. mem0 and
InMemoryStore, which take hundreds of milliseconds per question, were only run on plain
conversations; they rank by cosine. Anaphora always gets turns as they are, with speakers and times.

**Setup.** **BM25** is `bm25s` with English stop words and stems; **cosine** compares all vectors;
**RRF** fuses the first 100 of both with k = 60. **Chroma** is a `PersistentClient`, one collection
per chat, cosine distance. **LangGraph**'s stores are queried by `search` with a query, one
namespace per chat. **LanceDB** is its own hybrid search: full-text index and vectors fused by its
`RRFReranker`. **mem0** runs with `infer=False`, which stores texts as given; its main mode, in
which a language model chooses the facts to keep, is not measured. **Anaphora** is
`recall_conversation`, `recall` and `recall_context` with their defaults.

**Speed.** Wall time, and in brackets the same by the processor (all threads; answers and texts per
second of it). "add" is the store's own work for a bulk of texts with known vectors; then a new
process opens the store, loads the model, answers and adds. Deleting ends with the store's closing,
in which Anaphora takes the last bytes of what was forgotten off the disk. "synchronous" is SQLite's
setting, read from the connection where the program shows it. The **limit** is the least that this
machine needs: one product of the same vectors by numpy, or of bytes by numkong, and one read of the
ten texts; a write is one transaction. **Reader on**: the reader judges the first {READ_AWAITED}
candidates with the question, as the server's routes, the MCP tools, the command line and the web
page ask by default; hooks read {READ_IN_HOOKS}, the Python API {READ_BY_DEFAULT} (its default is
"Anaphora"). Beyond 11,260 texts, which are turns, a text is two short turns joined.
"""


def main() -> None:
    """Read the arguments; prepare or run."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("--prepare", type=Path, metavar="DIR", help="make the environments there")
    parser.add_argument("--data", type=Path, help="the folder of shared data")
    parser.add_argument("--environments", type=Path, help="what --prepare made")
    parser.add_argument("--cache", type=Path, help="keeps vectors from one run to the next")
    parser.add_argument("--only", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--who", nargs="+", choices=[one.name for one in CONTESTANTS])
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="of the part sizes")
    chosen = parser.parse_args()
    if chosen.prepare is not None:
        prepare(chosen.prepare)
        return
    if None in (chosen.data, chosen.environments, chosen.cache):
        parser.error("--data, --environments and --cache are needed")
    place = Place(chosen.environments, chosen.cache)
    who = installed(place.environments)
    who = [one for one in who if one.name in (chosen.who or one.name)]
    run(place, chosen.data, chosen.only, who, chosen.sizes)


def run(
    place: Place, data: Path, only: Sequence[str], who: Sequence[Contestant], sizes: Sequence[int]
) -> None:
    """Measure the parts, and write the report after each, so that an interrupted run leaves what
    it has."""
    file = RESULTS / "compare.json"
    value: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    value.setdefault("versions", {}).update(
        {one.shown: versions(one, place.environments) for one in who}
    )
    chats = read_chats(data)
    if set(only) - {"speed", "sizes"}:
        _embed(place, data, chats)
    others = [one for one in who if one.name not in ONLY_SPEED]
    for part in only:
        rows: list[Row] = []
        if part == "conversations":
            rows = list(conversations(place, data, chats, others))
        elif part == "memories":
            rows = list(memories(place, chats, others))
        elif part == "projects":
            rows = list(projects(place, data, others))
        elif part == "waiting":
            value[part] = value.get(part, {}) | waiting(place, data, chats, others)
        elif part == "speed":
            known = value.get(part, {}) | _speed(place, data, who, SIZE)
            value[part] = {o.shown: known[o.shown] for o in CONTESTANTS if o.shown in known}
        else:
            value[part] = value.get(part, {}) | dict(_sizes(place, data, who, sizes))
        if rows:
            fresh = {row.contestant for row in rows}
            old = [row for row in value.get(part, []) if row["contestant"] not in fresh]
            value[part] = [*old, *map(asdict, rows)]
        value["ran_on"] = machine()
        write("compare", json.dumps(value, indent=1), as_markdown(value))


def _speed(place: Place, data: Path, who: Sequence[Contestant], size: int) -> dict[str, Costs]:
    items, questions = read_many(data, size)
    Vectors(MINILM, place.shared).keep(half for item in items for half in item.text.split(SEAM))
    return measure_costs(place, who, [(item.id, item.text, item.at) for item in items], questions)


def _sizes(
    place: Place, data: Path, who: Sequence[Contestant], sizes: Sequence[int]
) -> Iterator[tuple[str, Costs]]:
    own = [one for one in who if one.name in SIZED]
    for size in sizes:
        for shown, costs in _speed(place, data, own, size).items():
            names = [name + ending for name in SIZED_COSTS for ending in ("", CPU)]
            yield f"{shown}, {size:,}", {name: costs[name] for name in names if name in costs}


def _embed(place: Place, data: Path, chats: Sequence[Chat]) -> None:
    """Vectors of everything that is asked and kept, once."""
    texts = [question.text for chat in chats for question in chat.questions]
    texts += [item.text for chat in chats for item in (*chat.items, *prepared(chat))]
    for project in project_sets(data):
        texts += [stripped(question) for question in project.questions]
        texts += [text for _, text, _ in pieces(project)]
    Vectors(MINILM, place.shared).keep(texts)


def as_markdown(value: Mapping[str, Any]) -> str:
    """The page: a table for each part, rows best first."""
    known = "; ".join(f"{name}: {versions}" for name, versions in value["versions"].items())
    lines = [_HEAD, f"{value['ran_on']}. Versions: {known}."]
    for part, title in TITLES.items():
        if part in value:
            table = _rows if isinstance(value[part], list) else _side_by_side
            lines += ["", f"## {title}", "", *table(value[part])]
    return "\n".join(lines)


def _rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The figures of each set as a whole, then recall@10 by category, Anaphora's last."""
    shown = [row for row in rows if row["category"] == ALL]
    names = list(shown[0]["figures"])
    lines = [f"| contestant | texts | set | questions | {' | '.join(names)} |"]
    lines.append("|---|---|---|" + "---:|" * (len(names) + 1))
    order = sorted(shown, key=lambda row: (row["group"], -row["figures"]["recall@10"]))
    for row in order:
        cells = " | ".join(f"{row['figures'].get(name, 0):.3f}" for name in names)
        head = f"{row['contestant']} | {row['form']} | {row['group']} | {row['questions']}"
        lines.append(f"| {head} | {cells} |")
    kinds = [row for row in rows if row["category"] != ALL]
    columns = list(dict.fromkeys(_who(row) for row in kinds))
    lines += ["", f"| recall@10 | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for group, category in dict.fromkeys((row["group"], row["category"]) for row in kinds):
        own = {_who(r): r for r in kinds if (r["group"], r["category"]) == (group, category)}
        shares = (
            f"{own[name]['figures']['recall@10']:.3f}" if name in own else "-" for name in columns
        )
        lines.append(f"| {group}, {category} | {' | '.join(shares)} |")
    return lines


def _who(row: Mapping[str, Any]) -> str:
    return f"{row['contestant']}, {row['form']}".rstrip(", ")


def _side_by_side(costs: Mapping[str, Costs]) -> list[str]:
    """A column for each contestant."""
    names = dict.fromkeys(name for own in costs.values() for name in own if CPU not in name)
    lines = [f"| | {' | '.join(costs)} |", "|---|" + "---:|" * len(costs)]
    lines += (
        f"| {name} | {' | '.join(_cell(own, name) for own in costs.values())} |" for name in names
    )
    if _WHOLE in costs.get("Chroma", {}):
        times = (
            f"{own[_WHOLE] / costs['Chroma'][_WHOLE]:.2f}" if _WHOLE in own else "-"
            for own in costs.values()
        )
        lines.append(f"| {_WHOLE.partition(',')[0]}, times Chroma's | {' | '.join(times)} |")
    return lines


def _cell(costs: Costs, name: str) -> str:
    if name not in costs:
        return "-"
    if isinstance(costs[name], str):
        return str(costs[name])
    cells = (costs[each] for each in (name, name + CPU) if each in costs)
    wall, *processor = (f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}" for cost in cells)
    return f"{wall} ({processor[0]})" if processor else wall


if __name__ == "__main__":
    main()
