"""Which files a project has, which were skipped and why, and their text."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from anaphora import Skipped, SourceRole
from anaphora.ingest.files.reading import read
from anaphora.ingest.files.walking import FileText, FoundFile, is_secret_file, walk
from anaphora.ingest.sections.roles import language_of, role_of


def make(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def paths(root: Path) -> list[str]:
    return [each.path for each in walk(root) if isinstance(each, FoundFile)]


def skipped(root: Path) -> dict[str, str]:
    return {each.path: each.reason for each in walk(root) if isinstance(each, Skipped)}


def text_of(root: Path, content: bytes, name: str = "a.txt") -> FileText | Skipped:
    make(root, {name: content})
    return read(next(each for each in walk(root) if isinstance(each, FoundFile)))


RULES: dict[str, str | bytes] = {
    ".gitignore": "*.log\n!keep.log\n/only_here.txt\nbuild2/\n# note\n\ndoc/*.tmp\n[\n"
    "**/deep/x.md\n",
    "a.log": "x",
    "keep.log": "x",
    "only_here.txt": "x",
    "sub/only_here.txt": "x",
    "build2/a.py": "x",
    "sub/.gitignore": "!b.log\n*.py\n!/kept.py\n",
    "sub/b.log": "x",
    "sub/c.py": "x",
    "sub/kept.py": "x",
    "sub/more/kept.py": "x",
    "doc/a.tmp": "x",
    "doc/more/a.tmp": "x",
    "q/deep/x.md": "x",
    "hidden/.gitignore": "*\n",
    "hidden/a.py": "x",
    "excluded.txt": "x",
    "node_modules/a.js": "x",
    "env/pyvenv.cfg": "x",
    "env/lib/a.py": "x",
    "build/out.js": "x",
    "src/build/__init__.py": "x",
}


@pytest.mark.promise("files.walk")
def test_the_rules_are_those_of_git(tmp_path: Path) -> None:
    """Nested ignore files, negations and the checkout's own excludes leave out what git does."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    root = make(tmp_path, RULES)
    subprocess.run([git, "init", "-q"], cwd=root, check=True)
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("excluded.txt\n")
    listed = subprocess.run(
        [git, "ls-files", "-o", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
        env={"GIT_CONFIG_GLOBAL": os.devnull},
    ).stdout.split("\0")
    ours = ("node_modules/", "env/", "build/")
    wanted = sorted(each for each in listed if each and not each.startswith(ours))
    assert sorted(paths(root)) == wanted
    assert paths(root / "sub") == [
        each.removeprefix("sub/") for each in sorted(wanted) if each.startswith("sub/")
    ]


def test_an_ignored_folder_that_is_asked_for(tmp_path: Path) -> None:
    """Whoever asks for a folder that its checkout ignores gets its files."""
    make(tmp_path, {".git/HEAD": "x", ".gitignore": "mine/\n", "mine/a.py": "x"})
    assert paths(tmp_path / "mine") == ["a.py"]


@pytest.mark.promise("files.walk")
@pytest.mark.enable_socket
def test_what_is_skipped_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links, sockets, pipes, huge, binary and lock files are named with the reason."""
    root = make(
        tmp_path / "root",
        {"a.py": "x", "big.txt": b"x" * 1_000_001, "p.png": b"x", "uv.lock": "x", "d/e.md": "x"},
    )
    make(tmp_path, {"outside/secret.txt": "x"})
    (root / "d" / "up").symlink_to(root, target_is_directory=True)
    (root / "self").symlink_to("self")
    (root / "gone").symlink_to("nowhere")
    (root / "same.py").symlink_to("a.py")
    (root / "far").symlink_to(tmp_path / "outside", target_is_directory=True)
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        assert skipped(root) == {
            "big.txt": "too_large",
            "d/up": "link_cycle",
            "far": "link_outside",
            "gone": "broken_link",
            "p.png": "binary",
            "pipe": "not_a_file",
            "same.py": "link",
            "self": "link_cycle",
            "sock": "not_a_file",
            "uv.lock": "lock_file",
        }
    assert paths(root) == ["a.py", "d/e.md"]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """A file whose name is no Unicode text is skipped, under a name that can be shown."""
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("x")
    assert skipped(tmp_path) == {"caf\\udce9.py": "odd_name"}


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    """A project that was removed, or is a file, gives one reason."""
    (tmp_path / "file").write_text("x")
    assert skipped(tmp_path / "nowhere") == {".": "gone"}
    assert skipped(tmp_path / "file") == {".": "not_a_folder"}


@pytest.mark.promise("files.read")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("é\r\nb\rc".encode(), "é\nb\nc"),
        (b"\xef\xbb\xbfa", "a"),
        ("é\n".encode("utf-16"), "é\n"),
        ("é ab\n".encode("utf-32"), "é ab\n"),
        ("def a(): pass\n".encode("utf-16-le"), "def a(): pass\n"),
        ("café “x”".encode("cp1252"), "café “x”"),
        (b"caf\xe9 \x81", "caf\xe9 \x81"),
        (
            "# -*- coding: shift_jis -*-\n日本".encode("shift_jis"),
            "# -*- coding: shift_jis -*-\n日本",
        ),
        (b"# coding: rot13\ncaf\xe9", "# coding: rot13\ncafé"),
        (b"", ""),
    ],
)
def test_encodings(tmp_path: Path, content: bytes, text: str) -> None:
    """Text is read in the encoding that its bytes show, with plain line ends."""
    found = text_of(tmp_path, content)
    assert isinstance(found, FileText)
    assert found.text == text


@pytest.mark.promise("files.read")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (bytes(range(256)) * 4, "binary"),
        (b"\x89\xfe" + b"\x01\x02\x03" * 90, "binary"),
        (b"a\0b" * 50, "binary"),
        (b"x = 1;" * 9_000, "minified"),
    ],
)
def test_no_text(tmp_path: Path, content: bytes, reason: str) -> None:
    """Bytes that are no text, or that no person wrote as lines, are skipped with the reason."""
    assert text_of(tmp_path, content) == Skipped("a.txt", reason)


def test_files_that_change_under_way(tmp_path: Path) -> None:
    """A file that grows, goes or becomes something else after it was found says so."""
    make(tmp_path, {"a": "x", "b": "x", "c": "x", "d": "x"})
    found = {each.path: each for each in walk(tmp_path) if isinstance(each, FoundFile)}
    (tmp_path / "a").write_bytes(b"x" * 1_000_001)
    (tmp_path / "b").unlink()
    (tmp_path / "c").unlink()
    os.mkfifo(tmp_path / "c")
    (tmp_path / "d").unlink()
    (tmp_path / "d").symlink_to("/etc/hostname")
    reasons = [read(each) for each in found.values()]
    assert reasons == [
        Skipped("a", "too_large"),
        Skipped("b", "gone"),
        Skipped("c", "not_a_file"),
        Skipped("d", "unreadable"),
    ]


ROLES: dict[str, str] = {
    "code": "src/a/main.py lib/x.rs app/index.ts web/a.css contest.py src/latest.py cmd/run "
    "src/cli/setup.py app/tasks.py",
    "test": "tests/a.py src/a_test.go a/test_b.py x/b.spec.ts x/FooTest.java spec/a_spec.rb "
    "tests/fixtures/a.json conftest.py",
    "docs": "README.md docs/a.rst CHANGELOG.md docs/conf.py a/notes.txt docs/decisions/1.md",
    "package_config": "pyproject.toml setup.py package.json requirements-dev.txt go.mod Cargo.toml "
    "a.gemspec",
    "agent_config": "AGENTS.md CLAUDE.md .cursor/rules/a.mdc .github/copilot-instructions.md",
    "plan": "plans/next.md ROADMAP.md docs/TODO.md docs/rfcs/1.md",
    "generated": "a/b_pb2.py web/x.min.js src/generated/a.ts vendor/x/a.go __snapshots__/a.snap",
    "tooling": "Makefile .github/workflows/ci.yml Dockerfile tox.ini scripts/run.sh .gitignore",
    "unknown": "data/a.json config.yaml LICENSE",
}


@pytest.mark.promise("files.roles")
@pytest.mark.parametrize("role", ROLES)
def test_roles(role: SourceRole) -> None:
    """A path tells what a file is for."""
    found = {
        path: role_of(path, "#!/bin/sh\n" if path == "cmd/run" else "")
        for path in ROLES[role].split()
    }
    assert found == dict.fromkeys(found, role)


def test_generated_by_its_words() -> None:
    """A file that says at its top that it is generated is."""
    assert role_of("a/b.go", "// Code generated by x. DO NOT EDIT.\npackage b\n") == "generated"
    assert role_of("a/b.go", "package b\n" * 40 + "// Code generated by x. DO NOT EDIT.") == "code"


@pytest.mark.promise("files.roles")
@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("a.pyi", "", "python"),
        ("A.TSX", "", "tsx"),
        ("a.h", "#include <stdio.h>\nint a;", "c"),
        ("a.h", "#pragma once\nclass A {", "cpp"),
        ("run", "#!/usr/bin/env node\n", "javascript"),
        ("run", "#!/usr/bin/python3.11 -u\n", "python"),
        ("run", "#! /bin/sh\n", "bash"),
        ("run", "#!/usr/bin/env -S LANG=C bash\n", "bash"),
        ("run", "words", "text"),
        (".env.example", "", "env"),
        ("Dockerfile.dev", "", "dockerfile"),
        ("go.mod", "", "gomod"),
        (".py", "", "text"),
    ],
)
def test_languages(path: str, head: str, language: str) -> None:
    """The ending, the name or the first line tells the language."""
    assert language_of(path, head) == language


@pytest.mark.promise("project.secrets")
@pytest.mark.parametrize(
    ("path", "secret"),
    [
        (".env", True),
        ("a/.ENV.production", True),
        ("prod.env", True),
        (".envrc", True),
        (".env.example", False),
        (".env.sample", False),
        ("env.d.ts", False),
        ("environment.py", False),
        ("id_rsa", True),
        ("id_rsa.pub", False),
        ("server.key", True),
        ("keys.py", False),
        ("example.pem", True),
        ("secrets.yaml", True),
        ("secrets.yaml.example", False),
        ("secrets.py", False),
        ("credentials.json", True),
        ("credentials.example.json", False),
        ("src/credentials.ts", False),
        ("client_secret_123.apps.json", True),
        ("service-account-prod.json", True),
        ("auth.json", True),
        ("locales/en/auth.json", False),
        (".ssh", True),
        ("home/.ssh/config", True),
        (".docker/Dockerfile", False),
        (".docker/config.json", True),
        ("terraform.tfstate", True),
        ("main.tf", False),
        (".npmrc", True),
        ("docs/npmrc.md", False),
        (".bash_history", True),
        ("history.md", False),
    ],
)
def test_secret_files_are_known_by_name(path: str, secret: bool) -> None:
    """Keys and settings with passwords are known by their names; templates and code are not."""
    assert is_secret_file(path) == secret
