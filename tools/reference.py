"""Builds docs/reference/ from the code (`make reference`).

In: the package as it is imported. Out: pages of Markdown, and the stub of the async API; all are
committed. `--check` writes nothing and fails if one of them does not match the code.

    python tools/reference.py
    python tools/reference.py --check
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from anaphora.calls.operation import Operation
    from anaphora.calls.parameters import CallParameter

ROOT: Final = Path(__file__).resolve().parents[1]
OUT: Final = ROOT / "docs" / "reference"
MADE: Final = "<!-- Built by tools/reference.py (`make reference`): change the code instead. -->"
WIDTH: Final = 96


def main(arguments: list[str]) -> int:
    """Write the pages and the stub, or with `--check` compare them; 1 if one differs."""
    parser = argparse.ArgumentParser(description="Build docs/reference from the code.")
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(arguments)
    # Run as a script, this file sees its own folder but not the one above it.
    sys.path.insert(0, str(ROOT))
    from tools import async_stub

    built = {OUT / name: f"{MADE}\n\n{make().strip()}\n" for name, make in PAGES.items()}
    built[async_stub.PLACE] = async_stub.stub()
    differing = [
        path for path, text in built.items() if not path.exists() or path.read_text("utf-8") != text
    ]
    for path in differing:
        if options.check:
            print(f"{path.relative_to(ROOT)} does not match the code: make reference")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(built[path], "utf-8")
        print(f"wrote {path.name}")
    return 1 if options.check and differing else 0


def doc_of(thing: object) -> str:
    """A docstring as Markdown: what is indented in it is code."""
    said = inspect.cleandoc(getattr(thing, "__doc__", None) or "")
    parts: list[str] = []
    for part in re.split(r"\n\n+", said):
        if all(line.startswith("    ") for line in part.split("\n")):
            code = inspect.cleandoc(part)
            parts.append(f"```text\n{code}\n```")
        elif part.startswith(("- ", "1. ")):
            parts.append(part)
        else:
            # Angle brackets of a text must not become tags.
            parts.append(re.sub(r"\s*\n\s*", " ", part).replace("<", "&lt;"))
    return "\n\n".join(parts)


# Python.


def signature(name: str, call: Callable[..., Any], *, prefix: str = "def ") -> str:
    """A signature as the code has it, in lines that can be read."""
    found = inspect.signature(call)
    given = [p for p in found.parameters.values() if p.name not in {"self", "cls"}]
    shown = found.replace(parameters=given)
    parts = _parameters(given)
    back = f" -> {_plain(shown.return_annotation)}" if _has(shown.return_annotation) else ""
    line = f"{prefix}{name}({', '.join(parts)}){back}"
    if len(line) <= WIDTH:
        return line
    inner = "".join(f"    {part},\n" for part in parts)
    return f"{prefix}{name}(\n{inner}){back}"


def _parameters(given: list[inspect.Parameter]) -> list[str]:
    parts: list[str] = []
    starred = False
    for one in given:
        if one.kind is one.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        mark = "*" * ((one.kind is one.VAR_POSITIONAL) + 2 * (one.kind is one.VAR_KEYWORD))
        starred = starred or mark == "*"
        said = f"{mark}{one.name}"
        if _has(one.annotation):
            said += f": {_plain(one.annotation)}"
        if one.default is not one.empty:
            # An object without a form of its own has its address in it.
            default = re.sub(r"<[\w.]*?(\w+) object at 0x\w+>", r"\1()", repr(one.default))
            said += f" = {default}" if _has(one.annotation) else f"={default}"
        parts.append(said)
    return parts


def _has(annotation: object) -> bool:
    return annotation is not inspect.Parameter.empty


def _plain(annotation: object) -> str:
    said = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None)
    return (said or str(annotation)).replace("builtins.", "")


def method(name: str, call: Callable[..., Any], level: str = "###") -> str:
    """One method or function: heading, signature, docstring."""
    prefix = "async def " if inspect.iscoroutinefunction(call) else "def "
    code = signature(name, call, prefix=prefix)
    described = vars(call).get("operation")
    parts = [doc_of(call), *([_described(described)] if described else [])]
    text = "\n\n".join(part for part in parts if part)
    return f"{level} {name}\n\n```py\n{code}\n```\n\n{text}\n"


def _described(operation: Operation) -> str:
    """The right that a call takes, its request, and its parameters with their bounds."""
    lines = [
        f"- `{parameter.name}`: {parameter.described.meaning}{_bounds(parameter)}"
        for parameter in operation.parameters.values()
        if parameter.described.meaning
    ]
    request = f" Request: `{operation.http.request}`." if operation.http else ""
    head = f"Right: `{operation.right}`.{request}"
    return "\n\n".join([head, "\n".join(lines)]) if lines else head


def _bounds(parameter: CallParameter) -> str:
    """What a request may give a number."""
    least, most = parameter.described.least, parameter.described.most
    if parameter.annotation not in (int, float) or least is None:
        return ""
    return f" {least:,g} or more." if most is None else f" {least:,g} to {most:,.0f} in a request."


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public members that a class itself states, in its order."""
    for name, value in vars(kind).items():
        if not name.startswith("_"):
            yield name, value


