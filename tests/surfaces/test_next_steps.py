"""Every error that a user can meet says what to do next, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from anaphora import errors
from anaphora.surfaces.next_steps import PROBLEMS, STEPS, further_step, next_step
from anaphora.surfaces.rest.problems import _OWN, problem_of
from anaphora.testing import run_cli

KINDS = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.promise("errors.next_step")
def test_every_error_has_a_next_step_of_its_own() -> None:
    """A class without an entry has that of its base, of which there are few; none is empty."""
    alone = {kind.__name__ for kind in KINDS if kind not in STEPS}
    assert alone == {"InvalidId", "InvalidTurn", "EndpointError"}
    assert set(PROBLEMS) == set(_OWN)
    for words in (*STEPS.values(), *PROBLEMS.values()):
        assert words[0].isupper() or words[0] == "`"
        assert words.endswith(".")
        assert "\n" not in words


@pytest.mark.promise("errors.next_step")
def test_a_step_fits_what_went_wrong() -> None:
    """By the kind of thing, the field or the place; a message that names a command stays alone."""
    for error, words in (
        (errors.NotFound("token", "x"), "`anaphora token list`"),
        (errors.InvalidInput("remote", "/x", "the folder is not there"), "folder or server"),
        (errors.StoreError("open", "postgresql://h/d", "refused"), "database server"),
        (errors.NotEmpty("restore into", "h", "not empty"), "--home NEW restore"),
        (errors.UnreadableDocument("document", "x", "No such file or directory"), "the name"),
        (errors.MissingExtra("server", "fastapi"), "Run: "),
    ):
        assert words in next_step(error)
    told = errors.InvalidInput("sync", None, "not synced: run `anaphora sync init FOLDER` first")
    assert further_step(told) == ""
    answer = problem_of(errors.MissingExtra("server", "fastapi"))
    assert b'"next": "Install what is missing on that computer' in answer.body


@pytest.mark.promise("errors.next_step")
@pytest.mark.parametrize(
    ("words", "step"),
    [
        (("import", "nofile.json"), "next: Check the name, or run `anaphora import` alone"),
        (("import",), "drag it onto the page"),
        (("restore", "nofile"), "next: "),
        (("get", "nope"), "next: `anaphora recall WORDS`"),
        (("--namespace", "nope", "stats"), "next: `anaphora namespace list`"),
        (("sync", "now"), "run `anaphora sync init FOLDER` first"),
    ],
)
def test_the_command_line_says_it(
    words: tuple[str, ...], step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the line of the error; nothing needs a path to be typed."""
    monkeypatch.setenv("ANAPHORA_EMBEDDER", "hashing")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = run_cli(*words, home=tmp_path / "home")
    assert done.exit_code in {2, 3, 4}
    assert step in done.stderr.replace("\n", " ")
