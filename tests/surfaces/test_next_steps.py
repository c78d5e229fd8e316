"""Every error that a user can meet says what to do next, in one sentence."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from tests.commands import begin_home
from tests.docs.reference_pages import reference_page
from tests.surfaces.rest_desk import served

from anaphora import Memory, errors
from anaphora.testing import run_cli


@pytest.mark.promise("errors.next_step")
def test_every_error_has_a_next_step_of_its_own() -> None:
    """A class without an entry has that of its base, of which there are few; none is empty."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", reference_page("errors.md"), re.MULTILINE)
    steps = dict(rows)
    assert steps.keys() == set(errors.__all__)
    shared = {name for name, step in rows if list(steps.values()).count(step) > 1}
    assert {"InvalidId", "InvalidTurn", "EndpointError"} <= shared
    assert len(shared) <= 6
    for words in steps.values():
        assert words[0].isupper() or words[0] == "`"
        assert words.endswith(".")


FITTING = [
    (errors.NotFound("token", "x"), "`anaphora token list`"),
    (errors.InvalidInput("remote", "/x", "the folder is not there"), "folder or server"),
    (errors.StoreError("open", "postgresql://h/d", "refused"), "database server"),
    (errors.Locked("write", "postgresql://h/d", ""), "Close that program"),
    (errors.NotEmpty("restore into", "h", "not empty"), "--home NEW restore"),
    (errors.UnreadableDocument("document", "x", "No such file or directory"), "the name"),
]


@pytest.mark.promise("errors.next_step")
def test_a_step_fits_what_went_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kind of thing, the field or the place; a message that names a command stays alone."""

    def said(error: Exception) -> str:
        def fail(*_: object, **__: object) -> None:
            raise error

        # With the description of the call, from which the command takes its options.
        monkeypatch.setattr(Memory, "list", functools.update_wrapper(fail, Memory.list))
        return " ".join(run_cli("list", home=tmp_path / "home").stderr.split())

    begin_home(tmp_path / "home")
    for error, words in FITTING:
        _, _, step = said(error).partition("next: ")
        assert words in step, (error, step)
    told = errors.InvalidInput("sync", None, "not synced: run `anaphora sync init FOLDER` first")
    assert "next:" not in said(told)
    missing = said(errors.MissingExtra("server", "fastapi"))
    assert "; run: " in missing
    assert "next:" not in missing
    with served(tmp_path / "home") as (client, _):
        step = client.get("/v1/memories").json()["next"]
    assert step.startswith("Install what is missing on that computer")


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
    begin_home(tmp_path / "home")
    done = run_cli(*words, home=tmp_path / "home")
    assert done.exit_code in {2, 3, 4}
    assert step in done.stderr.replace("\n", " ")
