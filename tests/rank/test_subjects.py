"""What one statement is about, and what it says of that: keys of its text alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.statements import read_statement
from anaphora.rank.subjects import StatementKeys, read_keys, share_a_subject


@pytest.mark.parametrize(
    ("text", "subjects", "attributes", "values"),
    [
        (
            "The staging database listens on port 5433.",
            "databas stage",
            "number port",
            "5433 port",
        ),
        (
            "We moved the staging database to port 5439.",
            "databas stage",
            "number port",
            "5439 port",
        ),
        ("Mara lives in Ghent.", "mara", "", "ghent"),
        ("Mara moved to Turin.", "mara", "", "turin"),
        ("My desk phone is 4417.", "@ada desk phone", "number", "4417"),
        ("The landlord raised our rent to 1,040 euros.", "landlord rent", "number euro", None),
        ("The choir is on Thursdays.", "choir", "day", "thursday"),
        ("The stand-up is at 9:15.", "stand stand-up", "number time", None),
        ("The parser lives in src/lang/parser.py.", "parser src/lang/parser.py", "path", None),
        ("Wir wohnen in der Lindenstraße 5.", None, "number lindenstrass", "5"),
    ],
)
def test_keys_are_read_of_one_text(
    text: str, subjects: str | None, attributes: str, values: str | None
) -> None:
    """Words before the verb, paths and the speaker; days, times, numbers with their words."""
    keys = read_keys(text, "Ada Lind")
    if subjects is not None:
        assert keys.subjects == set(subjects.split())
    assert " ".join(sorted(keys.attributes)) == attributes
    if values is not None:
        assert keys.values == set(values.split())


@given(st.text(max_size=200), st.sampled_from(["", "Ada", "Ada Lind", " "]))
def test_keys_can_be_kept(text: str, speaker: str) -> None:
    """They depend on text and speaker alone, and are the same when they were written and read."""
    keys = read_keys(text, speaker)
    assert read_keys.__wrapped__(text, speaker) == keys
    assert StatementKeys.from_text(keys.to_text()) == keys
    assert StatementKeys.from_text(keys.to_text()).to_text() == keys.to_text()


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("The staging database is on port 5433.", "We moved the staging database.", True),
        ("Our podcast is hosted at Acast.", "We moved our podcast to Podbean.", True),
        ("Leo's thesis is called Bogs.", "Our S3 bucket is called heron.", False),
        ("Rent is debited on Mondays.", "Training is on Mondays.", False),
        ("Mara lives in Ghent.", "We had a letter from Mara.", True),
        ("I live in Berlin.", "I work at the harbour.", True),
    ],
)
def test_statements_of_one_thing_share_a_subject(one: str, other: str, shared: bool) -> None:
    """A word of what one is about stands in the other; what is said of it does not count."""
    pair = [(read_statement(text), read_keys(text)) for text in (one, other)]
    assert share_a_subject(*pair[0], *pair[1]) is shared
    assert share_a_subject(*pair[1], *pair[0]) is shared
