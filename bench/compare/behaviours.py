"""Small checks that are carried out, not read up: what is kept, lost, left over, sent.

In: contestants with a store. Out: what was seen, in a few words, by check and contestant. A check
that a product refuses or cannot do gives its own words. Nothing is judged here.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.compare.contestants import Child, Contestant, Failed
from bench.compare.quality import Place

__all__ = ["CHECKS", "behaviours"]

ROUNDS: Final = 5
EACH: Final = 25
WATCHED: Final = 30
_SPACE: Final = "notes"
_WORD: Final = "quixantropal"
_LENGTH: Final = r"\\(?:[0-7]{1,3}|[abfnrtv])"
_DEFAULT_VARIABLES: Final = {"MEM0_TELEMETRY": "True"}
_WHOSE: Final = {
    "mobile.events.data.microsoft.com": "onnxruntime's telemetry",
    "us.i.posthog.com": "its telemetry, PostHog",
    "raw.githubusercontent.com": "mem0's list of notices",
}
"""Whose a name is, as far as the code that asks for it tells."""

Text = tuple[str, str, str]


def behaviours(
    place: Place, who: Sequence[Contestant], only: Sequence[str] = ()
) -> dict[str, dict[str, str]]:
    """What was seen, by contestant as shown, then by check."""
    found: dict[str, dict[str, str]] = {}
    for one in who:
        print(f"behaviours: {one.shown}", flush=True)
        found[one.shown] = {}
        for name, check in CHECKS.items():
            if only and name not in only:
                continue
            with tempfile.TemporaryDirectory(prefix="compare-") as folder:
                try:
                    seen = check(_Bench(place, one, Path(folder)))
                except Failed as error:
                    seen = f"raised: {str(error)[:120]}"
            found[one.shown][name] = seen
    return found


class _Bench:
    """A contestant with a folder of its own, to be opened as often as a check needs."""

    def __init__(self, place: Place, one: Contestant, folder: Path) -> None:
        self.place, self.one, self.folder = place, one, folder
        self.store = folder / "store"

    def child(
        self, before: Sequence[str] = (), variables: Mapping[str, str] | None = None
    ) -> Child:
        """A process with the store open."""
        found = Child(
            self.one,
            self.place.environments,
            before=before,
            variables=variables,
            home=self.folder,
        )
        given = {"folder": str(self.store), "model": str(self.place.model)}
        if self.place.chroma_model is not None and self.one.name == "chroma":
            given["chroma_model"] = str(self.place.chroma_model)
        try:
            found.ask("open", **given)
        except Failed:
            found.end()
            raise
        return found

    def kept(self) -> list[tuple[str, str]]:
        """What a fresh process finds."""
        with self.child() as child:
            return [(one, text) for one, text in child.ask("every", space=_SPACE).result]


def _killed(bench: _Bench) -> str:
    """kill -9 as soon as the call that kept a text has returned."""
    there = 0
    for number in range(ROUNDS + 1):
        child = bench.child()
        listed = {one for one, _ in child.ask("every", space=_SPACE).result} if number else set()
        there += f"n{number - 1}" in listed
        child.ask("add", space=_SPACE, texts=[_text(number)])
        child.kill()
    return f"{there} of {ROUNDS} there"


def _two_writers(bench: _Bench) -> str:
    """Two processes add to one store at once, one text a call."""
    with bench.child() as child:
        child.ask("add", space=_SPACE, texts=[_text(-1)])
        child.ask("close")
    said: list[str] = []

    def write(first: int) -> None:
        try:
            with bench.child() as child:
                for number in range(first, first + EACH):
                    child.ask("add", space=_SPACE, texts=[_text(number)])
                child.ask("close")
        except Failed as error:
            said.append(str(error))

    writers = [threading.Thread(target=write, args=(first,)) for first in (0, EACH)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    there = len({one for one, _ in bench.kept()} - {"n-1"})
    words = said[0].replace(str(bench.folder), "…")[:120] if said else ""
    words = f"; one was refused: {words}" if words else ""
    return f"{there} of {2 * EACH} there{words}"


def _negated(bench: _Bench) -> str:
    """Two facts that differ in one word are kept as they are."""
    pair = ["User is allergic to peanuts.", "User is not allergic to peanuts."]
    with bench.child() as child:
        for number, text in enumerate(pair):
            child.ask("add", space=_SPACE, texts=[(f"n{number}", text, "")])
        there = {text for _, text in child.ask("every", space=_SPACE).result}
        found = child.ask("search", space=_SPACE, query="Is the user allergic?", k=5).result
    kept = sum(text in there for text in pair)
    return f"{kept} of 2 kept as written, {len(found)} of 2 found"


def _twice(bench: _Bench) -> str:
    """The same words, given twice with different ids."""
    with bench.child() as child:
        for number in range(2):
            child.ask("add", space=_SPACE, texts=[(f"n{number}", "User likes tea.", "")])
        count = len(child.ask("every", space=_SPACE).result)
    return "one item" if count == 1 else f"{count} items"


def _deleted(bench: _Bench) -> str:
    """Are a deleted text's words in the store's files: after the call, and after closing?"""
    with bench.child() as child:
        child.ask("add", space=_SPACE, texts=[_text(number) for number in range(20)])
        secret = f"The password of the {_WORD} is blue horse."
        child.ask("add", space=_SPACE, texts=[("secret", secret, "")])
        child.ask("search", space=_SPACE, query=_WORD, k=3)
        child.ask("delete", space=_SPACE, item="secret")
        left = {one for one, _ in child.ask("every", space=_SPACE).result}
        before = _files_with(bench.store)
        child.ask("close")
    after = _files_with(bench.store)
    gone = "" if "secret" not in left else "still listed; "
    return f"{gone}after the call: {before}; after closing: {after}"


def _files_with(folder: Path) -> str:
    # Words are looked for as bytes; compressed files would hide them, which favours their product.
    named = [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and _WORD.encode() in path.read_bytes().lower()
    ]
    return "yes, in " + ", ".join(dict.fromkeys(named)) if named else "no"


def _network(bench: _Bench) -> str:
    """Connections that the process tries with the product's own defaults, under strace."""
    if shutil.which("strace") is None:
        return "not looked at: no strace"
    trace = bench.folder / "trace.txt"
    words = [
        "strace",
        "-f",
        "-qq",
        "-s",
        "256",
        "-e",
        "trace=connect,sendto,sendmsg,sendmmsg",
        "-o",
        str(trace),
    ]
    with bench.child(words, _DEFAULT_VARIABLES) as child:
        child.ask("add", space=_SPACE, texts=[_text(1)])
        child.ask("search", space=_SPACE, query="note", k=1)
        # What is sent in the background is sent some seconds later.
        time.sleep(WATCHED)
        child.ask("close")
    said = trace.read_text(errors="replace")
    tried = set(re.findall(r'htons\((\d+)\).*?inet_(?:addr|pton)\([^"]*"([0-9a-f.:]+)"', said))
    # A name in a DNS question: each part with its length before it, as strace writes bytes.
    raw = re.findall(rf"{_LENGTH}([\w-]+(?:{_LENGTH}[\w-]+)+)\\0", said)
    names = {re.sub(_LENGTH, ".", one) for one in raw}
    names = {name for name in names if re.fullmatch(r"[\w-]+(\.[\w-]+)+", name)}
    named = [f"{one} ({_WHOSE[one]})" if one in _WHOSE else one for one in sorted(names)]
    if not tried:
        return f"none in {WATCHED} s"
    asked = f"names looked up: {', '.join(named)}" if named else "no name looked up"
    return f"tried within {WATCHED} s; {asked}"


def _text(number: int) -> Text:
    return (f"n{number}", f"Note number {number} is about the garden.", "")


CHECKS: Final[dict[str, Callable[[_Bench], str]]] = {
    "kill -9 right after the call returned": _killed,
    "two processes write at once": _two_writers,
    "two facts that differ by a negation": _negated,
    "the same text twice": _twice,
    "words of a deleted text in the files": _deleted,
    "network with default settings": _network,
}
