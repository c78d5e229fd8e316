"""Every tool of the server for coding agents, over raw JSON-RPC on standard input and output.

The tools are those that the server lists. Each is called with the arguments of its sample in
`mcp_samples.py` and its answer checked, then with arguments that its own schema forbids.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tools.gate.environments import Environment, User
from tools.gate.report import Report, must
from tools.gate.surfaces.mcp_samples import SAMPLES

__all__ = ["Session", "check_mcp", "mcp_session", "wrong_arguments"]

_PATIENCE: Final = 60.0
_INTERNAL: Final = -32603
# A value that no schema of this type accepts.
_OTHER_TYPE: Final[Mapping[str, Any]] = {
    "string": 7,
    "integer": "many",
    "number": "much",
    "boolean": "perhaps",
    "array": 7,
    "object": "x",
}
_BERTHS: Final = '''"""Berths of the harbour."""


def take_berth(connection):
    """Take the oldest free berth."""
    return connection.execute("SELECT 1").fetchone()
'''
# What only a programmer can read.
_NOT_WORDS: Final = ("Traceback", "ModuleNotFoundError", "AttributeError", "TypeError", "KeyError")


@dataclass(slots=True)
class Session:
    """A client of the server: it asks, and has what earlier answers gave it."""

    process: subprocess.Popen[str]
    lines: queue.Queue[str | None]
    project: Path
    noted: dict[str, Any] = field(default_factory=dict)
    last: dict[str, dict[str, Any]] = field(default_factory=dict)
    _number: int = 0

    def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The response to a request, whole."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": parameters})
        while True:
            line = self.lines.get(timeout=_PATIENCE)
            must(line is not None, "the server ended")
            message: dict[str, Any] = json.loads(line or "")
            if message.get("id") == self._number and "method" not in message:
                return message

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """The data of an answer; the tool must succeed."""
        self.last[tool] = arguments
        response = self.request("tools/call", name=tool, arguments=arguments)
        must("result" in response, f"{tool} ends in a protocol error: {response.get('error')}")
        result = response["result"]
        must(not result.get("isError"), f"{tool} is refused: {result.get('content')}")
        must(result["content"][0]["text"].strip(), f"{tool} has no text")
        answer = result["structuredContent"]
        return answer.get("data", answer)

    def refusal(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The words in which a tool refuses; it must not succeed, nor end in a protocol error."""
        response = self.request("tools/call", name=tool, arguments=arguments)
        shown = json.dumps(arguments)[:200]
        must("result" in response, f"{tool}({shown}): protocol error {response.get('error')}")
        result = response["result"]
        must(result.get("isError"), f"{tool}({shown}) is answered")
        words: str = result["content"][0]["text"]
        must(len(words.split()) >= 3, f"{tool}({shown}): {words!r}")
        must(not any(name in words for name in _NOT_WORDS), f"{tool}({shown}): {words!r}")
        return words


@contextmanager
def mcp_session(user: User, *options: str) -> Iterator[Session]:
    """A server after its handshake."""
    project = user.work / "harbour"
    with (user.folder / "mcp.log").open("w") as log:
        process = subprocess.Popen(
            user.command("anaphora", "mcp", *options), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=log, text=True, cwd=user.work, env=user.variables,
        )  # fmt: skip
        lines: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_read, args=(process, lines), daemon=True)
        reader.start()
        session = Session(process, lines, project)
        try:
            hello = session.request(
                "initialize", protocolVersion="2025-06-18", capabilities={},
                clientInfo={"name": "gate", "version": "1"},
            )  # fmt: skip
            must("serverInfo" in hello.get("result", {}), f"initialize: {hello}")
            session.send({"method": "notifications/initialized"})
            yield session
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            reader.join(30)
            assert process.stdout is not None
            process.stdout.close()


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def check_mcp(environment: Environment, report: Report) -> None:
    """What clients see by default, then every tool."""
    with mcp_session(environment.user("mcp")) as session:
        with report.check("default tools: what is stored is recalled"):
            names = [tool["name"] for tool in session.request("tools/list")["result"]["tools"]]
            must({"store_memory", "recall"} <= set(names), f"listed: {names}")
            session.call("store_memory", content="The harbour office closes at half past five.")
            rows = session.call("recall", question="until when is the harbour office open?")
            must("half past five" in json.dumps(rows), f"recalled {rows}")
        with report.check("an unknown tool is refused, not crashed on"):
            response = session.request("tools/call", name="no_such_tool", arguments={})
            code = response.get("error", {}).get("code")
            must(code != _INTERNAL, f"{response}")
            must(code is not None or response["result"]["isError"], f"{response}")
    user = environment.user("mcp")
    (user.work / "harbour").mkdir()
    (user.work / "harbour" / "berths.py").write_text(_BERTHS)
    user.run("anaphora", "project", "index", "harbour")
    with mcp_session(user, "--tools", "all") as session:
        listed = session.request("tools/list")["result"]["tools"]
        tools = {tool["name"]: tool["inputSchema"] for tool in listed}
        for name in sorted(tools, key=_place):
            with report.check(f"{name}: right arguments"):
                must(name in SAMPLES, f"{name} has no sample in tools/gate/surfaces/mcp_samples.py")
                SAMPLES[name](session)
        for name, schema in tools.items():
            wrong = list(wrong_arguments(schema, session.last.get(name, {})))
            with report.check(f"{name}: wrong arguments, {len(wrong)} ways"):
                must(name in session.last, "the sample did not come to call it")
                for argument, arguments in wrong:
                    words = session.refusal(name, arguments)
                    must(
                        argument in words, f"{name}({arguments}): {words!r} does not say {argument}"
                    )
                for argument in schema["properties"].keys() & {"id", "otherId"}:
                    session.refusal(name, {**session.last.get(name, {}), argument: "no-such-id"})


def _place(name: str) -> int:
    """Samples build on each other, in their order."""
    return list(SAMPLES).index(name) if name in SAMPLES else len(SAMPLES)


def wrong_arguments(
    schema: Mapping[str, Any], right: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arguments that the schema forbids, each with the name of what is wrong in it."""
    yield "nonsense", {**right, "nonsense": 1}
    for name in schema.get("required", ()):
        yield name, {key: value for key, value in right.items() if key != name}
    for name, known in schema["properties"].items():
        for value in _wrong_values(known):
            yield name, {**right, name: value}


def _wrong_values(known: Mapping[str, Any]) -> Iterator[Any]:
    kind = known.get("type")
    if isinstance(kind, str):
        yield _OTHER_TYPE[kind]
    elif "anyOf" in known:
        yield 7
    if "enum" in known:
        yield "no such choice"
    if known.get("items", {}).get("type") == "string" or "enum" in known.get("items", {}):
        yield [7]
    if "minimum" in known:
        yield known["minimum"] - 1
    if "maximum" in known:
        yield known["maximum"] + 1
    if known.get("minLength"):
        yield ""