def methods(kind: type, level: str = "###") -> str:
    """All public methods and properties of a class."""
    parts: list[str] = []
    for name, value in members(kind):
        if isinstance(value, (classmethod, staticmethod)):
            parts.append(method(name, value.__func__, level))
        elif isinstance(value, property):
            back = inspect.signature(value.fget).return_annotation if value.fget else ""
            parts.append(
                f"{level} {name}\n\n```py\n{name}: {_plain(back)}\n```\n\n{doc_of(value)}\n"
            )
        elif inspect.isfunction(value):
            parts.append(method(name, value, level))
    return "\n".join(parts)


def values(module: ModuleType, names: Iterable[str]) -> str:
    """Frozen values: their docstring and fields."""
    parts: list[str] = []
    for name in names:
        kind = getattr(module, name)
        if not (inspect.isclass(kind) and dataclasses.is_dataclass(kind)):
            continue
        lines = [f"class {name}:"]
        lines += [
            f"    {field.name}: {_plain(field.type)}{_default(field)}"
            for field in dataclasses.fields(kind)
        ]
        code = "\n".join(lines)
        parts.append(f"### {name}\n\n{doc_of(kind)}\n\n```py\n{code}\n```\n")
    return "\n".join(parts)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f" = {field.default!r}"
    if field.default_factory is not dataclasses.MISSING:
        made = field.default_factory()
        return f" = {made!r}" if isinstance(made, (dict, tuple)) else f" = {type(made).__name__}()"
    return ""


