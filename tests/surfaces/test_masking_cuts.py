"""A passage is cut out of a long turn; no half of a secret leaves at its edges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anaphora import Memory, render_recall

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC+Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MDEy"
KEY = "-----BEGIN RSA PRIVATE " + f"KEY-----\n{BODY}\n{BODY}\n-----END RSA PRIVATE " + "KEY-----"
PASSWORD = "tr0ub4dor-and-9-ferries"
FILLER = "The ferry leaves the harbour at nine and the crew counts ropes. "


def passages(folder: Path, secret: str) -> Iterator[str]:
    """The passages of long turns in which a secret stands at every place around the cut."""
    with Memory.open(folder, embedder="hashing") as memory:
        for number in range(40):
            asked = f"lantern{number}"
            before = FILLER * 40 + "x" * (number * 7 % 61) + " "
            said = f"{before}{secret} {FILLER}{asked} oil is in the shed. {FILLER * 2}{secret} "
            memory.conversations.append_user(f"chat-{number}", said + FILLER * 40)
        memory.ready()
        for number in range(40):
            for budget in (20, 40, 60, 90, 140):
                hits = memory.recall_conversation(
                    f"chat-{number}", f"where is the lantern{number} oil?", budget=budget, top_k=1
                ).hits
                assert hits
                assert hits[0].excerpt is not None
                yield render_recall(hits)


@pytest.mark.promise("secrets.masked")
@pytest.mark.parametrize(
    ("said", "core"),
    [(SECRET, SECRET), (f"password: {PASSWORD}", PASSWORD), (KEY, BODY)],
    ids=["key", "password", "private key"],
)
def test_no_half_of_a_secret_leaves_at_the_edge_of_a_passage(
    said: str, core: str, tmp_path: Path
) -> None:
    """Neither a part of a private key, nor a password that lost the word before it."""
    shown = list(passages(tmp_path / "home", said))
    assert len(shown) == 200
    leaked = [block for block in shown if any(core[at : at + 8] in block for at in range(9))]
    assert not leaked, leaked[0][-400:]
    ends = [block for block in shown if core[-9:] in block]
    assert not ends, ends[0][:400]
