"""Each line of a file is in exactly one section, whatever the file is and however it is damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora.ingest.sections import ParsedFile, parse
from anaphora.ingest.sections.base import MAX_CHARS, MAX_LINES, lines_of

pytestmark = pytest.mark.internal

SAMPLES = sorted((Path(__file__).parent / "fixtures_sections").glob("*.txt"))
NAMES = (
    "a.py a.js a.ts a.tsx a.go a.rs a.java a.c a.h a.cpp a.rb a.php a.cs a.sh a.md a.rst a.json "
    "a.toml a.yaml a.ini Makefile .env go.mod a.txt a package.json pyproject.toml setup.cfg "
    "Cargo.toml composer.json Gemfile pom.xml requirements.txt Pipfile"
)


def hold(text: str, parsed: ParsedFile) -> None:
    """Assert the law, and that sections are no longer than they may be."""
    lines = lines_of(text)
    following = 1
    for section in parsed.sections:
        assert section.start_line == following
        assert section.text == "\n".join(lines[section.start_line - 1 : section.end_line])
        assert section.text.strip()
        assert section.title
        assert section.end_line - section.start_line < MAX_LINES or not section.text[-1:].strip()
        assert len(section.text) <= MAX_CHARS or "\n" not in section.text.strip()
        following = section.end_line + 1
    assert following == (len(lines) + 1 if text.strip() else 1)


@pytest.mark.promise("sections.whole")
@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=600), name=st.sampled_from(NAMES.split()))
def test_any_text(text: str, name: str) -> None:
    """Any text at all is divided into its lines, as whatever kind of file."""
    hold(text, parse(name, text))


@pytest.mark.promise("sections.whole")
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), sample=st.sampled_from(SAMPLES))
def test_damaged_code(seed: int, sample: Path) -> None:
    """Real code keeps all its lines when pieces of it are cut out, doubled and mixed up."""
    chance = random.Random(seed)
    text = sample.read_text(encoding="utf-8")
    for _ in range(chance.randint(1, 8)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.randint(1, 60))
        place = chance.randint(0, len(text))
        text = chance.choice(
            [
                text[:start] + text[end:],
                text[:place] + text[start:end] + text[place:],
                text[:place] + chance.choice("\n\r\t\0({[\"'`\\\ud800é#=") + text[place:],
            ]
        )
    hold(text, parse(sample.name.removesuffix(".txt"), text))


@pytest.mark.parametrize("name", ["a.py", "a.ts", "a.cpp", "a.md", "a.txt", "a.json"])
def test_long_files(name: str) -> None:
    """Whatever is very long is in parts that are not, and the parts say which they are."""
    text = "def long(a):\n" + "".join(f"    a = a + {n}\n\n" for n in range(400))
    parsed = parse(name, text)
    hold(text, parsed)
    assert len(parsed.sections) > 4
    assert parsed.sections[1].title.endswith(f"(2 of {len(parsed.sections)})")


def test_a_long_function_keeps_its_name() -> None:
    """Each part of a function that is too long is of that function."""
    text = "def long(a):\n" + "".join(f"    a = a + {n}\n" for n in range(400))
    parsed = parse("a.py", text)
    assert {each.symbol for each in parsed.sections} == {"long"}
    assert len(parsed.symbols) == 1


@pytest.mark.parametrize("name", NAMES.split())
@pytest.mark.parametrize(
    "text",
    ["(" * 30_000, "{\n" * 20_000, "<<E\n" * 3_000, "\0" * 99, "\ud800\n" * 9, "---\n+++\n---"],
    ids=["brackets", "blocks", "here", "nul", "surrogates", "fronts"],
)
def test_what_nobody_wrote(name: str, text: str) -> None:
    """Text that would keep a parser busy for minutes is divided all the same."""
    hold(text, parse(name, text))


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "\r\n"])
def test_blank(text: str) -> None:
    """A blank file has no sections."""
    assert all(not parse(name, text).sections for name in NAMES.split())


def test_adversarial_data(broken: Path, naughty: list[str]) -> None:
    """Bad JSON and naughty strings are divided, as JSON and as other kinds of files."""
    texts = [
        path.read_bytes().decode("utf-8", "replace")
        for path in sorted(broken.iterdir())
        if path.stat().st_size < 300_000
    ]
    texts.append("\n".join(naughty))
    assert len(texts) > 300
    for text in texts:
        for name in ("a.json", "package.json", "a.md", "a.py", "a.yaml"):
            hold(text, parse(name, text))
