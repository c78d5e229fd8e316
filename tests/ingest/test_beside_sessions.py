"""What programs keep beside sessions, their names, and how they are packed."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.commands import run_command

from anaphora.errors import UnknownFormat
from anaphora.ingest.bounds import Bounds
from anaphora.values.conversations import ImportProblem

from .conftest import Home
from .imported import read

CODEX = "0199a000-0000-7000-8000-00000000000a"


def row(session: str, text: str, role: str = "user", number: int = 0, **more: Any) -> str:
    return json.dumps({
        "type": role, "uuid": f"{session}-{number}", "parentUuid": None, "sessionId": session,
        "cwd": "/w", "timestamp": f"2026-11-20T09:{number:02}:00Z",
        "message": {"role": role, "content": text}, **more,
    })  # fmt: skip


def rollout(*names: str | None) -> str:
    def line(kind: str, payload: dict[str, Any]) -> str:
        return json.dumps({"timestamp": "2026-11-20T09:00:00Z", "type": kind, "payload": payload})

    return "\n".join([
        line("session_meta", {"id": CODEX, "timestamp": "2026-11-20T09:00:00Z", "cwd": "/w"}),
        line("event_msg", {"type": "user_message", "message": "Petra signs the release."}),
        *(line("event_msg", {"type": "thread_name_updated", "thread_id": CODEX, "thread_name": n})
          for n in names),
    ]) + "\n"  # fmt: skip


BESIDE: dict[str, dict[str, str]] = {
    "Claude Code": {
        "projects/-w/s1.jsonl": row("s1", "The boiler was mended.")
        + "\n"
        # As written before such a text was marked.
        + row(
            "s1",
            "This session is being continued from a previous conversation that ran out of "
            "context. The conversation is summarized below: RAVEN.",
            number=1,
        )
        + "\n",
        "projects/-w/s1/subagents/agent-1.jsonl": row("s1", "Look.", isSidechain=True) + "\n",
        "projects/-w/s1/subagents/agent-1.meta.json": '{"agentType": "general-purpose"}',
        "projects/-w/s1/subagents/agent-2.meta.json": '{"agentType": "gen',
        "projects/-w/s1/tool-results/call.json": '[{"role": "user", "text": "RAVEN"}]',
        "projects/-w/sessions-index.json": '{"version": 1, "entries": []}',
        "projects/-w/bridge-pointer.json": '{"sessionId": "s1"}',
        "projects/-w/stub.jsonl": "",
        "projects/-w/named.jsonl": '{"type": "custom-title", "customTitle": "x", "sessionId": "n"}',
        "todos/s1-agent-s1.json": "[]",
        "history.jsonl": '{"display": "hello", "timestamp": 1, "project": "/w"}\n',
        "settings.json": "{}",
        "settings.local.json": '{"permissions": {}}',
        "stats-cache.json": '{"days": []}',
        "statsig/statsig.cached.json": "{}",
        "file-history/s1/a@v1": '{"role": "user", "text": "RAVEN"}',
        "shell-snapshots/snapshot-bash-1.sh": "export A=1\n",
        "plugins/installed_plugins.json": '{"version": 1}',
        "plugins/cache/a/plugin.json": "{",
        ".claude.json": '{"oauthAccount": {}}',
    },
    "Codex": {
        f"sessions/2026/11/20/rollout-2026-11-20T09-00-00-{CODEX}.jsonl": rollout(),
        "session_index.jsonl": json.dumps({"id": CODEX, "thread_name": "Release"}) + "\n",
        "history.jsonl": '{"session_id": "a", "ts": 1, "text": "hello"}\n',
        "auth.json": '{"OPENAI_API_KEY": "x"}',
        "config.toml": "model = 'x'\n",
        "models_cache.json": "{",
        "version.json": '{"latest_version": "0.154.0"}',
        "log/codex-tui.log": "started\n",
        "plugins/cache.json": "[]",
    },
    "Gemini CLI": {
        "tmp/w/chats/session-1.jsonl": '{"sessionId": "g", "projectHash": "h"}\n'
        '{"id": "1", "type": "user", "content": "Rain.", "timestamp": "2026-11-20T09:00:00Z"}\n',
        "tmp/w/chats/g/sub.jsonl": '{"sessionId": "s", "projectHash": "h", "kind": "subagent"}\n'
        '{"id": "1", "type": "user", "content": "RAVEN", "timestamp": "2026-11-20T09:00:00Z"}\n',
        "tmp/w/logs.json": '[{"sessionId": "g", "messageId": 0, "type": "user", "message": "R"}]',
        "projects.json": '{"projects": {}}',
        "settings.json": "{}",
        "oauth_creds.json": '{"access_token": "x"}',
        "google_accounts.json": "{",
    },
}


@pytest.mark.parametrize("client", BESIDE)
def test_a_folder_of_a_program_comes_in_without_a_problem(tmp_path: Path, client: str) -> None:
    """The command tells it in five lines at most, without the formats, and succeeds; twice."""
    root = tmp_path / "client"
    for name, text in BESIDE[client].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for added in (1, 0):
        ran = run_command(
            "--home", tmp_path / "home", "import", "--no-embed", root, environ=os.environ
        )
        assert (ran.returncode, f"1 conversation: {added} turn" in ran.stdout) == (0, True)
        assert len(ran.stdout.splitlines()) <= 5, ran.stdout
        assert "Recognised are" not in ran.stdout + ran.stderr
    with Home(tmp_path / "home") as home:
        assert "RAVEN" not in str(home.everything())


def test_a_torn_transcript_among_companions_is_a_problem(home: Home, tmp_path: Path) -> None:
    """What may hold words of the user is never taken for something beside them."""
    folder = tmp_path / "projects"
    folder.mkdir()
    (folder / "s1.jsonl").write_text(row("s1", "The boiler was mended.") + "\n")
    (folder / "agent-1.meta.json").write_text("{")
    (folder / "s2.jsonl").write_text(row("s2", "The roof leaks.")[:60] + "\n")
    assert [Path(one.path).name for one in home.take(folder).problems] == ["s2.jsonl"]


def title(kind: str, text: str) -> str:
    field = "customTitle" if kind == "custom-title" else "aiTitle"
    return json.dumps({"type": kind, field: text, "sessionId": "s1"})


@pytest.mark.parametrize(
    ("first", "later", "names"),
    [
        ([("custom-title", "Harbour"), ("ai-title", "Rails")], [], ("Harbour", "Harbour")),
        ([("ai-title", "Rails")], [("custom-title", "Harbour")], ("Rails", "Harbour")),
        ([("custom-title", "Old")], [("custom-title", "New")], ("Old", "New")),
        ([("custom-title", "Old")], [("custom-title", "")], ("Old", "")),
        ([("custom-title", "Old"), ("ai-title", "R")], [("custom-title", "")], ("Old", "R")),
        ([], [("ai-title", "Rails")], ("", "Rails")),
    ],
)  # fmt: skip
def test_the_name_that_the_user_gave_wins_and_a_later_one_is_taken(
    home: Home,
    tmp_path: Path,
    first: list[tuple[str, str]],
    later: list[tuple[str, str]],
    names: tuple[str, str],
) -> None:
    path = tmp_path / "s1.jsonl"
    told = [row("s1", "The boiler was mended.")]
    for records, name in zip((first, later), names, strict=True):
        told += [title(*one) for one in records]
        path.write_text("\n".join(told) + "\n")
        home.take(path)
        thread = home.store.get("claude_code_s1")
        assert thread is not None
        assert thread.title == name


def test_a_name_that_was_given_here_stays(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    told = [row("s1", "The boiler was mended."), title("ai-title", "Rails")]
    path.write_text("\n".join(told) + "\n")
    home.take(path)
    home.store.set_title("claude_code_s1", "Mine")
    path.write_text("\n".join([*told, title("custom-title", "Harbour")]) + "\n")
    home.take(path)
    thread = home.store.get("claude_code_s1")
    assert thread is not None
    assert thread.title == "Mine"


def test_codex_names_stand_in_the_session_and_in_the_list(home: Home, tmp_path: Path) -> None:
    """The list of sessions is the later one: it has the names of sessions at rest."""
    folder = tmp_path / "sessions" / "2026" / "11" / "20"
    folder.mkdir(parents=True)
    path = folder / f"rollout-2026-11-20T09-00-00-{CODEX}.jsonl"
    index = tmp_path / "session_index.jsonl"
    listed = ""
    for names, line, expected in (
        (("Release",), "", "Release"),
        (("Release", "Signing"), "", "Signing"),
        (("Release", "Signing"), json.dumps({"id": CODEX, "thread_name": "Petra"}), "Petra"),
    ):
        path.write_text(rollout(*names))
        listed += f"{line}\n"
        index.write_text(listed)
        home.take(path)
        thread = home.store.get(f"codex_{CODEX}")
        assert thread is not None
        assert thread.title == expected


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("named", [True, False], ids=["the file", "its folder"])
def test_a_packed_session_is_read(home: Home, tmp_path: Path, ending: str, named: bool) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    path = folder / f"rollout-2026-11-20T09-00-00-{CODEX}.jsonl.{ending}"
    path.write_bytes(PACKED[ending](rollout().encode()))
    assert home.take(path if named else folder).added == 1
    (folder / path.stem).write_text(rollout())
    assert home.take(folder).added == 0


@pytest.mark.parametrize("ending", PACKED)
def test_a_packed_file_is_unpacked_no_further_than_it_may_be(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"chat.jsonl.{ending}"
    path.write_bytes(PACKED[ending](rollout().encode() + b" " * 2_000_000))
    (problem,) = read(path, "codex", Bounds(unpacked=1_000_000, times=1))
    assert isinstance(problem, ImportProblem)
    assert "it would become more than 1,000,000 bytes" in problem.reason
    path.write_bytes(PACKED[ending](rollout().encode() * 50)[:-40])
    (problem,) = [item for item in read(path, "codex") if isinstance(item, ImportProblem)]
    assert "failed" not in problem.reason


def test_what_is_packed_otherwise_is_named_so(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl.br"
    path.write_bytes(b"\x0b\x02\x80")
    with pytest.raises(UnknownFormat, match=r"packed as \.br, .* unpack it first"):
        home.take(path)


HELPER = '{"type": "agent-setting", "agentSetting": "%s", "sessionId": "s1"}'


@pytest.mark.parametrize(
    ("agent", "more", "turns"),
    [
        ("general-purpose", {}, 0),
        ("Explore", {}, 0),
        ("general-purpose", {"promptSource": "typed"}, 1),
        ("general-purpose", {"permissionMode": "default"}, 1),
        # The user's, from the agent view and with `claude --agent reviewer`.
        ("claude", {}, 1),
        ("reviewer", {}, 1),
        ("reviewer", {"agentId": "a1"}, 0),
        ("reviewer", {"teamName": "crew", "agentName": "scout"}, 0),
        ("claude", {"teamName": "crew", "agentName": "team-lead"}, 1),
    ],
)
def test_helpers_of_claude_code_are_no_talk_of_the_user(
    home: Home, tmp_path: Path, agent: str, more: dict[str, Any], turns: int
) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(f"{HELPER % agent}\n{row('s1', 'Look at the costs.', **more)}\n")
    report = home.take(path)
    assert (report.added, report.left_out.get("sidechain", 0)) == (turns, 1 - turns)
