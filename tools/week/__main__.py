"""Play the week and report: `python -m tools.week`.

Twice: with hooks alone, and with an agent that stores facts. bench/results/week.json and .md.
Linux, a C compiler and git; about ten minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.figures import Figure, keep, percentile
from tools.week.judge import Verdict, failed_starts, judge, judge_blocks
from tools.week.player import Played, WeekPlayer
from tools.week.story import read_story

from anaphora.rank.budget import token_cost

RUNS: Final[Mapping[str, bool]] = {"hooks alone": False, "an agent that stores facts": True}


def play(stores: bool) -> tuple[Played, list[Verdict]]:
    """One run of the week."""
    with tempfile.TemporaryDirectory(prefix="week-") as folder:
        played = WeekPlayer(Path(folder), stores=stores).play(read_story())
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
    blocks = judge_blocks(played.blocks, read_story())
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
        Figure("lines of the blocks at a start and after a compaction", blocks.lines),
        Figure("of these: true by what recall gives at that moment", blocks.current),
        Figure("of these: replaced by what recall gives, and marked so", blocks.marked),
        Figure("of these: replaced by what recall gives, unmarked", len(blocks.stale)),
        Figure("of these: not found by recall", len(blocks.unknown)),
        Figure("of these: small talk", len(blocks.small_talk)),
        Figure("of these: told again with the first prompt", len(blocks.again)),
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
    """Print the figures and write them to bench/results/; print what was missed."""
    figures = [
        replace(figure, name=f"{name}: {figure.name}")
        for name, run in runs.items()
        for figure in figures_of(*run)
    ]
    keep("week", "A week of one developer", figures)
    for name, (played, verdicts) in runs.items():
        print(f"\nmissed with {name}:")
        for verdict in verdicts:
            if verdict.met_by == "missed":
                print(f"  {verdict.session}: {verdict.prompt}")
        blocks = judge_blocks(played.blocks, read_story())
        for what, lines in (
            ("unmarked", blocks.stale),
            ("not found", blocks.unknown),
            ("small talk", blocks.small_talk),
            ("again", blocks.again),
        ):
            for line in lines:
                print(f"  {what}: {line}")
        print("\n".join(failed_starts((session, start.text) for session, start in played.starts)))


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m tools.week", description=__doc__).parse_args()
    report({title: play(stores) for title, stores in RUNS.items()})
