"""Chats and lists of facts: each index exists, each question has three wordings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from corpus.counting import PAGE
from tools.models.chats import read_chats, read_silent

FOLDER = PAGE.parent


def _files(name: str) -> list[dict[str, Any]]:
    return [json.loads(file.read_text("utf-8")) for file in sorted((FOLDER / name).glob("*.json"))]


def test_each_chat_is_whole() -> None:
    chats = _files("chats")
    turns = 0
    for chat in chats:
        sessions = chat["sessions"]
        assert [session["when"] for session in sessions] == sorted(s["when"] for s in sessions)
        assert len(chat["questions"]) == 30
        assert sum(not question["evidence"] for question in chat["questions"]) == 8
        for question in chat["questions"]:
            assert len({question["q"], *question["also"]}) == 3, question
            for session, at in [*question["evidence"], *question.get("stale", ())]:
                assert sessions[session]["turns"][at][1].strip()
        turns += sum(len(session["turns"]) for session in sessions)
    assert f"with {turns:,} turns" in PAGE.read_text("utf-8")


def test_each_list_of_facts_is_whole() -> None:
    lists = _files("silent")
    for told in lists:
        assert len(set(told["facts"])) == 24
        for question in told["questions"]:
            assert len({question["q"], *question["also"]}) == 3, question
            near = question.get("near", [])
            assert not {*near} & {*question["evidence"]}
            assert all(0 <= at < 24 for at in (*near, *question["evidence"]))
    assert f"{len(lists)} files, six of them" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("form", ["text", "before"])
def test_a_chat_is_read_as_a_pool(form: str) -> None:
    """Every wording is asked; a session's first turn has no turn before it."""
    for chat, file in zip(read_chats(FOLDER / "chats", form), _files("chats"), strict=True):
        answered = [question for question in file["questions"] if question["evidence"]]
        assert len(chat.pool.asked) == 3 * len(answered)
        assert len(chat.unanswered) == 3 * (len(file["questions"]) - len(answered))
        assert all("(before: " not in chat.pool.passages[start] for start in chat.starts)
        first, question = chat.pool.asked[0], answered[0]
        session, at = question["evidence"][0]
        words = file["sessions"][session]["turns"][at][1].split()[0]
        assert any(words in chat.pool.passages[place] for place in first.positives)


def test_what_is_near_is_no_answer() -> None:
    for told, file in zip(read_silent(FOLDER / "silent"), _files("silent"), strict=True):
        assert list(told.pool.passages) == file["facts"]
        for question in told.pool.asked:
            assert not question.positives & question.neutral
        assert all(silent.near for silent in told.unanswered)
