"""Databases of other programs, in exactly the form in which those make them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures_memories"


def database(path: Path, tables: Mapping[str, tuple[str, Iterable[Sequence[Any]]]]) -> Path:
    """A database with these tables: for each what stands in its brackets, and its rows."""
    with closing(sqlite3.connect(path)) as connection:
        # Small pages make small files, which the fuzzing changes.
        connection.execute("PRAGMA page_size = 512")
        for name, (columns, rows) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            for row in rows:
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {name} VALUES ({marks})", row)
        connection.commit()
    return path


MEM0_HISTORY = (
    "id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, "
    "created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT"
)
MEM0_MESSAGES = (
    "id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT, name TEXT, "
    "created_at DATETIME"
)


def mem0_history(path: Path) -> Path:
    """~/.mem0/history.db: a memory with two values, one that was deleted, a session's messages."""
    one, two = "6f0c1f0a-93f5-4a53-8f4c-3a1d2f7b9c02", "6f0c1f0a-93f5-4a53-8f4c-3a1d2f7b9c09"
    lisbon, porto = "Lives in Lisbon", "Moved from Lisbon to Porto in March"
    began, moved = "2025-11-02T18:00:00+00:00", "2026-03-20T08:30:00+00:00"
    return database(
        path,
        {
            "history": (
                MEM0_HISTORY,
                [
                    ("h2", one, lisbon, porto, "UPDATE", began, moved, 0, None, None),
                    ("h1", one, None, lisbon, "ADD", began, None, 0, None, None),
                    ("h3", two, None, "Has a parrot", "ADD", began, None, 0, None, None),
                    ("h4", two, "Has a parrot", None, "DELETE", None, None, 1, None, None),
                ],
            ),
            "messages": (
                MEM0_MESSAGES,
                [
                    ("q1", "user_id=noor", "user", "I have moved to Porto.", None, moved),
                    ("q2", "user_id=noor", "assistant", "Bom dia, Porto!", None, moved),
                ],
            ),
        },
    )


CLAUDE_MEM = {
    "sdk_sessions": (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT UNIQUE NOT NULL, "
        "memory_session_id TEXT UNIQUE, project TEXT NOT NULL, platform_source TEXT NOT NULL "
        "DEFAULT 'claude', user_prompt TEXT, started_at TEXT NOT NULL, started_at_epoch INTEGER "
        "NOT NULL, completed_at TEXT, completed_at_epoch INTEGER, status TEXT NOT NULL DEFAULT "
        "'active', worker_port INTEGER, prompt_counter INTEGER DEFAULT 0, custom_title TEXT"
    ),
    "observations": (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT "
        "NULL, text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative "
        "TEXT, concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER, "
        "discovery_tokens INTEGER DEFAULT 0, content_hash TEXT, created_at TEXT NOT NULL, "
        "created_at_epoch INTEGER NOT NULL"
    ),
    "session_summaries": (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT "
        "NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, "
        "files_read TEXT, files_edited TEXT, notes TEXT, prompt_number INTEGER, created_at TEXT "
        "NOT NULL, created_at_epoch INTEGER NOT NULL"
    ),
    "user_prompts": (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, prompt_number "
        "INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL, created_at_epoch "
        "INTEGER NOT NULL"
    ),
}


def claude_mem(path: Path) -> Path:
    """~/.claude-mem/claude-mem.db: one session, an observation, a damaged one, a summary."""
    at, epoch = "2026-05-06T07:08:09.000Z", 1778051289000
    day = (at, epoch)
    rows: dict[str, list[Sequence[Any]]] = {
        "sdk_sessions": [
            (1, "c-1", "m-1", "webshop", "claude", "fix the cart", at, epoch, None, None,
             "completed", None, 1, "Cart totals"),
        ],
        "observations": [
            (1, "m-1", "webshop", None, "bugfix", "Cart totals were rounded twice",
             "The second rounding is gone", json.dumps(["Totals use integer cents now"]),
             "CartTotals rounded each line and then the sum. Lines are kept in cents.",
             json.dumps(["problem-solution"]), json.dumps(["src/cart.ts"]),
             json.dumps(["src/totals.ts"]), 1, 900, "abc", *day),
            (2, "m-1", "webshop", None, "discovery", None, None, None, None, None, None, None, 1,
             0, "def", *day),
        ],
        "session_summaries": [
            (1, "m-1", "webshop", "Fix the cart totals", "The rounding", "Cents avoid drift",
             "Totals in cents", "Migrate old orders", None, "src/totals.ts", None, 1, *day),
        ],
        "user_prompts": [(1, "c-1", 1, "The cart shows 10.01 instead of 10.00, fix it.", *day)],
    }  # fmt: skip
    return database(path, {name: (CLAUDE_MEM[name], rows[name]) for name in rows})


