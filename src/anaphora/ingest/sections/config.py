"""Settings by their top-level keys, and the commands and packages that manifests declare.

JSON, TOML, YAML, INI, Makefiles, .env files, go.mod. Small neighbours share a section, so that a
file of one-line settings does not fall into crumbs. Keys are read as far as a text goes: with
comments, trailing commas, or cut in half. A manifest that does not parse declares nothing.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from anaphora.ingest.sections.base import (
    SectionStart,
    Symbol,
    first_words,
    joined_names,
    lines_of,
)

SMALL_LINES = 4
"""A key of no more lines shares its section with small neighbours …"""
SHARED_LINES = 24
"""… until the section is this long."""

_TOML_TABLE = re.compile(r"[ \t]*\[{1,2}[ \t]*([^\[\]#,]+?)[ \t]*\]{1,2}[ \t]*(?:#.*)?\r?$")
_TOML_KEY = re.compile(r"([A-Za-z0-9_.\"'-]+)[ \t]*=")
_INI_SECTION = re.compile(r"\[([^\]]+)\]")
_INI_KEY = re.compile(r"([^\s#;:=\[][^:=]*?)[ \t]*[:=]")
_YAML_KEY = re.compile(
    r"(?!---(?:[ \t]|\r?$))"
    r"(\"[^\"]*\"|'[^']*'|[^\s#\-\[\]{}&*!|>%@`\"'][^#]*?|-[^\s#][^#]*?)[ \t]*:(?:[ \t]|\r?$)"
)
_ENV = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=")
_TARGET = re.compile(r"([^\s#:=.$%][^#:=$%]*?)[ \t]*::?(?![:=])")
_MAKE_VARIABLE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*(?::{0,3}|[?+!])=")
_GO_MOD = re.compile(r"(module|go|toolchain|require|replace|exclude|retract|tool)\b")
_JSON_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*|[\[\]{}]')


class _Key(NamedTuple):
    line: int
    name: str


_Finder = Callable[[Sequence[str]], Iterator[_Key]]


def config_starts(
    language: str, lines: Sequence[str]
) -> tuple[list[SectionStart], tuple[Symbol, ...]]:
    """The starts and keys of settings in one of the formats above; nothing for another language."""
    find = _FINDERS.get(language)
    keys = [key for key in find(lines) if key.name.strip()] if find is not None else []
    if not keys:
        return [], ()
    ends = [key.line - 1 for key in keys[1:]] + [len(lines)]
    symbols = tuple(
        Symbol(key.name, key.name, "key", key.line, max(key.line, end))
        for key, end in zip(keys, ends, strict=True)
    )
    # A key begins with the comments right above it.
    starts: list[int] = []
    floor = 1
    for key in keys:
        start = key.line
        while start > floor and lines[start - 2].lstrip().startswith(("#", "//", ";")):
            start -= 1
        starts.append(start)
        floor = key.line + 1
    sections: list[SectionStart] = []
    words_before = first_words(lines[: starts[0] - 1])
    # Brackets and a licence line alone go with the first key.
    if words_before and starts[0] > SMALL_LINES:
        sections.append(SectionStart(1, "lines", words_before))
    last_lines = [start - 1 for start in starts[1:]] + [len(lines)]
    group: list[int] = []
    for number, (start, end) in enumerate(zip(starts, last_lines, strict=True)):
        size = sum(1 for line in lines[start - 1 : end] if line.strip())
        together = end - starts[group[0]] + 1 if group else 0
        if group and (size > SMALL_LINES or together > SHARED_LINES):
            sections.append(_start_group(keys, starts, group))
            group = []
        if size > SMALL_LINES:
            sections.append(_start_group(keys, starts, [number]))
        else:
            group.append(number)
    if group:
        sections.append(_start_group(keys, starts, group))
    return sections, symbols


def target_names(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The targets of a Makefile that can be asked for by name, with their lines."""
    for number, line in enumerate(lines, start=1):
        match = _TARGET.match(line)
        if match is not None and not _MAKE_VARIABLE.match(line):
            for name in match[1].split():
                if "/" not in name:
                    yield name, number


def _start_group(keys: Sequence[_Key], starts: Sequence[int], group: Sequence[int]) -> SectionStart:
    names = list(dict.fromkeys(keys[number].name for number in group))
    return SectionStart(starts[group[0]], "key", joined_names(names))


