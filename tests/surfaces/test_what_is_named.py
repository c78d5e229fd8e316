"""Places, namespaces and ids that a caller names: a blank or a mistaken one is an error by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import anyio
import pytest
import typer
from tests.commands import begin_home
from tests.mcp_client import connected, refusal
from tests.surfaces.rest_desk import served

import anaphora
from anaphora import Memory, keys, render_recall
from anaphora.errors import InvalidInput, NotFound
from anaphora.features.importing.commands import KNOWN_FORMATS
from anaphora.features.importing.formats import FORMATS
from anaphora.settings import load_settings
from anaphora.surfaces.cli import run_by_table
from anaphora.surfaces.cli.app import app
from anaphora.surfaces.cli.grammar import LEADING, take_options
from anaphora.surfaces.mcp_server.tools import all_tools
from anaphora.testing import run_cli

BLANK = ("", " ", "\t")


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder is the test's own, and so is the user's; nothing may appear in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def ran(*words: str) -> Any:
    return run_cli(*words, env={"ANAPHORA_EMBEDDER": "hashing"})


def commands() -> Iterator[tuple[list[str], Any]]:
    """Every command with the words that name it."""

    def under(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
        if hasattr(command, "commands"):
            for name, one in command.commands.items():
                yield from under([*words, name], one)
        else:
            yield words, command

    yield from under([], typer.main.get_command(app))


def takes_paths(command: Any) -> list[Any]:
    """The parameters of a command that are paths."""
    assert command.callback is not None
    hints = get_type_hints(command.callback)

    def is_path(said: Any) -> bool:
        return said is Path or any(is_path(part) for part in get_args(said))

    return [one for one in command.params if one.name and is_path(hints.get(one.name))]


def given(command: Any, **values: str) -> list[str]:
    """Words for the parameters that a command needs, and for those that are given."""
    words: list[str] = []
    for one in command.params:
        value = values.get(one.name or "", "1" if one.required else None)
        if value is not None:
            words += [value] if one.param_type_name == "argument" else [one.opts[0], value]
    return words


def needed(words: list[str], command: Any) -> list[str]:
    """Words for a command that are enough for it to begin."""
    return given(
        command,
        **{"update": {"text": "x"}, "deep": {"question": "why?"}}.get(" ".join(words), {}),
    )


PATHS = [(words, command, one) for words, command in commands() for one in takes_paths(command)]


@pytest.mark.promise("calls.blank_places")
@pytest.mark.parametrize(
    ("words", "command", "one"), PATHS, ids=[f"{' '.join(w)} {o.name}" for w, _, o in PATHS]
)
def test_no_command_takes_a_blank_path(
    words: list[str], command: Any, one: Any, somewhere: Path
) -> None:
    """A blank path of any command is refused and named: it would be the present folder."""
    for blank in BLANK:
        done = ran("--home", "home", *words, *given(command, **{one.name or "": blank}))
        assert done.exit_code == 2, done.output
        said = " ".join(done.output.split())
        named = one.opts[0]
        assert "must not be blank" in said
        assert named.lower() in said.lower()
    assert list(somewhere.iterdir()) == []


@pytest.mark.promise("calls.blank_places")
@pytest.mark.parametrize("option", ["--home", "--conversations-dir"])
def test_no_blank_home(option: str, somewhere: Path) -> None:
    """A blank home on the command line is refused by every command, the server included."""
    for words in (["stats"], ["remember", "a private fact"], ["mcp"], ["doctor"]):
        for blank in BLANK:
            done = ran(option, blank, *words)
            assert done.exit_code == 2, done.output
            assert option in " ".join(done.output.split())
            # Without typer nothing runs: it refuses the place.
            place: dict[str, str] = {}
            assert take_options([option, blank, "mcp"], LEADING, place) == ["mcp"]
            assert not run_by_table(["mcp"], place)
    assert list(somewhere.iterdir()) == []


@pytest.mark.promise("calls.blank_places")
@pytest.mark.parametrize("blank", BLANK)
def test_no_blank_place_of_a_memory(
    blank: str, somewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blank home, folder or database is refused by its name, as argument and as variable."""
    for what in ("home", "conversations_dir", "database", "embedder", "model", "sub_model"):
        place = {} if what == "home" else {"home": somewhere / "home"}
        with pytest.raises(InvalidInput) as refused:
            Memory.open(**place | {what: blank})  # type: ignore[arg-type]
        assert refused.value.what == what
    for call in (keys.encrypt, keys.decrypt, keys.export_key, keys.rotate_key):
        with pytest.raises(InvalidInput, match=r"^home: "):
            call(blank)
    with pytest.raises(InvalidInput, match=r"^home: "):
        Memory.restore(somewhere / "x.backup", blank)
    for name in ("ANAPHORA_HOME", "ANAPHORA_CONVERSATIONS_DIR", "ANAPHORA_DATABASE"):
        with monkeypatch.context() as environment:
            environment.setenv("ANAPHORA_HOME", str(somewhere / "home"))
            environment.setenv(name, blank)
            with pytest.raises(InvalidInput) as refused:
                Memory.open()
            assert refused.value.what == name
            # What was said in so many words wins, whatever the variable has.
            argument = {"ANAPHORA_HOME": "home"}.get(name)
            if argument:
                Memory.open(somewhere / "home", warm=False).close()
    assert list(somewhere.iterdir()) == []


