"""Prose by heading, settings by key, and what manifests declare."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from anaphora.ingest.sections import parse

SAMPLES = Path(__file__).parent / "fixtures_sections"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.promise("sections.prose")
def test_markdown() -> None:
    """Headings of both kinds divide Markdown; fences, comments and front matter hold none."""
    found = [
        (each.kind, each.heading, each.title)
        for each in parse("a.md", sample("sample.md")).sections
    ]
    assert found == [
        ("lines", (), "Front # matter"),
        ("heading", (), "The guide to things"),
        ("heading", ("The guide to things", "Install"), "On Linux"),
        ("heading", ("Using it",), "More text over two lines"),
        ("heading", ("Using it",), "Links"),
    ]


def test_a_bare_heading_stands_above_its_first_part() -> None:
    """A heading with nothing of its own is in the section below it, and in its heading path."""
    install = parse("a.md", sample("sample.md")).sections[2]
    assert install.text.startswith("## Install\n\n### On Linux")


def test_headings_agree_with_a_reference() -> None:
    """The lines with headings are those that a CommonMark parser finds, in this project's docs."""
    root = Path(__file__).resolve().parents[2]
    files = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    assert len(files) > 5
    for file in files:
        text = file.read_text(encoding="utf-8")
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        wanted = [
            each.map[0] + 1
            for each in tokens
            if each.type == "heading_open" and not each.level and each.map
        ]
        sections = [each for each in parse(file.name, text).sections if each.kind == "heading"]
        lines = text.split("\n")
        for number in wanted:
            holder = next(each for each in sections if each.start_line <= number <= each.end_line)
            between = lines[holder.start_line - 1 : number - 1]
            assert all(not line.strip() or line.startswith("#") for line in between), (file, number)


@pytest.mark.promise("sections.prose")
def test_rst() -> None:
    """Titles of reStructuredText nest in the order in which their styles appear."""
    found = [(each.heading, each.title) for each in parse("a.rst", sample("sample.rst")).sections]
    assert found == [
        ((), "The manual"),
        (("The manual",), "Install"),
        (("The manual", "Install"), "On Linux"),
        (("The manual",), "Use call well"),
    ]


@pytest.mark.promise("sections.settings")
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("sample.json", "name version bin scripts dependencies devDependencies"),
        ("sample.yaml", "name on env jobs quoted_key"),
    ],
)
def test_keys(name: str, keys: str) -> None:
    """Settings are known by their top-level keys, wherever brackets and quotes stand."""
    found = [each.name.replace(" ", "_") for each in parse(name, sample(name)).symbols]
    assert found == keys.split()


@pytest.mark.promise("sections.settings")
def test_small_keys_share_a_section() -> None:
    """One-line settings do not fall into crumbs, and a long one stands alone."""
    text = (
        "a = 1\nb = 2\n\n# about c\n[c]\n"
        + "".join(f"k{n} = {n}\n" for n in range(9))
        + "[d]\nx=1\n"
    )
    found = parse("a.toml", text).sections
    assert [each.title for each in found] == ["a, b", "c", "d"]
    assert found[1].text.startswith("# about c\n[c]")


@pytest.mark.promise("sections.declares")
@pytest.mark.parametrize(
    ("name", "text", "commands", "packages"),
    [
        (
            "pyproject.toml",
            '[project]\ndependencies = ["a-b>=1", "c[x]; python_version > \'3\'"]\n'
            '[project.scripts]\nrun = "m:f"\n[dependency-groups]\n'
            'dev = ["d", {include-group = "x"}]\n',
            ("run",),
            ("a-b", "c", "d"),
        ),
        (
            "setup.cfg",
            "[options]\ninstall_requires =\n    a>=1\n    b; x\n"
            "[options.entry_points]\nconsole_scripts =\n    run = m:f\n",
            ("run",),
            ("a", "b"),
        ),
        (
            "package.json",
            '{"name": "@s/n", "bin": "x.js", "scripts": {"t": "x"}, "dependencies": {"@a/b": "1"}}',
            ("npm run t", "n"),
            ("@a/b",),
        ),
        (
            "Makefile",
            "X := 1\n.PHONY: all\nall: a b\n\tgo\na.o b: c\n%.x: y\n",
            ("make all", "make a.o", "make b"),
            (),
        ),
        (
            "requirements-dev.txt",
            "# x\n-r a.txt\nflask[async]==1\ngit+https://x/y\nz @ https://x\n",
            (),
            ("flask", "z"),
        ),
        (
            "go.mod",
            "module x.y/z\nrequire (\n\ta.b/c v1.2.3\n)\nrequire d.e/f v0.1.0\n",
            (),
            ("a.b/c", "d.e/f"),
        ),
        ("Cargo.toml", '[dependencies]\nserde = "1"\n[[bin]]\nname = "r"\n', ("r",), ("serde",)),
        ("Gemfile", 'source "x"\ngem "rails", "~> 7"\n', (), ("rails",)),
        (
            "composer.json",
            '{"require": {"php": "8", "a/b": "1"}, "scripts": {"t": "x"}}',
            ("composer t",),
            ("a/b",),
        ),
        (
            "pom.xml",
            "<dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId>"
            "</dependency></dependencies>",
            (),
            ("g:a",),
        ),
    ],
)
def test_declared(
    name: str, text: str, commands: tuple[str, ...], packages: tuple[str, ...]
) -> None:
    """Manifests say which commands there are, as they are typed, and which packages are used."""
    parsed = parse(name, text)
    assert (parsed.commands, parsed.packages) == (commands, packages)


def test_a_broken_manifest_declares_nothing() -> None:
    """Half a file has sections, and no commands that were guessed."""
    parsed = parse("package.json", '{"scripts": {"a": "b"')
    assert parsed.sections
    assert parsed.commands == ()
