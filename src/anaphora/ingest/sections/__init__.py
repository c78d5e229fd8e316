"""A file's text into its sections, by what kind of file it is.

The path is only looked at for its name, and no text, however odd, raises an error.
"""

from __future__ import annotations

from anaphora.ingest.sections.base import (
    ImportedModule,
    ParsedFile,
    Section,
    SectionStart,
    Symbol,
    cut,
    fits,
    lines_of,
)
from anaphora.ingest.sections.code import code_starts
from anaphora.ingest.sections.config import commands_of, config_starts, packages_of
from anaphora.ingest.sections.grammars import GRAMMARS, can_parse
from anaphora.ingest.sections.markdown import markdown_starts, rst_starts
from anaphora.ingest.sections.notebook import notebook_starts
from anaphora.ingest.sections.roles import language_of

__all__ = ["ImportedModule", "ParsedFile", "Section", "Symbol", "lacks_parser", "parse"]

_HEAD = 400


def parse(path: str, text: str) -> ParsedFile:
    """The sections, symbols, imports, commands and packages of a file.

    `path` is only looked at, never opened. Every line is in exactly one section, in order, unless
    the text is blank: then there are no sections. `text` should end its lines in line feeds. Code
    is cut by its symbols, and by its lines where its language `lacks_parser`.
    """
    language = language_of(path, text[:_HEAD])
    if not text.strip():
        return ParsedFile(language, ())
    lines = lines_of(text)
    name = path.rsplit("/", 1)[-1]
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[ImportedModule, ...] = ()
    if can_parse(language):
        starts, symbols, imports = code_starts(language, name, lines)
    elif language == "notebook":
        starts, symbols, imports = notebook_starts(lines, name)
    elif language == "markdown":
        starts, symbols = markdown_starts(lines, name), ()
    elif language == "rst":
        starts, symbols = rst_starts(lines, name), ()
    else:
        starts, symbols = config_starts(language, lines)
    if not starts:
        starts = [SectionStart(1, "file" if fits(lines, 1, len(lines)) else "lines", name)]
    return ParsedFile(
        language=language,
        sections=cut(lines, starts),
        symbols=symbols,
        imports=imports,
        commands=commands_of(name, text),
        packages=packages_of(name, text),
    )


def lacks_parser(language: str | None) -> bool:
    """Whether files in a language are cut by lines because its parser is not installed."""
    # Most notebooks are in Python.
    language = "python" if language == "notebook" else language
    return language in GRAMMARS and not can_parse(language)
