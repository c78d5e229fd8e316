"""New tests run on the source before their change: what is reported, in repositories of git."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tools.proofs.__main__ import main

# Without the plugins that take a second to import.
PROJECT = """
[tool.pytest.ini_options]
addopts = ["--strict-markers", "-p", "no:schemathesis", "-p", "no:langsmith_plugin"]
markers = ["label: none"]
"""
SOURCE = "def length(text):\n    return len(text)\n"
STRIPPED = "def length(text):\n    return len(text.strip())\n"
FAILS = "from boat import length\n\n\ndef test_edge():\n    assert length(' a ') == 1\n"
PASSES = "from boat import length\n\n\ndef test_plain():\n    assert length('a') == 1\n"


class Repository:
    """A repository with a package `boat` and a first commit."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self._capsys = root, capsys
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit("Begin", {"src/boat/__init__.py": SOURCE, "pyproject.toml": PROJECT})

    def git(self, *words: str) -> str:
        name = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *name, *words], cwd=self.root, check=True, capture_output=True, text=True
        )
        return done.stdout

    def commit(self, message: str, files: Mapping[str, str | None]) -> str:
        """Commit files, of which None removes one; the commit."""
        for path, text in files.items():
            file = self.root / path
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def judge(self, *words: str) -> tuple[int, dict[str, str], str]:
        """The exit code, test → sign and reason, and all that was printed."""
        code = main(["--repository", str(self.root), "--seconds", "100", *words])
        printed = self._capsys.readouterr()
        lines = re.findall(r"^  ([+!~?]) (.*)\n +(.*)$", printed.out, re.MULTILINE)
        assert self.git("worktree", "list").count("\n") == 1
        return code, {name: f"{sign} {why}" for sign, name, why in lines}, "".join(printed)


@pytest.fixture
def repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Repository:
    return Repository(tmp_path / "repository", capsys)


