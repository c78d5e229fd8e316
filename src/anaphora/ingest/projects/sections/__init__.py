"""A file's text into its sections, by what kind of file it is.

In: the path (for its name and ending only) and the text. Out: a `Parsed`. It reads no disk, knows
no project, and never raises, however odd the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.ingest.projects.files.roles import language_of
from anaphora.ingest.projects.sections.base import (
    Import,
    Mark,
    Parsed,
    Section,
    Symbol,
    cut,
    line_marks,
    lines_of,
)
from anaphora.ingest.projects.sections.code import code_marks
from anaphora.ingest.projects.sections.config import commands_of, config_marks, packages_of
from anaphora.ingest.projects.sections.grammars import GRAMMARS
from anaphora.ingest.projects.sections.markdown import markdown_marks, rst_marks

__all__ = ["Import", "Parsed", "Section", "Symbol", "parse"]

_HEAD = 400


def parse(path: str, text: str) -> Parsed:
    """The sections, symbols, imports, commands and packages of a file.

    `path` is only looked at, never opened. Every line is in exactly one section, in order, unless
    the text is blank: then there are no sections. `text` should end its lines in line feeds.
    """
    language = language_of(path, text[:_HEAD])
    if not text.strip():
        return Parsed(language, ())
    lines = lines_of(text)
    name = path.rsplit("/", 1)[-1]
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[Import, ...] = ()
    if language in GRAMMARS:
        marks, symbols, imports = code_marks(language, name, lines)
    else:
        marks, symbols = _plain_marks(language, name, lines)
    return Parsed(
        language=language,
        sections=cut(lines, marks or line_marks(lines, name)),
        symbols=symbols,
        imports=imports,
        commands=commands_of(name, text),
        packages=packages_of(name, text),
    )


def _plain_marks(
    language: str, name: str, lines: Sequence[str]
) -> tuple[list[Mark], tuple[Symbol, ...]]:
    if language == "markdown":
        return markdown_marks(lines, name), ()
    if language == "rst":
        return rst_marks(lines, name), ()
    return config_marks(language, lines)