def test_the_other_programs_blank_variable_is_none(somewhere: Path) -> None:
    """`NEO_CONVERSATIONS_DIR` is another program's, for which an empty one is not set."""
    found = load_settings(environ={"ANAPHORA_HOME": "home", "NEO_CONVERSATIONS_DIR": " "})
    assert found.conversations == somewhere / "home" / "conversations"


def test_odd_places_are_refused(somewhere: Path) -> None:
    """A path that no file system takes, or of a user that there is not, is refused by name."""
    for odd in ("\0", "a\0b", "\ud800", "~nobody-of-this-name/x", "x" * 5_000):
        with pytest.raises(InvalidInput, match=r"^home: "):
            Memory.open(odd)
        with pytest.raises(InvalidInput, match=r"^root: "), Memory.open("home") as memory:
            memory.index_project(odd)
    assert list(somewhere.iterdir()) == []


BEGINNING = {
    ("remember",), ("import",), ("observe",), ("diary",), ("conversation", "import"),
    ("conversation", "watch"), ("project", "index"), ("hook",), ("sync", "init"),
    ("mirror", "init"), ("core", "add"), ("audit", "on"), ("document", "add"),
}  # fmt: skip
WHOLE_HOME = {
    ("backup",), ("restore",), ("encrypt",), ("decrypt",), ("setup",), ("mcp",), ("serve",),
    ("start",),
}  # fmt: skip
READING = [
    (words, command)
    for words, command in commands()
    if tuple(words) not in BEGINNING | WHOLE_HOME and words[0] not in ("key", "token")
]


@pytest.mark.promise("calls.not_found")
@pytest.mark.parametrize(
    ("words", "command"), READING, ids=[" ".join(words) for words, _ in READING]
)
def test_a_namespace_that_is_not_there(words: list[str], command: Any, somewhere: Path) -> None:
    """Every command that begins no namespace refuses one that is not there, and makes none."""
    begin_home(somewhere / "home")
    done = ran("--home", "home", "--namespace", "nope", *words, *needed(words, command))
    assert done.exit_code == 3, done.output
    assert "no namespace with id 'nope'" in done.stderr
    assert [path.name for path in (somewhere / "home").iterdir()] == ["settings.json"]


BEGINNING_HOMES = BEGINNING | WHOLE_HOME - {("backup",), ("decrypt",)} | {("token", "create")}
EXISTING = [
    (words, command) for words, command in commands() if tuple(words) not in BEGINNING_HOMES
]