def test_each_new_and_changed_test_is_judged(repository: Repository) -> None:
    """A test that fails before its change is good, one that passes is reported, with its cases."""
    repository.commit(
        "Tests",
        {
            "tests/test_changed.py": (
                "from boat import length\n\nCASES = [('a', 1)]\nEMPTY = ''\n\n\n"
                "def made(text):\n    return text\n\n\n"
                "def test_table():\n    for text, size in CASES:\n"
                "        assert length(text) == size\n\n\n"
                "def test_made():\n    assert length(made('a')) == 1\n\n\n"
                "def test_strengthened():\n    assert length('a')\n\n\n"
                "def test_weakened():\n    assert length('ab') == 2\n\n\n"
                "def test_labelled():\n    size = length(EMPTY)\n    assert size == 0\n"
            ),
        },
    )
    repository.commit(
        "Strip\n\nWhy.\n\nCharacterises: tests/test_new.py::test_ex*: so it was,\n  and is.\n",
        {
            "src/boat/__init__.py": STRIPPED + "\n\ndef parted(text):\n    return text.split()\n",
            "pyproject.toml": PROJECT.replace("none", 'none", "slow: long'),
            "tests/conftest.py": (
                "import pytest\nfrom boat import parted\n\n\n"
                "@pytest.fixture\ndef edge():\n    return ' a '\n"
            ),
            "tests/test_changed.py": (
                "import pytest\nfrom boat import length\n\n"
                "CASES = [('a', 1), (' a', 1)]\nEMPTY = ''\n\n\n"
                "def made(text):\n    return str(text)\n\n\n"
                "def test_table():\n    for text, size in CASES:\n"
                "        assert length(text) == size\n\n\n"
                "def test_made():\n    assert length(made('a')) == 1\n\n\n"
                "def test_strengthened():\n    assert length('a ') == 1\n\n\n"
                "def test_weakened():\n    assert length('ab')\n\n\n"
                "@pytest.mark.label\ndef test_labelled() -> None:\n"
                '    """Docs."""\n    count = length(EMPTY)\n    assert count == 0\n'
            ),
            "tests/test_new.py": (
                "import subprocess\nimport sys\n\nimport pytest\n"
                "from boat import length, parted\n\n\n"
                "def test_edge(edge):\n    assert length(edge) == 1\n\n\n"
                "def test_excused():\n    assert length('a') == 1\n\n\n"
                "@pytest.mark.parametrize('text', ['a', ' b', 'c '])\n"
                "def test_one_of_three(text):\n    assert length(text) == 1\n\n\n"
                "@pytest.mark.parametrize('text', ['a', 'b'])\n"
                "def test_none_of_two(text):\n    assert length(text) == 1\n\n\n"
                "@pytest.mark.slow\ndef test_missing_name():\n"
                "    assert parted('a b') == ['a', 'b']\n\n\n"
                "def test_beside_a_missing_name():\n    assert length('b') == 1\n\n\n"
                "def test_missing_name_that_is_caught():\n    try:\n        parted('a')\n"
                "    except Exception:\n        pass\n\n\n"
                "def test_program():\n    code = 'import boat; assert boat.length(\"b\") == 1'\n"
                "    subprocess.run([sys.executable, '-c', code], env={}, check=True)\n\n\n"
                "def test_program_at_an_edge():\n"
                "    code = 'import boat; assert boat.length(\" b\") == 1'\n"
                "    subprocess.run([sys.executable, '-c', code], env={}, check=True)\n\n\n"
                "def test_skipped():\n    pytest.skip('no browser')\n\n\n"
                "def test_broken():\n    assert length('a') == 7\n\n\n"
                "class TestBoat:\n    size = 1\n\n    def test_edge(self):\n"
                "        assert length(' a') == self.size\n"
            ),
        },
    )
    code, judged, printed = repository.judge("--last", "1")
    new, changed = "tests/test_new.py", "tests/test_changed.py"
    signs = {name: why[0] for name, why in judged.items()}
    assert signs == {
        f"{changed}: CASES": "+",
        f"{changed}: made": "!",
        f"{changed}::test_strengthened": "+",
        f"{changed}::test_weakened": "!",
        f"{new}::test_edge": "+",
        f"{new}::test_excused": "~",
        f"{new}::test_one_of_three": "+",
        f"{new}::test_none_of_two": "!",
        f"{new}::test_missing_name": "+",
        f"{new}::test_beside_a_missing_name": "!",
        f"{new}::test_missing_name_that_is_caught": "+",
        f"{new}::test_program": "!",
        f"{new}::test_program_at_an_edge": "+",
        f"{new}::test_skipped": "?",
        f"{new}::test_broken": "?",
        f"{new}::TestBoat::test_edge": "+",
    }
    assert "2 of 3 cases" in judged[f"{new}::test_one_of_three"]
    assert "all 2 cases" in judged[f"{new}::test_none_of_two"]
    assert "boat.parted is not there" in judged[f"{new}::test_missing_name"]
    assert "so it was, and is." in judged[f"{new}::test_excused"]
    assert "no browser" in judged[f"{new}::test_skipped"]
    assert "fails with the change too" in judged[f"{new}::test_broken"]
    assert "8 fail without the change, 5 prove nothing, 1 excused, 2 not judged" in printed
    assert code == 1


