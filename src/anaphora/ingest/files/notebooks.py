"""Notebooks of Jupyter (nbformat 2 to 4): the sources of their cells as one text, no outputs.

The text is MyST Markdown, as other programs write notebooks: Markdown cells as they are, code cells
between fences that name their language ("```{code-cell} python").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from anaphora.ingest.sections.markdown import end_of_open_block

MOST_VALUES: Final = 4_000_000
"""Commas and brackets of a notebook: each may be a value that takes a hundred bytes of memory."""

_DEFAULT: Final = "python"
_LANGUAGES: Final = {
    "c++": "cpp", "c#": "csharp", "f#": "fsharp", "ir": "r", "ipython": "python",
    "js": "javascript", "sh": "bash", "shell": "bash", "xcpp": "cpp",
}  # fmt: skip
_VERSION = re.compile(r"[\s\d.-]+$")
_MAGIC = re.compile(r"\s*%%(bash|sh|javascript|js|html|sql|ruby|perl|r|latex|svg|markdown)\b", re.I)
_TICKS = re.compile(r"^ {0,3}(`{3,})", re.M)
_DATA = re.compile(r"(data:[\w.+-]{1,40}/[\w.+-]{1,80};base64,)[A-Za-z0-9+/=]{64,}")


class BrokenNotebook(ValueError):
    """Not a notebook, or a damaged one; the message says why."""


def notebook_text(written: str) -> str:
    """The text of a notebook's cells, "" of an empty file. Raises BrokenNotebook."""
    if not written.strip():
        return ""
    if sum(map(written.count, ",[{")) > MOST_VALUES:
        raise BrokenNotebook("it holds more values than a notebook may")
    try:
        notebook = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise BrokenNotebook("it is no notebook: its JSON is damaged") from error
    if not isinstance(notebook, dict):
        raise BrokenNotebook("it is no notebook: it is no JSON object")
    # The language of code cells, by the kernel that runs them.
    metadata = _read_mapping(notebook, "metadata")
    kernel, info = _read_mapping(metadata, "kernelspec"), _read_mapping(metadata, "language_info")
    names = (kernel.get("language"), info.get("name"), metadata.get("language"), kernel.get("name"))
    language = _choose_language(names, _DEFAULT)
    # Cells of nbformat 3 lie in worksheets.
    sheets = notebook.get("worksheets")
    groups = [notebook.get("cells")]
    if "cells" not in notebook and isinstance(sheets, list):
        groups = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    texts: list[str] = []
    for cells in groups:
        if not isinstance(cells, list):
            raise BrokenNotebook("it is no notebook: it has no list of cells")
        texts += [_write_cell(cell, language) for cell in cells if isinstance(cell, dict)]
    return "\n\n".join(text for text in texts if text) + "\n"


def _write_cell(cell: Mapping[str, object], language: str) -> str:
    kind = cell.get("cell_type")
    source = cell.get("source", cell.get("input", cell.get("text")))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    else:
        source = source if isinstance(source, str) else ""
    source = _DATA.sub(r"\1…", source).replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not source.strip():
        return ""
    if kind == "code":
        if magic := _MAGIC.match(source):
            return _fence(source, f"{{code-cell}} {_normalise_language(magic[1])}")
        # A notebook may have cells of several languages.
        metadata = _read_mapping(cell, "metadata")
        names = (
            cell.get("language"),
            _read_mapping(metadata, "vscode").get("languageId"),
            _read_mapping(metadata, "dotnet_interactive").get("language"),
            _read_mapping(metadata, "polyglot_notebook").get("kernelName"),
        )
        return _fence(source, f"{{code-cell}} {_choose_language(names, language)}")
    if kind == "heading":
        level = cell.get("level")
        marks = "#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1)
        return f"{marks} {' '.join(source.split())}"
    if kind == "raw":
        return _fence(source, "{raw-cell}")
    # A block that is left open ends with its cell.
    return source + end_of_open_block(source.split("\n"))


def _fence(source: str, name: str) -> str:
    longest = max((len(ticks) for ticks in _TICKS.findall(source)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{name}\n{source}\n{fence}"


def _choose_language(names: Iterable[object], default: str) -> str:
    """The first of these names that is one of a language."""
    texts = (name for name in names if isinstance(name, str))
    return next(filter(None, map(_normalise_language, texts)), default)


def _normalise_language(name: str) -> str:
    """The canonical name of a language: "Python 3" and "python3" are "python"."""
    lower_name = name.strip().lower()
    plain = _LANGUAGES.get(lower_name) or _VERSION.sub("", lower_name)
    plain = _LANGUAGES.get(plain, plain)
    return plain if re.fullmatch(r"[a-z][a-z0-9+#._-]{0,30}", plain) else ""


def _read_mapping(value: Mapping[str, object], name: str) -> Mapping[str, object]:
    nested_mapping = value.get(name)
    return nested_mapping if isinstance(nested_mapping, dict) else {}