def python() -> str:
    """The public API of the package."""
    import anaphora
    from anaphora import keys, render_recall, testing
    from anaphora.api import aio, memory
    from anaphora.api.memories import LastingMemories
    from anaphora.client.memory import FOLDER_REASON, NOT_OFFERED, REQUESTS, RemoteMemory
    from anaphora.embed import base
    from anaphora.features.sync import manager
    from anaphora.registry import FeatureCalls
    from anaphora.store import tokens
    from anaphora.store.threads.conversations import Conversations
    from anaphora.store.threads.file_store import ConversationStore, conversations_dir
    from anaphora.values import models

    public_values = [
        name
        for name in anaphora.__all__
        if ".values" in getattr(getattr(anaphora, name), "__module__", "")
    ]
    exported = ", ".join(f"`{name}`" for name in anaphora.__all__)
    calls_by_feature = {
        calls.__module__.split(".")[2].replace("_", " "): calls for calls in FeatureCalls.__bases__
    }
    features = ", ".join(f"[{name}](#memory-{name.replace(' ', '-')})" for name in calls_by_feature)
    head = f"""# Python

`import anaphora` gives {exported}. Other names say in their heading which module they are in.
Errors: [errors.md](errors.md). Environment variables: [configuration.md](configuration.md).
Filters: [../filters.md](../filters.md).

- [Memory](#memory): [lasting memories](#lasting-memories), {features},
  [conversations](#conversations)
- [AsyncMemory](#asyncmemory), [RemoteMemory](#remotememory), [render_recall](#render_recall),
  [ConversationStore](#conversationstore)
- [Tokens](#tokens), [sync](#sync), [keys](#keys-anaphorakeys)
- [Models and embedders](#models-and-embedders)
- [Values](#values)
"""
    return "\n".join(
        (
            head,
            f"## Memory\n\n{doc_of(memory.Memory)}\n\n{methods(memory.Memory)}",
            f"## Lasting memories\n\nMethods of `Memory`.\n\n{methods(LastingMemories)}",
            *(f"## Memory: {name}\n\n{methods(calls)}" for name, calls in calls_by_feature.items()),
            "## Conversations\n\nWhat `Memory.conversations` gives.\n\n"
            f"{doc_of(Conversations)}\n\n{methods(Conversations)}",
            f"## AsyncMemory\n\n{doc_of(aio)}\n\n{doc_of(aio.AsyncMemory)}\n\n"
            "Every method has the signature and meaning of the one of `Memory`, awaited; `open`, "
            "`scoped`, `on` and the properties are not awaited. What `open` gives can be awaited "
            "or entered, `conversations` has the methods of [conversations](#conversations), "
            "awaited.\n",
            f"## RemoteMemory\n\n{doc_of(RemoteMemory)}\n\n"
            "It is a `Memory`, with the methods of one, over a server "
            "([how](../how-to/client.md)).\n\n"
            f"{method('connect', RemoteMemory.connect)}\n"
            "### What a server does not offer\n\n"
            + "".join(f"- `{name}`: {why}\n" for name, why in NOT_OFFERED.items())
            + "".join(
                f"- `{folder}` of `{call}`: {FOLDER_REASON}\n"
                for call, http in REQUESTS.items()
                for folder in http.folders
            ),
            method("render_recall", render_recall, "##"),
            f"## ConversationStore\n\n{doc_of(ConversationStore)}\n\n"
            f"```py\n{signature('ConversationStore', ConversationStore, prefix='class ')}\n```\n\n"
            "It has the methods of [conversations](#conversations).\n",
            method("conversations_dir", conversations_dir),
            f"## Tokens\n\n`Memory.tokens`. {doc_of(tokens.Tokens)}\n\n{methods(tokens.Tokens)}\n"
            f"{values(tokens, ('Token', 'NewToken'))}",
            f"## Sync\n\n`Memory.sync`. {doc_of(manager.Sync)}\n\n{methods(manager.Sync)}",
            f"## Keys: anaphora.keys\n\n{doc_of(keys)}\n\n"
            + "\n".join(
                method(name, getattr(keys, name))
                for name in keys.__all__
                if inspect.isfunction(getattr(keys, name))
            ),
            "## Models and embedders\n\nProtocols for what a program brings itself.\n\n"
            f"### ModelRole\n\n{doc_of(models.ModelRole)}\n\n"
            f"{methods(models.ModelRole, '####')}\n"
            f"{values(models, ('Message', 'Reply'))}\n"
            f"### Embedder\n\n{doc_of(base.Embedder)}\n\n"
            f"{methods(base.Embedder, '####')}",
            f"## Tests of your own: anaphora.testing\n\n{doc_of(testing)}\n\n"
            + "\n".join(
                method(name, getattr(testing, name))
                for name in testing.__all__
                if inspect.isfunction(getattr(testing, name))
            )
            + f"\n### Clock\n\n{doc_of(testing.Clock)}\n\n{methods(testing.Clock, '####')}\n"
            f"### ScriptedModel\n\n{doc_of(testing.ScriptedModel)}\n\n"
            f"### WordHashingEmbedder\n\n{doc_of(testing.WordHashingEmbedder)}\n",
            "## Values\n\nFrozen. They come back from the methods above.\n\n"
            + values(anaphora, [*public_values, "Backup", "Exported"]),
        )
    )


# The command line.


def cli() -> str:
    """Every command, its options, and the exit codes."""
    import typer.main

    from anaphora.surfaces.cli import output, where
    from anaphora.surfaces.cli.app import app
    from anaphora.surfaces.cli.unexpected import EXIT_UNEXPECTED

    root: Any = typer.main.get_command(app)
    parts = [
        "# Command line\n\n"
        "`anaphora [OPTIONS] COMMAND …`. The options of the program stand before the command; "
        "`--json` after it gives what the method of the same name gives in Python, as JSON.\n",
        "## Options of the program\n\n" + _options(root.params),
        "## Exit codes\n\n| code | meaning |\n|---:|---|\n"
        "| 0 | done |\n| 1 | a check failed, you declined, or another error |\n"
        f"| {output.EXIT_INPUT} | the arguments or the input are invalid |\n"
        f"| {output.EXIT_NOT_FOUND} | the id does not exist |\n"
        f"| {output.EXIT_STORE} | stored data could not be read or written |\n"
        f"| {output.EXIT_PARTLY} | done, and something was reported |\n"
        f"| {EXIT_UNEXPECTED} | an unexpected error: [one line with an id]"
        "(../how-to/troubleshooting.md#something-went-wrong-an-incident) |\n"
        f"| {where.EXIT_INTERRUPTED} | you interrupted it |\n",
        "## Commands\n",
    ]
    for names, command in sorted(_commands(root, ()), key=lambda one: one[0]):
        called = " ".join(names)
        arguments = [p for p in command.params if type(p).__name__ == "TyperArgument"]
        shown = " ".join(_metavar(p) for p in arguments)
        parts.append(
            f"### {called}\n\n```text\nanaphora {called} [OPTIONS] {shown}".rstrip()
            + f"\n```\n\n{_prose(command.help)}\n\n{_options(command.params)}"
        )
    return "\n".join(parts)


