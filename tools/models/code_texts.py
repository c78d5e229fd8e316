"""Code and documentation as pools, so that an embedder does not forget them while it learns talk.

Functions with what their docstrings say, and sections of documentation with their headings, from
the standard library and the installed packages under permissive licences. What is taken depends on
the interpreter and the versions installed, and on nothing else. Whole modules and documents are
left out by their names' hash: with those a model is measured.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Final

from tools.models.asked import Asked, Pool

from anaphora.embed.chunking import first_pieces
from anaphora.features.projects.indexing.file_sync import EMBEDDED_PIECES, whole_text
from anaphora.ingest.sections import parse

CODE: Final = "code"
DOCUMENTS: Final = "documents"
_PERMISSIVE: Final = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense|Zlib|0BSD)\b", re.IGNORECASE
)
_COPYLEFT: Final = re.compile(r"GPL|GNU|MPL|Mozilla|EPL|CDDL|CC-BY", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s")
_MARKUP: Final = re.compile(r"[`*#|]+|:\w+:|\[([^\]]*)\]\([^)]*\)|https?://\S+|<[^>]+>")
# One module or document in this many is measured on.
_HELD_OUT: Final = 6
_PER_MODULE: Final = 12
# Large packages, some of them generated, would leave no room for others.
_PER_PACKAGE: Final = 60
_PER_LIBRARY: Final = 1200
_PER_DOCUMENT: Final = 20
_LONGEST_FILE: Final = 200_000


def read_code(held_out: bool, *, limit: int) -> Iterator[Pool]:
    """Functions by what their docstrings say, a pool a module, at most `limit` questions."""
    return _limited(_code(held_out), limit)


def _code(held_out: bool) -> Iterator[Pool]:
    seen: set[str] = set()
    taken: Counter[str] = Counter()
    for group, file in _modules():
        package = group.split("/")[0]
        room = _PER_LIBRARY if package == "stdlib" else _PER_PACKAGE
        if _is_held_out(group) != held_out or taken[package] >= room:
            continue
        if pool := _functions(group, file, seen):
            taken[package] += len(pool.asked)
            yield pool


def read_documents(held_out: bool, *, limit: int) -> Iterator[Pool]:
    """Sections of packages' descriptions by their headings, a pool a package."""
    pools = (
        pool
        for name, text in _descriptions()
        if _is_held_out(name) == held_out and (pool := _sections(name, text))
    )
    return _limited(pools, limit)


def _limited(pools: Iterator[Pool], limit: int) -> Iterator[Pool]:
    left = limit
    for pool in pools:
        if left <= 0:
            return
        left -= len(pool.asked)
        yield pool


def _is_held_out(name: str) -> bool:
    return zlib.crc32(name.encode()) % _HELD_OUT == 0


def _modules() -> Iterator[tuple[str, Path]]:
    """(name, file) in an order that mixes packages and is the same in every run."""
    found = []
    library = Path(sysconfig.get_paths()["stdlib"])
    for file in library.rglob("*.py"):
        parts = file.relative_to(library).parts
        if not {"site-packages", "test", "tests", "idlelib", "lib2to3"} & set(parts):
            found.append(("stdlib/" + "/".join(parts), file))
    for package in _permissive():
        name = package.metadata["Name"].lower()
        found += [
            (f"{name}/{path.as_posix()}", Path(str(path.locate())))
            for path in package.files or ()
            if path.suffix == ".py" and not {"tests", "test"} & set(path.parts)
        ]
    return iter(sorted(set(found), key=lambda pair: (zlib.crc32(pair[0].encode()), pair[0])))


def _permissive() -> list[metadata.Distribution]:
    kept = []
    for package in metadata.distributions():
        told = package.metadata.json
        # Some packages put the whole text of their licence there.
        words = [str(told.get(name) or "")[:200] for name in ("license_expression", "license")]
        classifiers = told.get("classifier") or []
        words += [line for line in classifiers if str(line).startswith("License")]
        licence = " ".join(words)
        if _PERMISSIVE.search(licence) and not _COPYLEFT.search(licence):
            kept.append(package)
    return kept


