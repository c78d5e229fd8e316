"""A small project to index: sessions, a clock and a queue of jobs."""

from __future__ import annotations

from pathlib import Path

__all__ = ["FILES", "QUEUE_FILE", "SESSION", "SESSION_FILE", "write_files"]

SESSION = '''"""Tokens that a signed-in session carries."""
from shop.clock import now


class SessionToken:
    """A token with its expiry; refresh() makes it last longer."""

    def refresh(self) -> None:
        """Put the expiry an hour from now."""
        self.expiry = now() + 3600
'''
SESSION_FILE = "src/shop/session_token.py"
QUEUE_FILE = "src/shop/queue_postgres.py"
FILES = {
    "README.md": "# Shop\n\nA shop with signed-in sessions and a job queue.\n",
    "pyproject.toml": (
        '[project]\nname = "shop"\ndependencies = ["redis"]\n'
        '[project.scripts]\nshop-admin = "shop.cli:main"\n'
    ),
    "package.json": (
        '{"name":"shop-web","scripts":{"build":"vite build","lint":"eslint ."},'
        '"dependencies":{"vite":"^5"}}'
    ),
    "src/shop/__init__.py": '"""The shop: sessions, a clock and a queue of jobs."""\n',
    SESSION_FILE: SESSION,
    "src/shop/clock.py": (
        '"""The time."""\n\n\ndef now() -> float:\n    """Seconds."""\n    return 0.0\n'
    ),
    QUEUE_FILE: (
        '"""The job queue, kept in PostgreSQL."""\nimport redis\n\n\nclass JobQueue:\n'
        '    """Jobs wait here until a worker takes them."""\n\n'
        '    def take(self):\n        """A worker takes the next job."""\n'
    ),
    "tests/test_session_token.py": (
        "from shop.session_token import SessionToken\n\n\n"
        "def test_refresh() -> None:\n    SessionToken().refresh()\n"
    ),
    "docs/sessions.md": (
        "# Sessions\n\nHow the expiry of a session token is extended.\n\n"
        "## Installing\n\nRun `pip install shop` to set up sessions.\n"
    ),
    "docs/queue.md": "# The queue\n\nWhy jobs are kept in PostgreSQL.\n",
    "CHANGELOG.md": "# Changes\n\n## 0.2\n\n- The session token can be refreshed.\n",
}


def write_files(root: Path, files: dict[str, str]) -> Path:
    """Write the files under a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
