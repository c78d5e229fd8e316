"""`python -m bench.datasets NAME --to DIR`: fetch a public test set to where the measurements look.

In: the name of a set, and the folder that is given to them as `--data`. Out:
its files below DIR/conversations/. Nothing else of this project fetches anything: these sets are
too large to ship, or state no licence. Each is its authors'; read their terms first.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Source:
    """Where a set lies: a folder of a Git repository, or one file. `folder` is where it goes.

    `run` is the measurement that reads it.
    """

    folder: str
    run: str
    repository: str = ""
    inside: str = ""
    file: str = ""


SOURCES = {
    "realtalk": Source(
        "realtalk",
        "python -m bench --data DIR --only quality",
        repository="https://github.com/danny911kr/REALTALK",
        inside="data",
    ),
    "beam": Source(
        "beam-100k",
        "python -m bench --data DIR --only quality",
        repository="https://github.com/mohammadtavakoli78/BEAM",
        inside="chats/100K",
    ),
    "locomo": Source(
        "locomo",
        "python -m bench conversations DIR/conversations/locomo --format locomo",
        file="https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
    ),
    "longmemeval": Source(
        "longmemeval",
        "python -m bench conversations DIR/conversations/longmemeval --format longmemeval",
        file="https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/longmemeval_s_cleaned.json",
    ),
    "convomem": Source(
        "convomem",
        "python -m bench.measures --set convomem --data DIR --limit 50",
        repository="https://huggingface.co/datasets/Salesforce/ConvoMem",
        inside="core_benchmark/evidence_questions",
    ),
    "membench": Source(
        "membench",
        "python -m bench.measures --set membench --data DIR --limit 50",
        repository="https://github.com/import-myself/Membench",
        inside="MemData",
    ),
    "lmeb": Source(
        "lmeb",
        "python -m bench.measures --set lmeb --file DIR/conversations/lmeb/LoCoMo",
        repository="https://huggingface.co/datasets/KaLM-Embedding/LMEB",
        inside="Dialogue",
    ),
}


def where_to_get(name: str) -> str:
    """How a set is fetched, and from where."""
    source = SOURCES[name]
    place = f"{source.repository} ({source.inside})" if source.repository else source.file
    return f"`python -m bench.datasets {name} --to DIR` fetches it from {place}."


def main(words: Sequence[str] | None = None) -> int:
    """Fetch one set, and say what to run on it."""
    parser = argparse.ArgumentParser(prog="python -m bench.datasets", description=__doc__)
    parser.add_argument("name", choices=SOURCES)
    parser.add_argument("--to", type=Path, required=True, help="the folder of all sets")
    chosen = parser.parse_args(words)
    source = SOURCES[chosen.name]
    target = chosen.to / "conversations" / source.folder
    if target.exists():
        print(f"{target} is there already", file=sys.stderr)
        return 2
    target.parent.mkdir(parents=True, exist_ok=True)
    # Made aside: a fetch that breaks leaves nothing that looks whole.
    with tempfile.TemporaryDirectory(dir=target.parent) as aside:
        made = Path(aside) / "set"
        try:
            count = _fetch_folder(source, made) if source.repository else _fetch_file(source, made)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{chosen.name} could not be fetched: {error}", file=sys.stderr)
            return 1
        shutil.move(made, target)
    print(f"{count} files in {target}; now: {source.run.replace('DIR', str(chosen.to))}")
    return 0


def _fetch_folder(source: Source, made: Path) -> int:
    clone = made.with_name("clone")
    git = ("git", "-C", str(clone))
    url = source.repository
    options = ("--quiet", "--depth", "1", "--filter=blob:none", "--sparse")
    subprocess.run(["git", "clone", *options, url, str(clone)], check=True)
    subprocess.run([*git, "sparse-checkout", "set", source.inside], check=True)
    shutil.copytree(clone / source.inside, made)
    return sum(1 for _ in made.rglob("*.json"))


def _fetch_file(source: Source, made: Path) -> int:
    made.mkdir()
    place = made / source.file.rsplit("/", 1)[-1]
    with urllib.request.urlopen(source.file, timeout=60) as answer, place.open("wb") as file:
        shutil.copyfileobj(answer, file)
    return 1


if __name__ == "__main__":
    sys.exit(main())