def _functions(group: str, file: Path, seen: set[str]) -> Pool | None:
    """The functions of a module whose docstrings nothing in `seen` repeats: it takes them in."""
    try:
        source = file.read_text("utf-8")
        if len(source) > _LONGEST_FILE:
            return None
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError):
        return None
    lines = source.splitlines()
    passages: list[str] = []
    asked: list[Asked] = []
    for title, node in islice(_documented(tree, ""), _PER_MODULE):
        said = _said(ast.get_docstring(node) or "")
        if not said or said in seen:
            continue
        seen.add(said)
        whole = whole_text(title, (), _without_docstring(node, lines))
        key = f"code/{group}/{title}"
        asked.append(Asked(key, said, frozenset((len(passages),))))
        passages.append(first_pieces(whole, EMBEDDED_PIECES))
    return Pool("code", CODE, f"code/{group}", passages, asked) if len(asked) > 1 else None


def _documented(
    node: ast.AST, prefix: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """(title, function) of every function with a docstring and a body."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _documented(child, f"{prefix}{child.name}.")
        elif (
            isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            and len(child.body) > 1
            and ast.get_docstring(child)
        ):
            yield f"{prefix}{child.name}", child


def _without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str]) -> str:
    docstring = node.body[0]
    head = lines[node.lineno - 1 : docstring.lineno - 1]
    return "\n".join([*head, *lines[docstring.end_lineno or docstring.lineno : node.end_lineno]])


def _said(docstring: str) -> str:
    """The first sentence, where it says enough to be asked for."""
    first = _SENTENCE.split(" ".join(docstring.split("\n\n", maxsplit=1)[0].split()))[0]
    plain = " ".join(_MARKUP.sub(r"\1", first).split()).rstrip(".")
    return plain if 4 <= len(plain.split()) <= 30 else ""


def _descriptions() -> Iterator[tuple[str, str]]:
    found = {}
    for package in _permissive():
        told = package.metadata.json
        kind, text = str(told.get("description_content_type")), str(told.get("description") or "")
        if kind.startswith("text/markdown") and len(text) > 2000:
            found[package.metadata["Name"].lower()] = text
    return iter(sorted(found.items(), key=lambda pair: zlib.crc32(pair[0].encode())))


def _sections(name: str, text: str) -> Pool | None:
    group = f"documents/{name}"
    passages: list[str] = []
    asked: list[Asked] = []
    for section in islice(parse("README.md", text).sections, _PER_DOCUMENT):
        heading, _, body = section.text.partition("\n")
        title, body = _plain(heading), body.strip()
        if not heading.startswith("#") or not title or len(body.split()) < 12:
            continue
        # What is asked is taken away from the text, since a question has it in other words.
        without_heading = len(passages)
        key = f"{group}/{without_heading}"
        passages.append(whole_text("", section.heading[:-1], body))
        told, rest = _first_sentence(body)
        if not told:
            asked.append(Asked(key, f"{name} {title}", frozenset((without_heading,))))
            continue
        passages.append(whole_text("", section.heading, rest))
        one, other = frozenset((without_heading,)), frozenset((without_heading + 1,))
        asked.append(Asked(key, f"{name} {title}", one, other))
        asked.append(Asked(f"{key}/said", told, other, one))
    cut = [first_pieces(passage, EMBEDDED_PIECES) for passage in passages]
    return Pool("documents", DOCUMENTS, group, cut, asked) if len(passages) > 3 else None


def _first_sentence(body: str) -> tuple[str, str]:
    """(its words, the text after it), or nothing where one of the two is too short."""
    sentence, *after = _SENTENCE.split(body, maxsplit=1)
    told, rest = _plain(sentence).rstrip("."), "".join(after)
    enough = 5 <= len(told.split()) <= 30 and len(rest.split()) >= 15
    return (told, rest) if enough else ("", "")


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub(r"\1", text).split())
