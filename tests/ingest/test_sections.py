"""Files cut into sections: code, prose and data, notebooks, and laws for every format."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from anaphora import Memory
from anaphora.errors import UnreadableDocument
from anaphora.ingest.files.notebooks import notebook_text
from anaphora.ingest.sections import ParsedFile, parse
from anaphora.ingest.sections.base import MAX_CHARS, MAX_LINES, lines_of

pytestmark = pytest.mark.internal

SAMPLES = Path(__file__).parent / "fixtures_sections"


def sample(name: str) -> ParsedFile:
    return parse(name, (SAMPLES / f"{name}.txt").read_text(encoding="utf-8"))


def section_of(parsed: ParsedFile, symbol: str) -> str:
    return next(each.text for each in parsed.sections if each.symbol == symbol)


SYMBOLS = {
    "sample.py": ("Payment:class Payment.doubled:method Payment.Kind.name:method outer:function"),
    "sample.js": (
        "add:function subtract:function Ledger.handle:method Ledger.close:method open:function"
    ),
    "sample.tsx": (
        "Row:interface Level:enum Id:type Table.find:method Tools.clean:function View:function"
    ),
    "sample.go": ("Payment:type Sender:type Payment.Send:method Stack.Push:method Limit:constant"),
    "sample.rs": ("Payment:struct Send:trait Payment.send:method Stack.push:method twice:macro"),
    "sample.java": (
        "Payment:class Payment.send:method Payment.Kind:enum Sender:interface Point:class"
    ),
    "sample.c": (
        "payment:struct stack_t:type callback:function send:function names:function LIMIT:macro"
    ),
    "sample.cpp": (
        "money.detail.Stack:class money.detail.Stack.top:method money.Kind:enum main:function"
    ),
    "sample.rb": ("Money:module Money.Payment:class Money.Payment.open:method helper:function"),
    "sample.php": ("Payment:class Payment.send:method Boxed:interface Loggable:trait Kind:enum"),
    "sample.cs": (
        "App.Ledger.Payment.Send:method App.Ledger.ISender:interface App.Ledger.Pair:struct"
    ),
    "sample.sh": "say:function build:function LIMIT:constant",
}
IMPORTS = {
    "sample.py": ("__future__ os sys collections.abc  core.store rates json wire"),
    "sample.js": ("./lib/a.js pkg ./side-effect ./three ./all fs node:path ./lazy.js"),
    "sample.tsx": "react ./types fs",
    "sample.go": "fmt strings example.com/money/v2 math",
    "sample.rs": (
        "std::collections crate::money::Rate super::wire self::kinds serde self::kinds "
        "self::wire super"
    ),
    "sample.java": ("java.util.List java.util.concurrent org.junit.Assert.assertEquals"),
    "sample.c": "stdio.h money/rate.h",
    "sample.cpp": "vector ledger.hpp",
    "sample.rb": "json ./ledger/rate ../wire tasks.rb",
    "sample.php": r"App\Money\Rate App\Wire App\twice ./bootstrap.php helpers.php",
    "sample.cs": ("System System.Collections.Generic System.Math App.Money.Rate"),
    "sample.sh": "./lib/common.sh $HOME/.profile",
}
COMMENTED = {
    "sample.py": ("Payment", "# How a payment is kept."),
    "sample.js": ("add", "/**\n * Adds two numbers."),
    "sample.tsx": ("Row", "/** What a row holds. */"),
    "sample.go": ("Payment.Send", "// Send sends the payment.\n//\n// It may fail."),
    "sample.rs": ("Payment", "/// One payment.\n#[derive(Debug, Clone)]"),
    "sample.java": ("Payment.send", "    /** Sends it. */\n    @Override"),
    "sample.c": ("payment", "/* One payment. */"),
    "sample.cpp": ("money.detail.Stack.push", "    // Pushes one."),
    "sample.rb": ("Money.Payment", "  # One payment."),
    "sample.php": ("Payment", "/**\n * One payment.\n */\n#[Entity]"),
    "sample.sh": ("say", "# Says something."),
}


@pytest.mark.promise("sections.symbols")
@pytest.mark.parametrize("name", SYMBOLS)
def test_symbols(name: str) -> None:
    """The functions, methods and types of a language are found, with what holds them."""
    found = {f"{each.qualified}:{each.kind}" for each in sample(name).symbols}
    assert set(SYMBOLS[name].split()) <= found


@pytest.mark.promise("sections.symbols")
@pytest.mark.parametrize("name", IMPORTS)
def test_imports(name: str) -> None:
    """What a file imports is there as it is written, in the order of its lines."""
    assert [each.module for each in sample(name).imports] == IMPORTS[name].split(" ")


@pytest.mark.parametrize("name", COMMENTED)
def test_comments_above(name: str) -> None:
    """The comment, decorator or attribute right above a symbol is in its section."""
    symbol, comment = COMMENTED[name]
    assert comment in section_of(sample(name), symbol)


def test_python_imports_in_full() -> None:
    """An import of Python has its dots, its names without their aliases, and its line."""
    found = [
        (each.level, each.module, each.names, each.line) for each in sample("sample.py").imports
    ]
    assert (1, "", ("money",), 8) in found
    assert (2, "core.store", ("Store", "open_store"), 9) in found
    assert (1, "rates", ("*",), 10) in found
    assert (1, "wire", ("post",), 57) in found


def test_methods_stand_under_their_class() -> None:
    """A method of a long class has a section of its own, with the class as its heading."""
    method = next(each for each in sample("sample.py").sections if each.symbol == "Payment.send")
    assert method.heading == ("Payment",)
    assert method.text.startswith("    async def send(")


def test_a_small_class_is_whole() -> None:
    """A short class is one section with all its methods, which are still symbols."""
    parsed = parse("a.py", "class A:\n    def b(self): ...\n\n    def c(self): ...\n")
    assert [each.symbol for each in parsed.sections] == ["A"]
    assert [each.qualified for each in parsed.symbols] == ["A", "A.b", "A.c"]


def test_top_of_a_file_is_called_what_it_says() -> None:
    """The lines before the first symbol are titled by the file's own first words."""
    assert sample("sample.py").sections[0].title == "Keeps a ledger of payments"
    assert sample("sample.go").sections[0].title == "Package ledger keeps payments"