def _commands(group: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*names, name))
        elif not command.hidden:
            yield (*names, name), command


def _metavar(argument: Any) -> str:
    said = argument.metavar or str(argument.name).upper()
    return said if argument.required else f"[{said}]"


def _options(given: Iterable[Any]) -> str:
    rows = []
    for one in given:
        if one.hidden or one.name in {"help", "version"}:
            continue
        is_argument = type(one).__name__ == "TyperArgument"
        called = _metavar(one) if is_argument else ", ".join((*one.opts, *one.secondary_opts))
        default = "" if one.default in (None, False) or callable(one.default) else f"{one.default}"
        if is_argument and one.required:
            default = "required"
        rows.append(f"| `{called}` | {_cell(one.help or '')} | {_cell(default)} |")
    if not rows:
        return ""
    return "| option | meaning | default |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _prose(text: str | None) -> str:
    return re.sub(r"\s*\n\s*", " ", inspect.cleandoc(text or ""))


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|").replace("<", "&lt;")


# HTTP.


def rest() -> str:
    """Every route of the server, from its OpenAPI document."""
    from anaphora import Memory
    from anaphora.features.server.serving import create_app
    from anaphora.surfaces.rest.options import ServerOptions

    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(folder, warm=False, embedder="hashing") as memory,
    ):
        found = create_app(memory, settings=ServerOptions(page=None)).openapi()
    parts = [
        "# HTTP\n\n`anaphora serve`. The same as OpenAPI 3.1: "
        "`GET /openapi.json`. Every route takes the header `Anaphora-Namespace` and, where a "
        "token is needed, `Authorization: Bearer …`. Errors are `application/problem+json` with "
        "the statuses of [errors.md](errors.md).\n"
    ]
    for path, item in sorted(found["paths"].items()):
        for verb, operation in sorted(item.items()):
            parts.append(_operation(path, verb, operation))
    parts.append("## Bodies and answers\n\nA field with `*` is required.\n")
    for name, schema in sorted(found["components"]["schemas"].items()):
        parts.append(_schema(name, schema))
    return "\n".join(parts)


def _operation(path: str, verb: str, operation: Mapping[str, Any]) -> str:
    lines = [f"## {verb.upper()} {path}", "", f"{operation.get('summary', '')}. "]
    lines[-1] += _prose(operation.get("description"))
    own = [p for p in operation.get("parameters", ()) if p["name"] != "Anaphora-Namespace"]
    if own:
        lines += ["", "| parameter | in | type | meaning |", "|---|---|---|---|"]
        for one in own:
            schema = one.get("schema") or one["content"]["application/json"]["schema"]
            star = "*" if one.get("required") else ""
            said = _cell(one.get("description") or schema.get("description") or "")
            lines.append(f"| `{one['name']}`{star} | {one['in']} | {_type(schema)} | {said} |")
    body = operation.get("requestBody", {}).get("content", {})
    for kind, content in body.items():
        lines += ["", f"Body ({kind}): {_type(content.get('schema', {}))}"]
    for status, answer in operation["responses"].items():
        if int(status) < 400:
            kinds = [
                _type(content.get("schema", {})) or f"`{kind}`"
                for kind, content in answer.get("content", {}).items()
            ]
            lines += ["", f"Answer {status}: {', '.join(kinds) or 'no JSON'}"]
    return "\n".join(lines) + "\n"


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for joint in ("anyOf", "oneOf", "allOf"):
        if joint in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[joint]))
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'anything'}"
    said = schema.get("type", "")
    bounds = [
        f"{sign} {schema[key]}"
        for key, sign in (("minimum", "≥"), ("maximum", "≤"), ("exclusiveMinimum", ">"))
        if key in schema
    ]
    kind = " or ".join(said) if isinstance(said, list) else str(said)
    return " ".join((kind, *bounds)).strip()


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    lines = [f"### {name}", "", _prose(schema.get("description"))]
    fields: Mapping[str, Any] = schema.get("properties", {})
    if fields:
        lines += ["", "| field | type | default | meaning |", "|---|---|---|---|"]
        for field, one in fields.items():
            star = "*" if field in schema.get("required", ()) else ""
            default = json.dumps(one["default"], ensure_ascii=False) if "default" in one else ""
            shown = f"`{default}`" if default else ""
            said = _cell(one.get("description") or "")
            lines.append(f"| `{field}`{star} | {_cell(_type(one))} | {shown} | {said} |")
    elif "enum" in schema or "oneOf" in schema:
        lines += ["", _type(schema)]
    return "\n".join(lines) + "\n"