def _find_json_keys(lines: Sequence[str]) -> Iterator[_Key]:
    """The keys of the outermost object, found by counting brackets."""
    depth = 0
    comment = False
    for number, line in enumerate(lines, start=1):
        at = 0
        while True:
            if comment:
                at = line.find("*/", at) + 2
                if at == 1:
                    break
                comment = False
            token = _JSON_TOKEN.search(line, at)
            if token is None:
                break
            at = token.end()
            if token[0] == "/*":
                comment = True
            elif token[0] in "[{":
                depth += 1
            elif token[0] in "]}":
                depth -= 1
            elif token[0][0] == '"' and depth == 1 and line[at:].lstrip().startswith(":"):
                name = token[0].strip('"')
                with suppress(ValueError):
                    name = str(json.loads(token[0]))
                yield _Key(number, name)


def _match_tables(
    head: re.Pattern[str], key: re.Pattern[str], *, strings: tuple[str, ...] = (), quotes: str = ""
) -> _Finder:
    """Tables, and the keys above the first of them; nothing within a string of several lines,
    which one of `strings` begins and ends."""

    def find(lines: Sequence[str]) -> Iterator[_Key]:
        inside = ""
        table = False
        for number, line in enumerate(lines, start=1):
            if inside:
                inside = "" if line.count(inside) % 2 else inside
                continue
            inside = next((mark for mark in strings if line.count(mark) % 2), "")
            if begun := head.match(line):
                table = True
                yield _Key(number, begun[1].strip())
            elif not table and (key_match := key.match(line)):
                yield _Key(number, key_match[1].strip(quotes) if quotes else key_match[1])

    return find


def _match_lines(*patterns: re.Pattern[str], quotes: str = "") -> _Finder:
    """The lines that begin with a key, the first group of one of `patterns`."""

    def find(lines: Sequence[str]) -> Iterator[_Key]:
        for number, line in enumerate(lines, start=1):
            matches = (pattern.match(line) for pattern in patterns)
            if key := next(filter(None, matches), None):
                yield _Key(number, key[1].strip(quotes) if quotes else key[1])

    return find


_FINDERS: Final[Mapping[str, _Finder]] = {
    "json": _find_json_keys,
    "toml": _match_tables(_TOML_TABLE, _TOML_KEY, strings=('"""', "'''"), quotes="\"'"),
    "yaml": _match_lines(_YAML_KEY, quotes="\"'"),
    "ini": _match_tables(_INI_SECTION, _INI_KEY),
    "env": _match_lines(_ENV),
    "makefile": _match_lines(_MAKE_VARIABLE, _TARGET),
    "gomod": _match_lines(_GO_MOD),
}


_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_REQUIREMENTS_FILE = re.compile(r"(?:requirements|constraints)[\w.-]*\.(?:txt|in)$")
_GO_REQUIRE = re.compile(r"^(?:require\s+)?\s*([\w.-]+\.[\w./~-]+)\s+v\d", re.MULTILINE)
_GEM = re.compile(
    r"^\s*(?:gem|\w+\.add_(?:\w+_)?dependency)[\s(]+[\"']([\w.-]+)[\"']", re.MULTILINE
)
_MAVEN = re.compile(r"<dependency>(.*?)</dependency>", re.DOTALL)
_ARTIFACT = re.compile(r"<(groupId|artifactId)>\s*([^<\s]+)\s*</")
_NUGET = re.compile(r"<PackageReference\s+[^>]*Include=\"([^\"]+)\"")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)

_Reader = Callable[[str], Iterator[str]]


def commands_of(name: str, text: str) -> tuple[str, ...]:
    """The commands that a file declares, as they are typed."""
    return _read_declared(_COMMANDS, name.lower(), text)


def packages_of(name: str, text: str) -> tuple[str, ...]:
    """The packages that a file declares as dependencies, without versions."""
    lower_name = name.lower()
    if _REQUIREMENTS_FILE.search(lower_name):
        lower_name = "requirements.txt"
    elif lower_name.endswith((".gemspec", ".csproj")):
        lower_name = lower_name.rpartition(".")[2]
    return _read_declared(_PACKAGES, lower_name, text)


def _read_declared(readers: Mapping[str, _Reader], name: str, text: str) -> tuple[str, ...]:
    read = readers.get(name)
    if read is None:
        return ()
    try:
        return tuple(dict.fromkeys(declared_name for declared_name in read(text) if declared_name))
    except (ValueError, configparser.Error, RecursionError):
        return ()


