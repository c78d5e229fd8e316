"""New tests run on the source before their change: what is reported, in repositories of git."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tools.proofs import main

# Without the plugins that take a second to import.
PROJECT = """
[tool.pytest.ini_options]
addopts = ["-p", "no:schemathesis", "-p", "no:langsmith_plugin"]
"""
SOURCE = "def length(text):\n    return len(text)\n"
STRIPPED = "def length(text):\n    return len(text.strip())\n"
FAILS = "from boat import length\n\n\ndef test_edge():\n    assert length(' a ') == 1\n"
PASSES = "from boat import length\n\n\ndef test_plain():\n    assert length('a') == 1\n"


class Boat:
    """A repository with a package `boat` and a first commit."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self._capsys = root, capsys
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit("Begin", {"src/boat/__init__.py": SOURCE, "pyproject.toml": PROJECT})

    def git(self, *words: str) -> None:
        name = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *name, *words], cwd=self.root, check=True, capture_output=True)

    def commit(self, message: str, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", message)

    def judge(self, *words: str) -> tuple[int, dict[str, str], str]:
        """The exit code, test → sign, and all that was printed."""
        code = main(["--repository", str(self.root), "--seconds", "100", *words])
        printed = self._capsys.readouterr()
        signs = re.findall(r"^  ([+!~?]) (\S+):", printed.out, re.MULTILINE)
        return code, {name: sign for sign, name in signs}, "".join(printed)


@pytest.fixture
def boat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Boat:
    return Boat(tmp_path / "boat", capsys)


def test_new_and_changed_tests_are_judged(boat: Boat) -> None:
    """A test that fails before its change is good, one that passes is reported or excused."""
    boat.commit("Tests", {"tests/test_old.py": PASSES + FAILS.replace(" a ", "a")[24:]})
    boat.commit(
        "Strip\n\nCharacterises: tests/test_new.py::test_ex*: so it was,\n  and is.\n",
        {
            "src/boat/__init__.py": f"{STRIPPED}\n\ndef parted(text):\n    return text.split()\n",
            "tests/test_old.py": PASSES + FAILS[24:],
            "tests/test_new.py": (
                "import pytest\nfrom boat import length\n\n\n"
                "def test_weak():\n    assert length('b') == 1\n\n\n"
                "def test_excused():\n    assert length('c') == 1\n\n\n"
                "@pytest.mark.parametrize('text', ['a', ' b'])\n"
                "def test_one_of_two(text):\n    assert length(text) == 1\n\n\n"
                "def test_skipped():\n    pytest.skip('no browser')\n"
            ),
            "tests/test_missing.py": "from boat import parted\n\n\n"
            "def test_missing_name():\n    assert parted('a b') == ['a', 'b']\n",
        },
    )
    code, signs, printed = boat.judge("--last", "1")
    assert signs == {
        "tests/test_old.py::test_edge": "+",
        "tests/test_new.py::test_weak": "!",
        "tests/test_new.py::test_excused": "~",
        "tests/test_new.py::test_one_of_two": "+",
        "tests/test_new.py::test_skipped": "?",
        "tests/test_missing.py::test_missing_name": "+",
    }
    assert "so it was, and is." in printed
    assert code == 1


def test_a_change_of_tests_alone_is_not_judged(boat: Boat) -> None:
    """Nothing of the source changed, so that nothing can be proved about it."""
    boat.commit("Tests", {"tests/test_a.py": PASSES})
    boat.commit("Strip", {"src/boat/__init__.py": STRIPPED})
    code, signs, printed = boat.judge()
    assert (code, signs) == (0, {})
    assert "tests only, not judged: 1" in printed
    assert "no new or changed tests" in printed


def test_what_cannot_be_asked_is_refused(boat: Boat) -> None:
    """A range that is none, an excuse without a reason, history that is not there."""
    assert boat.judge("--range", "main")[0] == 2
    assert boat.judge("--range", "nowhere..main")[0] == 2
    assert boat.judge()[::2] == (2, "proofs: there is no commit with a parent\n")
    files = {"src/boat/__init__.py": STRIPPED, "tests/test_a.py": FAILS}
    boat.commit("No reason\n\nCharacterises: tests/test_a.py", files)
    code, _, printed = boat.judge()
    assert code == 2
    assert "is not 'Characterises: TESTS: reason'" in printed