def test_what_moved_is_not_new(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests in a file of another name, in another file, or with another name are as they were."""
    other = "from boat import length\n\n\ndef test_two():\n    assert length('ab') == 2\n"
    repository.commit("Tests", {"tests/test_a.py": PASSES, "tests/test_b.py": other})
    repository.commit(
        "Strip, and move tests",
        {
            "src/boat/__init__.py": STRIPPED,
            "tests/test_a.py": None,
            "tests/deep/test_c.py": PASSES,
            "tests/test_b.py": FAILS + "\n\ndef test_both():\n    assert length('ab') == 2\n",
        },
    )
    (repository.root / "tests/test_b.py").write_text(f"{FAILS}\n# Goes on.\n")
    repository.git("add", "--all")
    before = repository.git("status", "--porcelain")
    # As in a hook of git.
    monkeypatch.setenv("GIT_DIR", str(repository.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository.root / ".git" / "index"))
    code, judged, printed = repository.judge("--last", "1", "--verbose")
    assert repository.git("status", "--porcelain") == before != ""
    assert list(judged) == ["tests/test_b.py::test_edge"]
    assert "1 test moved" in printed
    assert "tests/test_b.py::test_both" in printed
    assert code == 0


def test_a_change_of_tests_alone_is_not_judged(repository: Repository) -> None:
    repository.commit("Tests", {"tests/test_a.py": PASSES})
    repository.commit("Strip", {"src/boat/__init__.py": STRIPPED})
    code, judged, printed = repository.judge()
    assert (code, judged) == (0, {})
    assert "tests only, not judged: 1 test" in printed
    assert "no new or changed tests" in printed


def test_a_source_that_is_broken_before_the_change(repository: Repository) -> None:
    """There all tests fail, which says nothing about the new ones."""
    repository.commit("Break", {"src/boat/__init__.py": "from boat.sizes import length\n"})
    repository.commit("Mend", {"src/boat/__init__.py": SOURCE, "tests/test_a.py": PASSES})
    code, judged, _ = repository.judge("--last", "1")
    assert judged["tests/test_a.py::test_plain"].startswith("? not judged: its file cannot be")
    assert "ModuleNotFoundError" in judged["tests/test_a.py::test_plain"]
    assert code == 0


def test_a_file_that_needs_a_missing_name_to_be_imported(repository: Repository) -> None:
    """Its tests fail for want of the change."""
    wide = "\n\nclass Wide({}):\n    pass\n\n\ndef test_wide():\n    assert Wide.name == 'a'\n"
    files = {
        "src/boat/__init__.py": f"{SOURCE}\n\nclass Hull:\n    name = 'a'\n",
        "src/boat/hulls.py": "from boat import Hull\n\n__all__ = ['Hull']\n",
        "tests/test_a.py": "import boat" + wide.format("boat.Hull"),
        "tests/test_b.py": "from boat.hulls import Hull" + wide.format("Hull"),
    }
    repository.commit("Hulls", files)
    code, judged, _ = repository.judge("--last", "1")
    assert {why[0] for why in judged.values()} == {"+"}
    assert "'boat' has no attribute 'Hull'" in judged["tests/test_a.py::test_wide"]
    assert "boat.hulls is not there" in judged["tests/test_b.py::test_wide"]
    assert code == 0


def test_a_later_commit_excuses_a_test_by_its_full_id(repository: Repository) -> None:
    """A pattern excuses tests of its own commit alone."""
    repository.commit("Strip", {"src/boat/__init__.py": STRIPPED, "tests/test_a.py": PASSES})
    repository.commit("A pattern\n\nCharacterises: tests/*: all", {"README.md": "A"})
    code, judged, _ = repository.judge()
    assert (code, judged["tests/test_a.py::test_plain"][0]) == (1, "!")
    repository.commit(
        "An id\n\nCharacterises: tests/test_a.py::test_plain: as before\n\nMore.",
        {"README.md": "B"},
    )
    code, judged, _ = repository.judge()
    assert (code, judged["tests/test_a.py::test_plain"][0]) == (0, "~")


def test_what_cannot_be_asked_is_refused(repository: Repository, tmp_path: Path) -> None:
    """A range that is none, an excuse without a reason, history that is not there."""
    assert repository.judge("--range", "main")[::2] == (
        2,
        "proofs: 'main' is no range: write A..B\n",
    )
    code, _, printed = repository.judge("--range", "nowhere..main")
    assert code == 2
    assert "nowhere" in printed
    assert repository.judge()[::2] == (2, "proofs: there is no commit with a parent\n")
    repository.commit("No reason\n\nCharacterises: tests/test_a.py", {"README.md": "A"})
    code, _, printed = repository.judge()
    assert code == 2
    assert "is not 'Characterises: TESTS: reason'" in printed
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth", "1", repository.root.as_uri(), str(clone))
    repository.root = clone
    code, _, printed = repository.judge()
    assert code == 2
    assert "fetch more of it" in printed