def _find_table(table: object, *keys: str) -> Mapping[str, Any]:
    """The table at `keys` within a parsed file; an empty one if anything else is there."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


def _read_keys(load: Callable[[str], Any], paths: str, command: str = "{}") -> _Reader:
    """The keys of the tables at `paths` (words, with dots between keys), each as in `command`."""

    def read(text: str) -> Iterator[str]:
        parsed_config = load(text)
        for path in paths.split():
            yield from map(command.format, _find_table(parsed_config, *path.split(".")))

    return read


def _find_by(pattern: re.Pattern[str]) -> _Reader:
    return lambda text: iter(pattern.findall(text))


def _parse_requirement(written: str) -> str:
    match = _REQUIREMENT.match(written)
    return match[1] if match is not None else ""


def _read_pyproject_packages(text: str) -> Iterator[str]:
    parsed_toml = tomllib.loads(text)
    project = _find_table(parsed_toml, "project")
    groups = [project.get("dependencies")]
    groups += _find_table(project, "optional-dependencies").values()
    groups += _find_table(parsed_toml, "dependency-groups").values()
    groups.append(_find_table(parsed_toml, "build-system").get("requires"))
    for group in groups:
        if isinstance(group, list):
            yield from (_parse_requirement(text) for text in group if isinstance(text, str))
    poetry = _find_table(parsed_toml, "tool", "poetry")
    for table in (poetry, *_find_table(poetry, "group").values()):
        for key in ("dependencies", "dev-dependencies"):
            yield from (name for name in _find_table(table, key) if name != "python")


def _parse_setup_cfg(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return parser


def _read_setup_cfg_packages(text: str) -> Iterator[str]:
    parser = _parse_setup_cfg(text)
    groups = [parser.get("options", "install_requires", fallback="")]
    if parser.has_section("options.extras_require"):
        groups += [requirements or "" for _, requirements in parser.items("options.extras_require")]
    for group in groups:
        yield from map(_parse_requirement, group.replace(";", "\n;").split("\n"))


def _read_requirements(text: str) -> Iterator[str]:
    for line in lines_of(text):
        if not line.lstrip().startswith(("#", "-")) and "://" not in line.partition("@")[0]:
            yield _parse_requirement(line)


def _read_npm_commands(text: str) -> Iterator[str]:
    yield from _read_keys(json.loads, "scripts", "npm run {}")(text)
    parsed_json = json.loads(text)
    yield from _find_table(parsed_json, "bin")
    if isinstance(parsed_json, dict) and isinstance(parsed_json.get("bin"), str):
        yield str(parsed_json.get("name", "")).rpartition("/")[2]


def _read_cargo_packages(text: str) -> Iterator[str]:
    parsed_toml = tomllib.loads(text)
    for table in (
        parsed_toml,
        _find_table(parsed_toml, "workspace"),
        *_find_table(parsed_toml, "target").values(),
    ):
        for key in ("dependencies", "dev-dependencies", "build-dependencies"):
            yield from _find_table(table, key)


def _read_make_commands(text: str) -> Iterator[str]:
    yield from (f"make {name}" for name, _ in target_names(lines_of(text)))


def _read_maven_packages(text: str) -> Iterator[str]:
    for block in _MAVEN.findall(_COMMENT.sub("", text)):
        parts = dict(_ARTIFACT.findall(block))
        yield ":".join(parts[key] for key in ("groupId", "artifactId") if key in parts)


_COMMANDS: Final[Mapping[str, _Reader]] = {
    "pyproject.toml": _read_keys(
        tomllib.loads, "project.scripts project.gui-scripts tool.poetry.scripts"
    ),
    "setup.cfg": lambda text: (
        line.partition("=")[0].strip()
        for line in _parse_setup_cfg(text)
        .get("options.entry_points", "console_scripts", fallback="")
        .split("\n")
    ),
    "package.json": _read_npm_commands,
    "composer.json": _read_keys(json.loads, "scripts", "composer {}"),
    "cargo.toml": lambda text: (
        str(_find_table(binary).get("name", "")) for binary in tomllib.loads(text).get("bin", [])
    ),
    "makefile": _read_make_commands,
    "gnumakefile": _read_make_commands,
}
_PACKAGES: Final[Mapping[str, _Reader]] = {
    "pyproject.toml": _read_pyproject_packages,
    "setup.cfg": _read_setup_cfg_packages,
    "requirements.txt": _read_requirements,
    "pipfile": _read_keys(tomllib.loads, "packages dev-packages"),
    "package.json": _read_keys(
        json.loads, "dependencies devDependencies peerDependencies optionalDependencies"
    ),
    "composer.json": lambda text: (
        name for name in _read_keys(json.loads, "require require-dev")(text) if "/" in name
    ),
    "cargo.toml": _read_cargo_packages,
    "go.mod": _find_by(_GO_REQUIRE),
    "gemfile": _find_by(_GEM),
    "gemspec": _find_by(_GEM),
    "pom.xml": _read_maven_packages,
    "csproj": _find_by(_NUGET),
}
