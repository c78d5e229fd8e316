"""A long thread, and Neo's daemon in small: it writes thread files as Go's encoding/json does."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anaphora import Memory

__all__ = ["ASKED", "VERBATIM", "append", "as_go_writes", "listed", "long_thread", "not_of_go"]

VERBATIM = 'VERBATIM  two  spaces\n\nand <html> & "quotes" on how to deploy an ERC-20 token\ttab'
ASKED = "how do I deploy an ERC-20"
# RFC 3339 with at most nine digits and no zero at their end.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?(Z|[+-]\d\d:\d\d)")


def long_thread(memory: Memory, turns: int = 60) -> None:
    """A thread "t" whose first two turns answer; the others are chatter."""
    store = memory.conversations
    store.append_user("t", VERBATIM)
    store.append_assistant("t", "call paxeer-net deploy_token...")
    for number in range(turns):
        append_one = store.append_user if number % 2 else store.append_assistant
        append_one("t", f"chatter number {number} about lunch, weather and the office plants")


def as_go_writes(record: dict[str, Any]) -> bytes:
    """A record as Go's encoder writes it: no spaces, and <, >, &, U+2028 and U+2029 escaped."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def append(
    folder: Path, conversation_id: str, text: str, *, role: str = "user", intent: str = ""
) -> None:
    """One turn by the daemon: the file is read, a turn added, and a new file renamed over it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{conversation_id}.json"
    record: dict[str, Any] = {"conversation_id": conversation_id, "turns": []}
    if path.exists():
        record = json.loads(path.read_bytes())
    fraction = re.sub(r"0+$|\.0*$", "", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"))
    turn = {"role": role, "text": text, **({"intent_id": intent} if intent else {})}
    turn["ts"] = f"{fraction}Z"
    record["turns"] = [*(record["turns"] or []), turn]
    record["updated"] = turn["ts"]
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_bytes(as_go_writes(record))
    temporary.rename(path)


def listed(folder: Path) -> dict[str, int]:
    """The conversations that the daemon lists, with the count of their turns."""
    records = [json.loads(path.read_bytes()) for path in folder.glob("*.json")]
    return {record["conversation_id"]: len(record["turns"] or []) for record in records}


def not_of_go(folder: Path) -> list[str]:
    """The files that are not, byte for byte, what Go would write of them."""
    return [path.name for path in sorted(folder.glob("*.json")) if not _of_go(path.read_bytes())]


def _of_go(content: bytes) -> bool:
    record = json.loads(content)
    keys = ("conversation_id", "title", "turns", "updated")
    shaped = {key: record[key] for key in keys if record.get(key) or key in ("turns", "updated")}
    turn_keys = ("role", "text", "intent_id", "ts")
    if record["turns"] is not None:
        shaped["turns"] = [
            {key: turn[key] for key in turn_keys if key != "intent_id" or turn.get(key)}
            for turn in record["turns"]
        ]
    times = [record["updated"], *(turn["ts"] for turn in record["turns"] or ())]
    return content == as_go_writes(shaped) and all(_TIME.fullmatch(time) for time in times)
