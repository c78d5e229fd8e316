"""Record a build, and hold two recordings against each other.

    python -m tools.golden against HEAD~20 --data ../shared/data --keep /tmp/golden
    python -m tools.golden record /tmp/golden/new --data ../shared/data
    python -m tools.golden compare /tmp/golden/old /tmp/golden/new

`against` records the source of another commit and that of this tree, and prints what moved: the
answers of every call, all rows, thread files and export bytes (clear and sealed, SQLite and
PostgreSQL), the reference, the HTTP and MCP descriptions, and every development question of the
three lanes, scores to the bit. Without `--data` the questions are left out, and that is said.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.golden.recording import differences

ROOT = Path(__file__).resolve().parents[2]
ASKED_OF_DATA = ("chats", "projects")
OF_CODE = ("surfaces", "calls", "client", "imports", "devices", "commands", "hooks")
PARTS = (*OF_CODE, *ASKED_OF_DATA)


def main() -> int:
    """1 when anything moved."""
    parser = argparse.ArgumentParser(prog="python -m tools.golden", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="record this tree, or the tree of --tree")
    record.add_argument("out", type=Path)
    record.add_argument("--tree", type=Path, default=ROOT)
    compare = commands.add_parser("compare", help="what moved between two recordings")
    compare.add_argument("old", type=Path)
    compare.add_argument("new", type=Path)
    against = commands.add_parser("against", help="record a commit and this tree, and compare")
    against.add_argument("commit")
    against.add_argument("--keep", type=Path, help="a folder for both recordings")
    for one in (record, against):
        one.add_argument("--data", type=Path, help="the folder of data sets")
        one.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
        one.add_argument("--vectors", type=Path, help="where vectors are kept between runs")
    given = parser.parse_args()
    if given.command == "record":
        return _record(given.tree, given.out, given)
    if given.command == "compare":
        return _compare(given.old, given.new)
    with tempfile.TemporaryDirectory(prefix="anaphora-golden-") as folder:
        keep = given.keep or Path(folder) / "recordings"
        given.vectors = given.vectors or keep / "vectors"
        tree = Path(folder) / "old"
        _git("worktree", "add", "--detach", str(tree), given.commit)
        try:
            failed = _record(tree, keep / "old", given) or _record(ROOT, keep / "new", given)
        finally:
            _git("worktree", "remove", "--force", str(tree))
        return failed or _compare(keep / "old", keep / "new")


def _record(tree: Path, out: Path, given: argparse.Namespace) -> int:
    """Record a tree, each part in a process of its own that imports that tree's package alone."""
    out.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join((str(tree / "src"), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    for part in given.only:
        if part in ASKED_OF_DATA and not given.data:
            print(f"{part}: left out, it needs --data")
            continue
        print(f"{part} of {tree}", flush=True)
        words = ["--data", str(given.data)] if given.data else []
        words += ["--vectors", str(given.vectors)] if given.vectors else []
        words += [str(tree), str(out), part]
        recorder = [sys.executable, "-m", "tools.golden.record", *words]
        done = subprocess.run(recorder, cwd=ROOT, env=environment, check=False)
        if done.returncode:
            return done.returncode
    return 0


def _compare(old: Path, new: Path) -> int:
    """Print every difference; 1 when there is one, or nothing to compare."""
    names = {place.name for folder in (old, new) for place in folder.glob("*.jsonl")}
    moved = values = 0
    for name in sorted(names):
        lacking = [str(folder) for folder in (old, new) if not (folder / name).exists()]
        found = [f"not in {lacking[0]}"] if lacking else sorted(differences(old / name, new / name))
        moved += len(found)
        values += 0 if lacking else len((new / name).read_text("utf-8").splitlines())
        for line in found:
            print(f"{name}: {line}")
    print(f"{values} values in {len(names)} files compared, {moved} differences")
    return int(bool(moved) or not values)


def _git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
