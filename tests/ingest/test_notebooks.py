"""Notebooks are read cell by cell, without outputs: in projects, and as documents."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anaphora import Memory
from anaphora.errors import UnreadableDocument
from anaphora.ingest.files.notebooks import notebook_text
from anaphora.ingest.sections import parse


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