# MCP.


def mcp() -> str:
    """Every tool of the server for coding agents."""
    from anaphora.surfaces.mcp_server.tools import all_tools

    parts = [
        "# MCP\n\n`anaphora mcp` (over HTTP with the extra `mcp`). A field with `*` is required; "
        "an argument that is not listed is refused. "
        "`--tools all` adds the tools that are not on by default.\n\n"
        "| tool | what it is for | default | reads only | destructive |\n"
        "|---|---|---|---|---|\n"
        + "\n".join(
            f"| [{t.name}](#{t.name}) | {_cell(t.description)} | {_yes(t.by_default)} | "
            f"{_yes(t.read_only)} | {_yes(t.destructive)} |"
            for t in all_tools().values()
        )
        + "\n"
    ]
    for tool in all_tools().values():
        lines = [f"## {tool.name}", "", tool.description]
        if tool.parameters:
            lines += ["", "| argument | type | default | meaning |", "|---|---|---|---|"]
        for name, schema in tool.parameters.items():
            star = "*" if name in tool.required else ""
            default = f"`{json.dumps(schema['default'])}`" if "default" in schema else ""
            said = _cell(schema.get("description", ""))
            lines.append(f"| `{name}`{star} | {_cell(_type(schema))} | {default} | {said} |")
        result = json.dumps(tool.result, indent=1, ensure_ascii=False)
        lines += ["", "<details><summary>Result, as JSON Schema</summary>", ""]
        lines += ["```json", result, "```", "", "</details>"]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


# Configuration and errors.


def configuration() -> str:
    """Every environment variable, and what the settings are without any."""
    from anaphora import settings as config

    rows = "\n".join(
        f"| `{one.name}` | {_cell(one.meaning)} | {_cell(one.default)} |"
        for one in config.VARIABLES
    )
    return f"""# Configuration

Arguments of `Memory.open` and options of the program win over these variables, those over what the
home remembers (`{config.SETTINGS_FILE}`), and that over the defaults.

| variable | meaning | default |
|---|---|---|
{rows}

An empty variable counts as not set, except that `ANAPHORA_HOME`, `ANAPHORA_CONVERSATIONS_DIR` and
`ANAPHORA_DATABASE`, which say where a memory lies, are refused when they are empty.

Everything else is an argument: [Memory.open](python.md#open), [the command line](cli.md).
"""


def errors() -> str:
    """Every error, with its exit code and HTTP status."""
    from anaphora import errors as e
    from anaphora.surfaces.cli.output import exit_code
    from anaphora.surfaces.next_steps import STEPS
    from anaphora.surfaces.rest import problems

    tree = (e.__doc__ or "").split("\n\n")[1]
    rows = []
    for name in sorted(e.__all__):
        kind: type[e.AnaphoraError] = getattr(e, name)
        blank = kind.__new__(kind)
        status = next(
            (status for of, status, _ in problems._STATUSES if isinstance(blank, of)), 500
        )
        said = _cell(doc_of(kind).replace("&lt;", "<"))
        step = _cell(next(STEPS[one] for one in kind.__mro__ if one in STEPS))
        rows.append(f"| `{name}` | {exit_code(blank)} | {status} | {said} | {step} |")
    listed = "\n".join(rows)
    return f"""# Errors

Every error that is raised on purpose is an `AnaphoraError` of `anaphora.errors`. The command line
shows the next step under the message, and an HTTP answer has it as `next`; where the error knows
more (which field, which kind of thing), so does the step. More about each:
[troubleshooting](../how-to/troubleshooting.md).

```text
{tree}
```

| error | exit code | HTTP status | meaning | next step |
|---|---:|---:|---|---|
{listed}
"""


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "python.md": python,
    "cli.md": cli,
    "rest.md": rest,
    "mcp.md": mcp,
    "configuration.md": configuration,
    "errors.md": errors,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
