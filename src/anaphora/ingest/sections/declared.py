"""What a project's own files declare: commands that can be run, packages that it depends on.

In: a file's name and text. Out: names in the order in which they are written. A file that does not
parse declares nothing. It looks at no other file and asks no registry.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from anaphora.ingest.sections.base import lines_of
from anaphora.ingest.sections.config import target_names

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
_NPM = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_CARGO = ("dependencies", "dev-dependencies", "build-dependencies")

Values = Mapping[str, Any]


def commands_of(name: str, text: str) -> tuple[str, ...]:
    """The commands that a file declares, as they are typed."""
    return _declared(_COMMANDS, name, text)


def packages_of(name: str, text: str) -> tuple[str, ...]:
    """The packages that a file declares as dependencies, without versions."""
    lowered = name.lower()
    if _REQUIREMENTS_FILE.search(lowered):
        lowered = "requirements.txt"
    elif lowered.endswith((".gemspec", ".csproj")):
        lowered = lowered.rpartition(".")[2]
    return _declared(_PACKAGES, lowered, text)


def _declared(
    readers: Mapping[str, Callable[[str], Iterator[str]]], name: str, text: str
) -> tuple[str, ...]:
    read = readers.get(name.lower())
    if read is None:
        return ()
    try:
        return tuple(dict.fromkeys(each for each in read(text) if each))
    except (ValueError, configparser.Error, RecursionError):
        return ()


def _table(value: object, *keys: str) -> Values:
    """The table at `keys` within a parsed file; an empty one if anything else is there."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> Iterator[str]:
    yield from (each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _requirement(written: str) -> str:
    found = _REQUIREMENT.match(written)
    return found[1] if found is not None else ""


def _pyproject_commands(text: str) -> Iterator[str]:
    parsed = tomllib.loads(text)
    yield from _table(parsed, "project", "scripts")
    yield from _table(parsed, "project", "gui-scripts")
    yield from _table(parsed, "tool", "poetry", "scripts")


def _pyproject_packages(text: str) -> Iterator[str]:
    parsed = tomllib.loads(text)
    project = _table(parsed, "project")
    groups = [project.get("dependencies")]
    groups += _table(project, "optional-dependencies").values()
    groups += _table(parsed, "dependency-groups").values()
    groups.append(_table(parsed, "build-system").get("requires"))
    for group in groups:
        yield from (_requirement(each) for each in _strings(group))
    poetry = _table(parsed, "tool", "poetry")
    tables = [poetry, *_table(poetry, "group").values()]
    for table in tables:
        for key in ("dependencies", "dev-dependencies"):
            yield from (name for name in _table(table, key) if name != "python")


def _setup_cfg(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return parser


def _setup_cfg_commands(text: str) -> Iterator[str]:
    written = _setup_cfg(text).get("options.entry_points", "console_scripts", fallback="")
    yield from (line.partition("=")[0].strip() for line in written.split("\n"))


def _setup_cfg_packages(text: str) -> Iterator[str]:
    parser = _setup_cfg(text)
    groups = [parser.get("options", "install_requires", fallback="")]
    if parser.has_section("options.extras_require"):
        groups += [value or "" for _, value in parser.items("options.extras_require")]
    for group in groups:
        yield from (_requirement(line) for line in group.replace(";", "\n;").split("\n"))


def _requirements(text: str) -> Iterator[str]:
    for line in lines_of(text):
        if not line.lstrip().startswith(("#", "-")) and "://" not in line.partition("@")[0]:
            yield _requirement(line)


def _pipfile(text: str) -> Iterator[str]:
    parsed = tomllib.loads(text)
    yield from _table(parsed, "packages")
    yield from _table(parsed, "dev-packages")


def _npm_commands(text: str) -> Iterator[str]:
    parsed = json.loads(text)
    yield from (f"npm run {name}" for name in _table(parsed, "scripts"))
    yield from _table(parsed, "bin")
    if isinstance(parsed, dict) and isinstance(parsed.get("bin"), str):
        yield str(parsed.get("name", "")).rpartition("/")[2]


def _npm_packages(text: str) -> Iterator[str]:
    parsed = json.loads(text)
    for key in _NPM:
        yield from _table(parsed, key)


def _composer_commands(text: str) -> Iterator[str]:
    yield from (f"composer {name}" for name in _table(json.loads(text), "scripts"))


def _composer_packages(text: str) -> Iterator[str]:
    parsed = json.loads(text)
    for key in ("require", "require-dev"):
        yield from (name for name in _table(parsed, key) if "/" in name)


def _cargo_commands(text: str) -> Iterator[str]:
    parsed = tomllib.loads(text)
    for binary in parsed.get("bin", []):
        yield str(_table(binary).get("name", "")) if isinstance(binary, dict) else ""


def _cargo_packages(text: str) -> Iterator[str]:
    parsed = tomllib.loads(text)
    tables = [parsed, _table(parsed, "workspace"), *_table(parsed, "target").values()]
    for table in tables:
        for key in _CARGO:
            yield from _table(table, key)


def _make_commands(text: str) -> Iterator[str]:
    yield from (f"make {name}" for name, _ in target_names(lines_of(text)))


def _maven_packages(text: str) -> Iterator[str]:
    for block in _MAVEN.findall(_COMMENT.sub("", text)):
        parts = dict(_ARTIFACT.findall(block))
        yield ":".join(parts[key] for key in ("groupId", "artifactId") if key in parts)


def _found_by(pattern: re.Pattern[str]) -> Callable[[str], Iterator[str]]:
    return lambda text: iter(pattern.findall(text))


_COMMANDS: Final[Mapping[str, Callable[[str], Iterator[str]]]] = {
    "pyproject.toml": _pyproject_commands,
    "setup.cfg": _setup_cfg_commands,
    "package.json": _npm_commands,
    "composer.json": _composer_commands,
    "cargo.toml": _cargo_commands,
    "makefile": _make_commands,
    "gnumakefile": _make_commands,
}
_PACKAGES: Final[Mapping[str, Callable[[str], Iterator[str]]]] = {
    "pyproject.toml": _pyproject_packages,
    "setup.cfg": _setup_cfg_packages,
    "requirements.txt": _requirements,
    "pipfile": _pipfile,
    "package.json": _npm_packages,
    "composer.json": _composer_packages,
    "cargo.toml": _cargo_packages,
    "go.mod": _found_by(_GO_REQUIRE),
    "gemfile": _found_by(_GEM),
    "gemspec": _found_by(_GEM),
    "pom.xml": _maven_packages,
    "csproj": _found_by(_NUGET),
}
