"""Play the week and report: `python -m tools.week [--keep DIR] [--only hooks|stores]`.

Twice: with hooks alone, and with an agent that stores facts. bench/results/week.json and .md.
Linux, a C compiler and git; about ten minutes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from bench.figures import Figure, machine, percentile, show, write
from tools.week.judge import Verdict, failed_starts, judge
from tools.week.player import Played, WeekPlayer
from tools.week.story import STORY, read_story

from anaphora.rank.budget import token_cost

RUNS: Final[Mapping[str, bool]] = {"hooks": False, "stores": True}
_TITLES: Final = {"hooks": "hooks alone", "stores": "an agent that stores facts"}


def play(name: str, keep: Path | None, story: Path) -> tuple[Played, list[Verdict]]:
    """One run of the week, in a folder that is kept or thrown away."""
    sessions = read_story(story)
    if keep is not None:
        root = keep / name
        root.mkdir(parents=True)
        played = WeekPlayer(root, stores=RUNS[name]).play(sessions)
    else:
        with tempfile.TemporaryDirectory(prefix="week-") as folder:
            played = WeekPlayer(Path(folder), stores=RUNS[name]).play(sessions)
    return played, judge(played)


def figures_of(played: Played, verdicts: Sequence[Verdict]) -> list[Figure]:
    """What a run comes to."""
    met = Counter(verdict.met_by for verdict in verdicts)
    needing = [verdict for verdict in verdicts if not verdict.is_idle]
    idle = [verdict for verdict in verdicts if verdict.is_idle]
    starts = [(session, given.text) for session, given in played.starts]
    prompts = [given for _, _, given in played.prompts]
    over = [given.seconds - played.bare for given in prompts]
    codes = [given.code for given in (*prompts, *played.others)]
    codes += [given.code for _, given in played.starts]
    sizes = [token_cost(text) for _, text in starts]
    return [
        Figure("sessions", len(starts)),
        Figure("prompts", len(verdicts)),
        Figure("prompts that need something of earlier sessions", len(needing)),
        Figure("of these: met with the prompt", met["prompt"]),
        Figure("of these: met by the block at the start alone", met["start"]),
        Figure("of these: met by an earlier prompt of the session alone", met["earlier"]),
        Figure("of these: missed", met["missed"]),
        Figure("lines put in", sum(len(verdict.lines) for verdict in verdicts)),
        Figure("lines: useful", sum(verdict.useful for verdict in verdicts)),
        Figure("lines: the same fact again", sum(verdict.repeated for verdict in verdicts)),
        Figure("lines: noise", sum(len(verdict.noise) for verdict in verdicts)),
        Figure("prompts that need nothing", len(idle)),
        Figure("of these: got something", sum(bool(verdict.lines) for verdict in idle)),
        Figure("outdated values without a mark", sum(len(v.outdated) for v in verdicts)),
        Figure("starts without a rule that holds, or with one that does not",
               len(failed_starts(starts))),
        Figure("tokens a prompt", sum(token_cost(g.text) for g in prompts) / len(prompts)),
        Figure("tokens of the block at the start, least", min(sizes)),
        Figure("tokens of the block at the start, most", max(sizes)),
        Figure("the bare interpreter's start", 1000 * played.bare, "ms"),
        Figure("a prompt's hook over that, p50", 1000 * percentile(over, 0.5), "ms"),
        Figure("a prompt's hook over that, p95", 1000 * percentile(over, 0.95), "ms"),
        Figure("a prompt's hook over that, slowest", 1000 * max(over), "ms"),
        Figure("memory of the resident process at the end", played.memory, "MB"),
        Figure("the home on disk", played.home / 1e6, "MB"),
        Figure("transcripts", played.transcripts / 1e6, "MB"),
        Figure("hooks that failed", sum(code != 0 for code in codes)),
        Figure("entries in the log of incidents", len(played.incidents)),
    ]  # fmt: skip


def report(runs: Mapping[str, tuple[Played, list[Verdict]]]) -> None:
    """Print the figures and write them, with every verdict, to bench/results/."""
    tables = {name: figures_of(*run) for name, run in runs.items()}
    for name, figures in tables.items():
        show(f"The week, {_TITLES[name]}", figures)
    value = {
        "machine": machine(),
        "runs": {
            name: {
                "figures": [asdict(figure) for figure in tables[name]],
                "starts": [
                    {"session": session.id, "text": given.text, "seconds": given.seconds}
                    for session, given in played.starts
                ],
                "failed_starts": failed_starts(
                    (session, start.text) for session, start in played.starts
                ),
                "prompts": [asdict(verdict) for verdict in verdicts],
                "incidents": played.incidents,
            }
            for name, (played, verdicts) in runs.items()
        },
    }
    head = " | ".join(_TITLES[name] for name in tables)
    lines = [
        "# A week of one developer",
        "",
        f"{machine()}. `python -m tools.week`: the week of `tools/week/story.txt` against the "
        "installed command, each hook run as its client runs it.",
        "",
        f"| figure | {head} |",
        "|---|" + "---:|" * len(tables),
    ]
    for row in zip(*tables.values(), strict=True):
        cells = " | ".join(f"{figure.value:,.2f}".removesuffix(".00") for figure in row)
        lines.append(f"| {row[0].name}{f', {row[0].unit}' if row[0].unit else ''} | {cells} |")
    for name, (played, verdicts) in runs.items():
        missed = [verdict for verdict in verdicts if verdict.met_by == "missed"]
        lines += ["", f"Missed with {_TITLES[name]}:", ""]
        lines += [f"- {verdict.session}: {verdict.prompt}" for verdict in missed]
        lines += [
            f"- at the start of {line}"
            for line in failed_starts((session, start.text) for session, start in played.starts)
        ]
    write("week", json.dumps(value, indent=1, ensure_ascii=False), "\n".join(lines))


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.week", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--story", type=Path, default=STORY, help="another week")
    parser.add_argument("--keep", type=Path, help="a folder in which the homes stay")
    parser.add_argument("--only", choices=RUNS, help="one of the two runs; nothing is written")
    options = parser.parse_args()
    names = [options.only] if options.only else list(RUNS)
    runs = {name: play(name, options.keep, options.story) for name in names}
    if options.only:
        ((played, verdicts),) = runs.values()
        show(f"The week, {_TITLES[options.only]}", figures_of(played, verdicts))
        for session, start in played.starts:
            print(f"\n@ {session.id}\n{start.text}")
        for verdict in verdicts:
            print(f"\n{verdict.session} > {verdict.prompt}")
            print(f"  {verdict.met_by or 'idle'} {verdict.needs}")
            print("\n".join(verdict.lines))
        print("\n".join(failed_starts((session, start.text) for session, start in played.starts)))
    else:
        report(runs)


if __name__ == "__main__":
    main()
