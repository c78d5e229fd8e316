"""Make a story of a history: `python -m tools.models history EXPORT LABELS --out FOLDER`.

In: what `anaphora export` wrote, and labels, a line of JSON a question: `{"q": "…", "answers":
[ids], "outdated": [ids]}`, with ids as `anaphora recall` shows them (`2dd066c3#21` of a turn,
`c3c646dc` of a memory; more of an id does too). Out: a file of the corpus's form for each
namespace of the export. What is outdated, or true of another, is not held against the question.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_ROLES: Final = ("user", "assistant")


@dataclass(slots=True)
class History:
    """What one namespace holds: turns and memories by their whole ids, in the file's order."""

    turns: dict[str, dict[str, Any]] = field(default_factory=dict)
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)

    def found(self, given: str) -> str:
        """The whole id of a turn or a memory. Raises SystemExit unless there is exactly one."""
        ending, mark, place = given.partition("#")
        known = self.turns if mark else self.memories
        tail = f"{ending}{mark}{place}"
        ids = [one for one in known if one == tail] or [one for one in known if one.endswith(tail)]
        if len(ids) != 1:
            raise SystemExit(f"{given}: {len(ids)} such {'turns' if mark else 'memories'}")
        return ids[0]


def main(words: list[str]) -> None:
    """Write the stories that the command line asks for."""
    chosen = _arguments().parse_args(words)
    histories, now = read_export(chosen.export)
    labels = list(_lines(chosen.labels))
    chosen.out.mkdir(parents=True, exist_ok=True)
    for namespace, history in histories.items():
        own = [one for one in labels if one.get("namespace", namespace) == namespace]
        if not own:
            continue
        story = story_of(f"{chosen.out.name}-{namespace}", history, own, now, chosen.lang)
        file = chosen.out / f"{namespace}.json"
        file.write_text(json.dumps(story, ensure_ascii=False, indent=1) + "\n", "utf-8")
        print(
            f"{file}: {len(history.turns)} turns, {len(history.memories)} facts, {len(own)} asked"
        )


def read_export(file: Path) -> tuple[dict[str, History], str]:
    """The namespaces of an export, and when it was made.

    Raises SystemExit for a file that is cut off, or no export.
    """
    histories: dict[str, History] = {}
    speakers: dict[tuple[str, str, int], str] = {}
    kind = created = ""
    for line in _lines(file):
        kind = line.get("kind", "")
        created = created or line.get("created", "")
        if kind == "turn" and line["text"].strip():
            history = histories.setdefault(line["namespace"], History())
            history.turns[f"{line['thread']}#{line['index']}"] = line
        elif kind == "turn_note" and line.get("speaker"):
            speakers[line["namespace"], line["thread"], line["index"]] = line["speaker"]
        elif kind == "memory" and not line.get("forgotten"):
            histories.setdefault(line["namespace"], History()).memories[line["id"]] = line
    if kind != "end":
        raise SystemExit(f"{file} is no whole export: its last line is missing")
    for (namespace, thread, index), speaker in speakers.items():
        turn = histories[namespace].turns.get(f"{thread}#{index}")
        if turn is not None:
            turn["speaker"] = speaker
    return histories, created


def story_of(
    name: str, history: History, labels: Iterable[Mapping[str, Any]], now: str, language: str
) -> dict[str, Any]:
    """A story of the corpus's form. Raises SystemExit for an id that is not there."""
    places: dict[str, tuple[str, int]] = {}
    sessions: dict[str, dict[str, Any]] = {}
    for whole, turn in history.turns.items():
        begun = {"id": turn["thread"], "when": turn.get("ts") or now, "turns": []}
        told = sessions.setdefault(turn["thread"], begun)["turns"]
        places[whole] = turn["thread"], len(told)
        role = turn["role"] if turn["role"] in _ROLES else "user"
        said = {"role": role, "text": turn["text"]}
        told.append(said | ({"speaker": turn["speaker"]} if turn.get("speaker") else {}))
    facts = {whole: place for place, whole in enumerate(history.memories)}
    return {
        "id": name,
        "lang": language,
        "register": "history",
        "domain": name,
        "sessions": list(sessions.values()),
        "facts": [
            {"when": one["created_at"], "text": one["text"], "type": one["type"]}
            for one in history.memories.values()
        ],
        "changes": [],
        "questions": [_question(one, history, places, facts, now) for one in labels],
    }


def _question(
    label: Mapping[str, Any],
    history: History,
    places: Mapping[str, tuple[str, int]],
    facts: Mapping[str, int],
    now: str,
) -> dict[str, Any]:
    answers = [history.found(given) for given in label.get("answers", ())]
    outdated = [history.found(given) for given in label.get("outdated", ())]
    return {
        "q": label["q"],
        "kind": "plain" if answers else "absent",
        "now": now,
        "answer": _texts(history, answers),
        "stale": _texts(history, outdated),
        "evidence": [places[whole] for whole in answers if whole in places],
        "facts": [facts[whole] for whole in answers if whole in facts],
    }


def _texts(history: History, ids: Sequence[str]) -> list[str]:
    return [(history.turns.get(one) or history.memories[one])["text"] for one in ids]


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield json.loads(line)
            except ValueError as error:
                raise SystemExit(f"{file}: line {number}: {error}") from error


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.models history", description=__doc__)
    parser.add_argument("export", type=Path, help="what `anaphora export` wrote")
    parser.add_argument("labels", type=Path, help="questions, a line of JSON each")
    parser.add_argument("--out", type=Path, required=True, help="folder of an author's stories")
    parser.add_argument("--lang", default="en", help="language of the history")
    return parser