def test_namespaces_make_no_crumbs() -> None:
    """The line of a namespace goes with the first of its parts."""
    first = next(each for each in sample("sample.cpp").sections if each.symbol)
    assert first.symbol == "money.detail.Stack"
    assert first.text.startswith("namespace money {")


def test_a_language_that_has_no_grammar() -> None:
    """Code in any other language is one section, or its lines in parts."""
    parsed = parse("a.lua", "local a = 1\nprint(a)\n")
    assert [(each.kind, each.title) for each in parsed.sections] == [("file", "a.lua")]


def test_shebang_tells_the_language() -> None:
    """A script without an ending is read in the language of its first line."""
    parsed = parse("bin/run", "#!/usr/bin/env -S python3 -u\ndef main(): ...\n")
    assert parsed.language == "python"
    assert [each.name for each in parsed.symbols] == ["main"]


def prose(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.promise("sections.prose")
def test_markdown() -> None:
    """Headings of both kinds divide Markdown; fences, comments and front matter hold none."""
    found = [
        (each.kind, each.heading, each.title) for each in parse("a.md", prose("sample.md")).sections
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
    install = parse("a.md", prose("sample.md")).sections[2]
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
    found = [(each.heading, each.title) for each in parse("a.rst", prose("sample.rst")).sections]
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
    found = [each.name.replace(" ", "_") for each in parse(name, prose(name)).symbols]
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


EVERY_SAMPLE = sorted((Path(__file__).parent / "fixtures_sections").glob("*.txt"))
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
@given(seed=st.integers(0, 2**32), sample=st.sampled_from(EVERY_SAMPLE))
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


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


def cell(kind: str, source: str | list[str], picture: int = 0, **more: Any) -> dict[str, Any]:
    """A cell, with an output that is a picture of so many bytes."""
    data = base64.b64encode(random.Random(picture).randbytes(picture)).decode()
    outputs = [{"output_type": "display_data", "data": {"image/png": data}}] if picture else []
    return {"cell_type": kind, "metadata": {}, "source": source, "outputs": outputs, **more}


def notebook(*cells: dict[str, Any], **metadata: Any) -> str:
    """A notebook of nbformat 4, in one line, as some programs write it."""
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


TIDES = (
    cell("markdown", ["# Tides\n", "\n", "Levels of the gauge at Aveiro, `\n", "```\n", "# open"]),
    cell(
        "code", "%load_ext x\nimport gauges\n\n\ndef fetch_levels(day):\n    return gauges.at(day)"
    ),
    cell("markdown", "## Harmonics\n\nThe moon counts most."),
    cell("code", "print(1)\n# no heading", picture=700_000),
    cell("raw", "Kept raw."),
)


@pytest.mark.promise("project.index")
def test_sizes_are_those_of_the_cells(memory: Memory, tmp_path: Path) -> None:
    """Pictures in outputs make no notebook too large or minified; broken ones are told."""
    root = tmp_path / "lab"
    root.mkdir()
    for name, text in {
        "tides.ipynb": notebook(*TIDES),
        "short.ipynb": notebook(cell("code", "def weigh():\n    return 1", picture=60_000)),
        "broken.ipynb": "<<<<<<< HEAD\n" + notebook(*TIDES),
        "list.ipynb": "[1, 2]",
        "cells.ipynb": '{"cells": 7}',
        "long.ipynb": notebook(cell("code", "x = 1\n" * 200_000)),
        "odd.ipynb": notebook(cell("code", ["y = 2", 3]), {"cell_type": 4}),  # type: ignore[list-item]  # damage
        "empty.ipynb": "",
        "other.py": "z = 1\n",
    }.items():
        (root / name).write_text(text, "utf-8")
    report = memory.index_project(root, name="lab")
    assert {(one.path, one.reason) for one in report.skipped} == {
        ("broken.ipynb", "broken_notebook"),
        ("list.ipynb", "broken_notebook"),
        ("cells.ipynb", "broken_notebook"),
        ("long.ipynb", "too_large"),
    }
    found = memory.recall_context("where is fetch_levels defined?", project="lab").primary_targets
    assert (found[0].path, found[0].title) == ("tides.ipynb", "fetch_levels")
    assert memory.index_project(root, name="lab").unchanged == 9


@pytest.mark.promise("sections.prose")
def test_headings_and_symbols_make_sections() -> None:
    """Prose stands under its heading, functions of cells under the heading of their place."""
    parsed = parse("tides.ipynb", notebook_text(notebook(*TIDES)))
    assert [(one.title, one.heading) for one in parsed.sections] == [
        ("Tides", ()),
        ("fetch_levels", ("Tides",)),
        ("Harmonics", ("Tides",)),
    ]
    assert [one.qualified for one in parsed.symbols] == ["fetch_levels"]
    assert [one.module for one in parsed.imports] == ["gauges"]
    last = parsed.sections[-1].text
    assert "print(1)\n# no heading" in last
    assert "Kept raw." in last


@pytest.mark.promise("sections.prose")
@pytest.mark.parametrize(
    ("written", "line"),
    [
        (notebook(cell("code", "x")), "```{code-cell} python"),
        (notebook(cell("code", "x"), kernelspec={"language": "R"}), "```{code-cell} r"),
        (notebook(cell("code", "x"), kernelspec={"name": "python3"}), "```{code-cell} python"),
        (notebook(cell("code", "x"), language_info={"name": "C++17"}), "```{code-cell} cpp"),
        (notebook(cell("code", "%%bash\nls")), "```{code-cell} bash"),
        (
            notebook(cell("code", "x", metadata={"vscode": {"languageId": "sql"}})),
            "```{code-cell} sql",
        ),
        (
            notebook(cell("markdown", f"![](data:image/png;base64,{'A' * 900})")),
            "![](data:image/png;base64,…)",
        ),
        (notebook(cell("code", "s = '''\n```\n'''")), "````{code-cell} python"),
        (
            json.dumps({"worksheets": [{"cells": [cell("heading", "Old", level=2)]}]}),
            "## Old",
        ),
        (
            json.dumps(
                {
                    "worksheets": [
                        {"cells": [{"cell_type": "code", "input": ["x\n"], "language": "python"}]}
                    ]
                }
            ),
            "```{code-cell} python",
        ),
    ],
)
def test_cells_of_every_kernel_and_format(written: str, line: str) -> None:
    """The kernel, the cell or its magic names the language; nbformat 3 has worksheets."""
    assert notebook_text(written).split("\n")[0] == line


@pytest.mark.promise("documents.formats")
def test_a_notebook_is_a_document(memory: Memory, tmp_path: Path) -> None:
    """The same reader gives its text; what is broken is refused by name and reason."""
    path = tmp_path / "tides.ipynb"
    path.write_text(notebook(*TIDES), "utf-8")
    added = memory.add_document(path)
    texts = [one.text for one in memory.document_sections(added.document.id)]
    assert any("def fetch_levels" in text for text in texts)
    assert sum(map(len, texts)) < 1_000
    path.write_text("{", "utf-8")
    with pytest.raises(UnreadableDocument, match="no notebook"):
        memory.add_document(path)