def _pairs(values: Mapping[str, Any]) -> tuple[str, Iterable[Sequence[Any]]]:
    columns = "key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB"
    return columns, [(key, json.dumps(value).encode()) for key, value in values.items()]


def cursor_state(path: Path) -> Path:
    """Cursor's globalStorage/state.vscdb: a chat in pieces, one in the first form, a tab."""
    chat, old = "c0ffee00-0000-4000-8000-000000000001", "c0ffee00-0000-4000-8000-000000000002"
    return database(
        path,
        {
            "ItemTable": _pairs(
                {
                    "workbench.panel.aichat.view.aichat.chatdata": {
                        "tabs": [
                            {
                                "tabId": "tab-1",
                                "chatTitle": "Locale",
                                "lastSendTime": 1735725600000,
                                "bubbles": [
                                    {"type": "user", "id": "t1", "text": "Which locale is it?"},
                                    {"type": "ai", "id": "t2", "rawText": "pt-PT, from the env."},
                                ],
                            }
                        ]
                    },
                    "telemetry.firstSessionDate": "x",
                }
            ),
            "cursorDiskKV": _pairs(
                {
                    f"composerData:{chat}": {
                        "_v": 10,
                        "composerId": chat,
                        "name": "Dark mode",
                        "createdAt": 1767261600000,
                        "fullConversationHeadersOnly": [
                            {"bubbleId": "b1", "type": 1},
                            {"bubbleId": "b2", "type": 2},
                            {"bubbleId": "b3", "type": 2},
                            {"bubbleId": "b4", "type": 2},
                        ],
                    },
                    f"bubbleId:{chat}:b1": {
                        "_v": 3, "type": 1, "text": "Make dark mode follow the system.",
                        "createdAt": "2026-01-01T10:00:00.000Z",
                    },
                    f"bubbleId:{chat}:b2": {
                        "_v": 3, "type": 2, "text": "", "createdAt": "2026-01-01T10:00:05.000Z",
                        "toolFormerData": {
                            "name": "read_file", "rawArgs": '{"target_file": "theme.css"}',
                            "result": "{}", "status": "completed",
                        },
                    },
                    f"bubbleId:{chat}:b3": {
                        "_v": 3, "type": 2, "text": "Done: it reads prefers-color-scheme.",
                        "createdAt": "2026-01-01T10:00:09.000Z",
                    },
                    f"composerData:{old}": {
                        "composerId": old, "createdAt": 1735725600000,
                        "conversation": [
                            {"bubbleId": "o1", "type": 1, "text": "Rename the flag to --quiet."},
                            {"bubbleId": "o2", "type": 2, "text": "Renamed in four files."},
                        ],
                    },
                    "checkpointId:1": {"files": []},
                }
            ),
        },
    )  # fmt: skip


def vscode_state(path: Path) -> Path:
    """VS Code's state.vscdb of a workspace, as versions kept chats before they had files."""
    session = json.loads((FIXTURES / "copilot.json").read_text("utf-8"))
    session |= {"sessionId": "0b7e55aa-1111-4c22-9d33-aa0000000003"}
    return database(
        path, {"ItemTable": _pairs({"interactive.sessions": [session, {}], "other": 1})}
    )


BUILT: dict[str, Callable[[Path], Path]] = {
    "history.db": mem0_history,
    "claude-mem.db": claude_mem,
    "state.vscdb": cursor_state,
    "vscode.vscdb": vscode_state,
}
"""Each of them by the name that its program gives it."""