@pytest.mark.promise("calls.not_found")
@pytest.mark.parametrize(
    ("words", "command"), EXISTING, ids=[" ".join(words) for words, _ in EXISTING]
)
def test_a_home_that_is_not_there(words: list[str], command: Any, somewhere: Path) -> None:
    """The same commands say that there is no memory, in a folder of other things too."""
    (somewhere / "folder").mkdir()
    (somewhere / "folder" / "letter.txt").write_text("Dear Ada")
    for home in ("nope", "folder"):
        done = ran("--home", home, *words, *needed(words, command))
        output = " ".join((done.output if words == ["doctor"] else done.stderr).split())
        assert f"there is no memory at {somewhere / home}" in output
        # `doctor` checks what is installed, before there is a memory too.
        assert words == ["doctor"] or done.exit_code == 3
    assert [path.name for path in somewhere.rglob("*")] == ["folder", "letter.txt"]


@pytest.mark.promise("calls.not_found")
def test_a_namespace_begins_with_what_is_kept_in_it(somewhere: Path) -> None:
    """What writes begins a namespace, and what reads finds it from then on."""
    assert ran("--home", "home", "--namespace", "new", "remember", "tea").exit_code == 0
    done = ran("--home", "home", "--namespace", "new", "list")
    assert done.exit_code == 0
    assert "tea" in done.output


@pytest.mark.promise("calls.not_found")
def test_a_conversation_that_is_not_there(somewhere: Path) -> None:
    """A surface refuses it; the facade, which an agent asks before its first turn, has nothing."""
    home = somewhere / "home"
    with served(home) as (client, memory):
        memory.conversations.append_user("chat", "the port is 5433")
        assert memory.recall_conversation("nope", "port").hits == ()
        bodies: dict[str, dict[str, str]] = {
            "conversations/recall": {"query": "port", "conversation_id": "nope"},
            "deep": {"question": "which ports were there?", "conversation_id": "nope"},
        }
        for path, body in bodies.items():
            answer = client.post(f"/v1/{path}", json=body)
            assert (answer.status_code, answer.json()["detail"]) == (
                404,
                "no conversation with id 'nope'",
            )
        with pytest.raises(NotFound):
            memory.deep_recall("why?", scope="current_session", conversation_id="nope")
        # One that is there and has nothing to the point is no error.
        body = {"query": "zebra", "conversation_id": "chat"}
        assert client.post("/v1/conversations/recall", json=body).status_code == 200
    for words in (
        ["conversation", "recall", "port", "--in", "nope"],
        ["conversation", "recall", "port", "--in", "nope", "--block"],
        ["deep", "which ports were there?", "--conversation", "nope"],
    ):
        done = ran("--home", "home", *words)
        assert done.exit_code == 3, done.output
        assert "no conversation with id 'nope'" in done.stderr
        assert "No results" not in done.output

    async def scenario() -> None:
        async with connected(home) as session:
            for tool in ("recall_conversation", "deep_recall"):
                said = await refusal(session, tool, question="port", conversationId="nope")
                assert said == "no conversation with id 'nope'"

    anyio.run(scenario)


def test_errors_of_tools_speak_of_their_own_arguments(somewhere: Path) -> None:
    """What a tool refuses is named as its schema has it, though the facade says it otherwise."""
    facade = {
        "recall_memory": {"top_k": "topK", "min_score": "minScore"},
        "store_memory": {"text": "content", "payload.a": "payload.a", "supersedes": "supersedes"},
        "recall_conversation": {"conversation id": "conversationId", "budget": "budget"},
        "recall_context": {"include_sources": "includeSources", "focus[1]": "focus[1]"},
        "deep_recall": {
            "conversation_id": "conversationId",
            "include_memory": "includeMemory",
        },
        "save_turns": {"conversation id": "conversationId", "role": "role"},
        "forget": {"filters.AND[0].tags": "filters.AND[0].tags"},
    }
    for tool, names in facade.items():
        for what, wanted in names.items():
            assert all_tools()[tool].argument(what) == wanted

    async def scenario() -> None:
        async with connected(somewhere / "home", "--tools", "all") as session:
            for tool, arguments, begins in (
                (
                    "recall_conversation",
                    {"question": "x", "conversationId": "a/b"},
                    "conversationId:",
                ),
                ("deep_recall", {"question": "x", "conversationId": "a/b"}, "conversationId:"),
                ("deep_recall", {"question": "x", "scope": "current_session"}, "conversationId:"),
                ("deep_recall", {"question": " "}, "question:"),
                ("store_memory", {"content": " "}, "content:"),
                ("save_turns", {"conversationId": "..", "turns": []}, "conversationId:"),
            ):
                said = await refusal(session, tool, **arguments)
                assert said.startswith(begins), said

    anyio.run(scenario)


