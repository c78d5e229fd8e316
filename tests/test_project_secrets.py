"""Keys and passwords in a project's files: neither stored nor shown, wherever they stand.

Every secret is made up and joined here from pieces, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ingest.project_files import git, write

from anaphora import Memory, RecallPackage
from anaphora.testing import run_cli

PLACES = (
    "dotenv", "local", "netrc", "npmrc", "credentials", "aws", "gitcredentials", "settings",
    "config", "readme", "heading", "symbol", "filename", "message", "json", "below",
)  # fmt: skip
SECRETS = {place: "sk" + f"_live_{place}x9Qw8Er7Ty6Ui5Op4As3" for place in PLACES}
BODY = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab4Cd5Ef6Gh7Ij8Kl9Mn0Op1Q\n"
PEM = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + BODY * 20 + "-----END RSA " + "PRIVATE KEY-----"
FILES = {
    ".env": f"STRIPE={SECRETS['dotenv']}\n",
    "deploy/.env.local": f"STRIPE={SECRETS['local']}\n",
    ".env.example": "STRIPE=your-key-here\nHERON_PORT=1\n",
    ".netrc": f"machine h login a password {SECRETS['netrc']}\n",
    ".npmrc": f"//registry/:_authToken={SECRETS['npmrc']}\n",
    "credentials.json": f'{{"heron": "{SECRETS["credentials"]}"}}\n',
    ".aws/credentials": f"aws_secret_access_key={SECRETS['aws']}\n",
    ".git-credentials": f"https://a:{SECRETS['gitcredentials']}@h\n",
    "id_rsa": PEM,
    "certs/heron.pem": PEM,
    "settings.py": (
        f'"""Settings of herons."""\nSTRIPE = "{SECRETS["settings"]}"\nPEM = """{PEM}"""\n\n\n'
        "def after_the_key():\n    return 1\n"
    ),
    "config.yaml": f"heron:\n  token: {SECRETS['config']}\n  port: 5433\n",
    "heron.json": f'{{"heron": {{"password": "{SECRETS["json"]}"}}}}\n',
    "heron.ini": f"[heron]\npassword =\n    {SECRETS['below']}\nport = 1\n",
    "README.md": f"# Herons {SECRETS['heading']}\n\nPay with `{SECRETS['readme']}`.\n",
    "heron.py": f"def {SECRETS['symbol']}(heron):\n    return heron\n",
    f"heron-{SECRETS['filename']}.txt": "heron\n",
}
SKIPPED = {
    ".aws": "secret",
    ".env": "secret",
    ".git-credentials": "secret",
    ".netrc": "secret",
    ".npmrc": "secret",
    "certs/heron.pem": "secret",
    "credentials.json": "secret",
    "deploy/.env.local": "secret",
    "heron-[redacted:stripe-key].txt": "secret_name",
    "id_rsa": "secret",
}
FOCUSES = (
    "heron stripe token password settings",
    "why were herons rotated, and what was there before?",
    "after_the_key STRIPE PEM private key",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with a secret in every place where one could be."""
    place = write(tmp_path / "heron", FILES)
    git(place, "init")
    git(place, "add", "--force", ".")
    git(place, "commit", "-m", f"herons: rotate {SECRETS['message']}")
    return place


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


def shown(memory: Memory) -> str:
    """All that questions and a session's beginning show."""
    asked = [memory.recall_context(one, include_sources=True, budget=6_000) for one in FOCUSES]
    warm = memory.warm_up("heron", budget=4_000)
    commands = [("recall", focus, "--block", "--budget", "6000") for focus in FOCUSES]
    texts = [
        run_cli("project", *words, home=memory.home)
        for words in (*commands, ("warm-up", "heron", "--block", "--budget", "4000"))
    ]
    assert all(one.exit_code == 0 and one.stdout for one in texts), texts
    return "\n".join([*map(repr, asked), repr(warm), repr(texts), repr(memory.projects())])


def leaks(text: str) -> set[str]:
    """The places whose secret a text holds, in whole or for the most part."""
    found = {place for place, secret in SECRETS.items() if secret[8:26] in text}
    return found | ({"key"} if BODY[8:30] in text else set())


def kept(home: Path) -> set[str]:
    """The places whose secret any file of a home holds."""
    places = [place for place in home.rglob("*") if place.is_file()]
    return {one for place in places for one in leaks(place.read_bytes().decode("latin-1"))}


def asked(memory: Memory) -> RecallPackage:
    return memory.recall_context("after_the_key")


@pytest.mark.promise("project.secrets")
def test_no_secret_is_stored_or_shown(memory: Memory, root: Path, tmp_path: Path) -> None:
    """Known secret files are left out, secrets in others taken out, and the report says which."""
    report = memory.index_project(root)
    assert {one.path: one.reason for one in report.skipped} == SKIPPED
    assert report.redacted == (
        "README.md", "config.yaml", "heron.ini", "heron.json", "heron.py", "settings.py",
    )  # fmt: skip
    assert leaks(shown(memory)) == set()
    assert leaks(repr(report)) == set()
    assert kept(tmp_path / "home") == set()
    assert "HERON_PORT" in shown(memory)


@pytest.mark.promise("project.secrets")
def test_lines_keep_their_numbers(memory: Memory, root: Path) -> None:
    """What stands below a key of many lines is found at its own line."""
    memory.index_project(root)
    target = asked(memory).primary_targets[0]
    assert target.start_line is not None
    lines = (root / target.path).read_text().splitlines()
    assert lines[target.start_line - 1].startswith("def after_the_key")


@pytest.mark.promise("project.secrets")
def test_a_file_that_is_changed_is_cleaned(memory: Memory, root: Path, tmp_path: Path) -> None:
    """What comes into a file, or becomes a secret file, after the first pass is no leak either."""
    (root / "settings.py").write_text("heron = 1\n")
    (root / "README.md").rename(root / "notes.md")
    memory.index_project(root)
    (root / "settings.py").write_text(FILES["settings.py"])
    (root / "heron.ini").rename(root / ".env.production")
    (root / "late.py").write_text(f'heron_token = "{SECRETS["settings"]}"\n')
    assert asked(memory).primary_targets[0].path == "settings.py"
    assert leaks(shown(memory)) == set()
    assert kept(tmp_path / "home") == set()
    paths = [one.path for one in memory.recall_context("heron", budget=9_000).primary_targets]
    assert "late.py" in paths
    assert ".env.production" not in paths
