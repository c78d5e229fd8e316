"""The files of a project, and how they come to a disk and into git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

FILES = {
    "README.md": "# Heron\n\nKeeps herons.\n\n## Install\n\npip install heron\n",
    "pyproject.toml": (
        '[project]\nname = "heron"\ndependencies = ["Requests>=2", "click"]\n\n'
        '[project.scripts]\nheron = "heron.cli:main"\n'
    ),
    "src/heron/__init__.py": '"""Herons."""\n\nfrom heron.nest import Nest\n',
    "src/heron/nest.py": (
        '"""Where herons live."""\n\nimport json\n\nimport requests\n\n\n'
        "class Nest:\n    def add_egg(self):\n        return 1\n\n\n"
        "def find_nest(place):\n    return Nest()\n"
    ),
    "src/heron/cli.py": (
        "import click\n\nfrom . import nest\nfrom .nest import find_nest\n\n\n"
        "def main():\n    return find_nest('lake')\n"
    ),
    "tests/test_nest.py": (
        "from heron.nest import Nest\n\n\ndef test_eggs():\n    assert Nest().add_egg() == 1\n"
    ),
    "docs/nesting.md": "# Nesting\n\nHow herons nest.\n\n## Twigs\n\nMany twigs.\n",
}


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write these files under `root`."""
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def git(root: Path, *arguments: str, at: str = "2026-01-01T00:00:00Z") -> None:
    """Run git in `root`, as somebody, at a time."""
    someone = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(
        ["git", *someone, *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        env={**os.environ, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "HOME": str(root)},
    )