def test_the_formats_of_an_import_are_listed(somewhere: Path) -> None:
    """Help and refusal name the formats that there are."""
    assert set(KNOWN_FORMATS) == {*FORMATS, "anaphora"}
    shown = " ".join(ran("import", "--help").output.replace("│", " ").split())
    assert ", ".join(KNOWN_FORMATS) in shown
    done = ran("--home", "home", "import", str(Path(__file__)), "--format", "whatsapp")
    assert done.exit_code == 2
    assert all(name in done.stderr for name in KNOWN_FORMATS)


def test_messages_are_sentences(somewhere: Path) -> None:
    """No message says "given None" of what was not given, or names a thing without a verb."""
    assert str(InvalidInput("query", None, "is required")) == "query: is required"
    assert str(InvalidInput("query", 5, "must be a text")) == "query: must be a text (given 5)"
    assert "very large" in InvalidInput("top_k", 10**5000, "is too much").value
    done = ran("--home", "home", "project", "index", "nope")
    assert done.stderr.startswith("anaphora: root: the folder does not exist (given '")
    sources = Path(anaphora.__file__).parent
    for file in sources.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InvalidInput":
                reason = ast.unparse(node.args[2]).lstrip("f").strip("'\"")
                assert reason.split()[0] not in {"a", "an", "either", "at"}, f"{file}: {reason}"


def test_one_is_not_several(somewhere: Path) -> None:
    """One conversation is not "1 conversations"."""
    chat = somewhere / "chat.jsonl"
    chat.write_text('{"role": "user", "content": "tea"}\n')
    said = ran("--home", "home", "import", str(chat)).output
    assert "1 conversation: 1 turn added, 0 known already" in said
    chat.write_text('{"role": "user", "content": "tea"}\n{"role": "user", "content": "milk"}\n')
    assert (
        "1 conversation: 1 turn added, 1 known"
        in ran("--home", "home", "import", "chat.jsonl").output
    )


@pytest.mark.promise("recall.render")
def test_a_block_over_all_conversations_says_where_turns_are_from(somewhere: Path) -> None:
    """Turns of other conversations are never said to be of this one."""
    with Memory.open("home", embedder="hashing") as memory:
        memory.conversations.append_user("monday", "the port is 5433")
        memory.conversations.append("tuesday", "user", "the port is 5439", speaker="Mara")
        found = memory.recall_conversation(None, "which port?")
        day = f"{found[0].ts:%Y-%m-%d}"
        one = memory.recall_conversation("monday", "which port?")
        assert "in this conversation" in render_recall(one)
        assert "#0" not in render_recall(one)
        assert render_recall(found) == render_recall(found, across=True)
        assert render_recall(found, header="Before:", notice="").startswith("Before:\n- ")
    for words, here in (([], False), (["--in", "monday"], True)):
        done = ran("--home", "home", "conversation", "recall", "which port?", "--block", *words)
        assert done.exit_code == 0
        assert ("in this conversation" in done.output) == here
        assert (f"- User (monday #0, {day}): the port is 5433" in done.output) != here
        assert (f"- Mara (tuesday #0, {day}): the port is 5439" in done.output) != here
