"""The client's side of the Model Context Protocol over pipes, as far as a trial needs it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final

_STDERR: Final = 2_000


class TrialFailed(Exception):
    """What went wrong in a trial."""


class ServerDialogue:
    """Starts a server and asks it, waiting at most `patience` seconds for each answer."""

    def __init__(
        self,
        words: tuple[str, ...],
        environ: Mapping[str, str],
        folder: str | None,
        patience: float,
    ) -> None:
        self._patience = patience
        self._number = 0
        self._answers: SimpleQueue[bytes | None] = SimpleQueue()
        self._said = b""
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what the client will run
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environ),
                cwd=folder and os.path.expanduser(folder),  # noqa: PTH111
            )
        except OSError as error:
            raise TrialFailed(f"{words[0]} cannot be started: {error.strerror}") from error
        self._readers = [
            threading.Thread(target=read, daemon=True) for read in (self._read, self._read_errors)
        ]
        for reader in self._readers:
            reader.start()

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a request. Raises `TrialFailed`."""
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._send(request)
        end = time.monotonic() + self._patience
        while True:
            try:
                line = self._answers.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                reason = f"{method} was not answered in time{self._last_words()}"
                raise TrialFailed(reason) from None
            if line is None:
                self._readers[1].join(1)
                reason = f"the server ended without answering {method}{self._last_words()}"
                raise TrialFailed(reason)
            try:
                answer = json.loads(line)
            except ValueError:
                text = line.decode(errors="replace").strip()[:200]
                raise TrialFailed(f"it printed what is not of the protocol: {text}") from None
            is_answer = isinstance(answer, dict) and "method" not in answer
            if not is_answer or answer.get("id") != self._number:
                continue
            if "error" in answer:
                message = answer["error"].get("message", answer["error"])
                raise TrialFailed(f"{method}: {message}{self._last_words()}")
            outcome = answer.get("result")
            return outcome if isinstance(outcome, dict) else {}

    def notify(self, method: str) -> None:
        """Send the server a notification."""
        self._send({"jsonrpc": "2.0", "method": method})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool. Raises `TrialFailed`, also if the tool reports an error."""
        outcome = self.ask("tools/call", {"name": tool, "arguments": dict(arguments)})
        if outcome.get("isError"):
            texts = [part.get("text", "") for part in outcome.get("content", ())]
            raise TrialFailed(f"{tool}: {' '.join(texts) or 'it failed without a word'}")
        return outcome

    def finish(self) -> bool:
        """Close the connection and wait for the server; False if it was killed or failed."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            has_ended = self._process.wait(self._patience) == 0
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            has_ended = False
        for reader in self._readers:
            reader.join(1)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        return has_ended

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._process.stdin is None:
            raise TrialFailed("it has no standard input")
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            self._readers[1].join(1)
            reason = self._last_words() or f": {error}"
            raise TrialFailed(f"the server ended{reason}") from error

    def _read(self) -> None:
        with suppress(OSError, ValueError):
            for line in self._process.stdout or ():
                if line.strip():
                    self._answers.put(line)
        self._answers.put(None)

    def _read_errors(self) -> None:
        with suppress(OSError, ValueError):
            for line in self._process.stderr or ():
                self._said = (self._said + line)[-_STDERR:]

    def _last_words(self) -> str:
        lines = self._said.decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""
