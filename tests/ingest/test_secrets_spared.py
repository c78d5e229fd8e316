"""Ordinary text passes untouched: only what is a secret is taken out."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.ingest.secrets.redacting import redact, redact_value

# Texts without a secret, one a line, written for this test.
LINES = [
    line
    for line in Path(__file__).with_name("ordinary_texts.txt").read_text("utf-8").split("\n")
    if line
]


def test_there_are_enough_ordinary_texts() -> None:
    """At least 150 distinct texts are held to pass."""
    assert len(set(LINES)) >= 150


@pytest.mark.promise("secrets.ordinary")
@pytest.mark.parametrize("line", LINES)
def test_ordinary_text_passes(line: str) -> None:
    """Numbers, ids, hashes, prose and code around the word password are left alone."""
    assert redact(line).kinds == ()
    assert redact(line).text == line
    assert redact_value({"note": [line]}).value == {"note": [line]}


def test_ordinary_texts_pass_together() -> None:
    """Standing after one another they form no secret either."""
    for joint in ("\n", " "):
        assert redact(joint.join(LINES)).kinds == ()


@pytest.mark.parametrize(
    "text",
    [
        "const password =\n    generatePassword(16)",
        "const token =\n  process.env.API_TOKEN_2;",
        "password =\n\nuser = ann99",
        "secret:\n    secretKeyRef1:\n        name: db",
        "token =\n    tokens[0],\n",
    ],
)
def test_what_stands_below_a_name_may_be_code(text: str) -> None:
    """Calls, names, blank lines and nested keys below the name of a secret are no secret."""
    assert redact(text).kinds == ()


@given(st.lists(st.text(string.ascii_letters + " ,.'?!-", max_size=30), max_size=20))
def test_words_pass(parts: list[str]) -> None:
    """Letters and the marks of ordinary sentences are never a secret."""
    text = " ".join(parts)
    assert redact(text).text == text


def test_real_conversations_pass(shared_data: Path) -> None:
    """None of the turns of real conversations loses anything: none has a secret."""
    turns = 0
    for file in sorted((shared_data / "conversations" / "realtalk").glob("*.json")):
        for name, session in json.loads(file.read_text()).items():
            if not name.startswith("session_") or not isinstance(session, list):
                continue
            for turn in session:
                turns += 1
                assert redact(turn["clean_text"]).kinds == (), turn
    assert turns > 8_000
