"""The command line, in process: what people read, what programs read, and what goes wrong."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import sleep
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import typer
from tests.commands import begin_home, is_one_mistake, run_command
from typer.main import get_command

from anaphora import Memory
from anaphora.errors import InvalidInput
from anaphora.features.server.processes import free_port
from anaphora.surfaces.cli import mcp, recall
from anaphora.surfaces.cli.app import app
from anaphora.surfaces.cli.grammar import Option, read_command
from anaphora.surfaces.cli.offers import choose_offers, find_backups, find_offers
from anaphora.surfaces.cli.program import program
from anaphora.surfaces.cli.progress import long_work
from anaphora.testing import run_cli

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "conversation.json"
SMALL = [
    {
        "role": "user",
        "content": "Staging's database listens on port 5433.",
        "ts": "2026-03-02T09:00:00Z",
    },
    {"role": "assistant", "content": "Noted: staging is on 5433.", "ts": "2026-03-02T09:01:00Z"},
    {"role": "user", "content": "My bicycle has a flat tyre.", "ts": "2026-03-03T09:00:00Z"},
]


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@dataclass
class Cli:
    """Runs `anaphora` as a process, in a home of its own, with the word-hashing embedder."""

    home: Path

    def __call__(self, *words: str | Path) -> Ran:
        environ = {
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "PATH": "",
            "TZ": "UTC",
            "HOME": str(self.home),
        }
        done = run_command("--home", self.home, *words, environ=environ)
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "home")


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    file = tmp_path / "staging.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in SMALL))
    return file


@pytest.mark.promise("cli.json")
def test_import_list_show_recall_as_programs_see_them(cli: Cli, chat: Path) -> None:
    """Every command's JSON holds what was imported, verbatim."""
    imported = cli("conversation", "import", chat, "--json").data
    assert imported["added"] == len(SMALL)
    assert imported["problems"] == []
    (conversation_id,) = imported["conversation_ids"]

    (listed,) = cli("conversation", "list", "--json").data
    assert (listed["conversation_id"], listed["turn_count"]) == (conversation_id, len(SMALL))

    shown = cli("conversation", "show", conversation_id, "--json").data
    assert [turn["text"] for turn in shown["turns"]] == [line["content"] for line in SMALL]
    assert [turn["ts"] for turn in shown["turns"]] == [line["ts"] for line in SMALL]

    found = cli("conversation", "recall", "flat tyre", "--json").data
    assert found["hits"][0]["text"] == SMALL[2]["content"]
    assert found["degraded"] == []
    factors = found["hits"][0]["factors"]
    assert sum(factors.values()) == pytest.approx(found["hits"][0]["score"], abs=1e-4)

    stats = cli("stats", "--json").data
    assert (stats["conversations"], stats["turns"], stats["vectors"]) == (1, 3, 3)

    doctor = cli("doctor", "--json").data
    assert doctor["ok"] is True
    assert {check["name"] for check in doctor["checks"]} >= {"home", "threads", "truth", "index"}


@pytest.mark.promise("import.bounded")
def test_a_zip_bomb_is_partly_done(cli: Cli, tmp_path: Path) -> None:
    """What would fill the memory is named, the rest goes in, and the exit code is 5."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr("good.jsonl", json.dumps(SMALL[0]) + "\n")
        with packed.open("long.jsonl", "w") as member:
            for _ in range(300):
                member.write(b"a" * (1 << 20))
    (tmp_path / "recipe.json").write_text('{"flour": 2}')
    done = cli("import", tmp_path)
    assert (done.code, done.err.strip()) == (5, "")
    assert "1 turn added" in done.out
    assert "a.zip/long.jsonl: file: it would become 314,572,800 bytes" in done.out
    # Something was recognised: the list of formats would be beside the point.
    assert "Recognised are" not in done.out


def test_import_and_recall_as_people_see_them(cli: Cli, chat: Path) -> None:
    """The tables name counts, places, times and, when asked, the factors."""
    assert "3 turns added, 0 known already" in cli("conversation", "import", chat).out
    assert "0 turns added, 3 known already" in cli("conversation", "import", chat).out
    assert "My bicycle" not in cli("conversation", "list").out
    shown = cli("conversation", "recall", "which port is staging's database on?", "--why").out
    assert "2026-03-02 09:00 UTC" in shown
    assert "words" in shown
    block = cli("conversation", "recall", "staging port", "--block", "-k", "1").out
    assert block.startswith("<recalled-memory>\nRelevant in earlier conversations")


@pytest.mark.promise("recall.choice")
def test_recall_is_narrowed_by_time_speaker_and_role(cli: Cli, tmp_path: Path) -> None:
    """`--since`, `--until`, `--speaker` and `--role` leave others out; an empty span is named."""
    lines = [
        {"role": "user", "content": "Tea it is.", "ts": "2026-02-01T09:00:00Z", "speaker": "Ada"},
        {"role": "user", "content": "Tea, no.", "ts": "2026-03-01T09:00:00Z", "speaker": "Bob"},
        {"role": "assistant", "content": "Tea noted.", "ts": "2026-04-01T09:00:00Z"},
    ]
    (tmp_path / "tea.jsonl").write_text("\n".join(map(json.dumps, lines)))
    cli("import", tmp_path / "tea.jsonl")

    def texts(*words: str) -> list[str]:
        found = cli("conversation", "recall", "tea", *words, "--json").data
        return [hit["text"] for hit in found["hits"]]

    assert texts("--since", "2026-02-15", "--until", "2026-03-15") == ["Tea, no."]
    assert texts("--speaker", "ada") == ["Tea it is."]
    assert texts("--role", "assistant") == ["Tea noted."]
    empty = cli("conversation", "recall", "tea", "--since", "2027-01-01")
    assert "nothing was said since 2027-01-01" in empty.err
    wrong = cli("conversation", "recall", "tea", "--since", "soon")
    assert wrong.code == 2
    assert "expected a day or a time" in wrong.err


@pytest.mark.promise("cli.errors")
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["conversation", "show", "nothing"], 3, "no conversation with id 'nothing'"),
        (["conversation", "show", "../etc"], 2, "conversation id"),
        (["conversation", "delete", "nothing"], 3, "no conversation"),
        (["conversation", "redact", "nothing", "0"], 3, "no conversation"),
        (["conversation", "recall", "x", "--mode", "magic"], 2, "mode"),
        (["conversation", "import", "/no/such/file"], 2, "/no/such/file"),
        (["--namespace", "a/b", "stats"], 2, "namespace"),
    ],
)
def test_mistakes_are_one_clear_line(cli: Cli, words: list[str], code: int, says: str) -> None:
    """A mistake gives its exit code and one line that names it, never a traceback."""
    begin_home(cli.home)
    ran = cli(*words)
    assert ran.code == code, ran.err
    assert says in ran.err
    assert "Traceback" not in ran.err + ran.out
    assert is_one_mistake(ran.err)


@pytest.mark.promise("recall.current")
def test_the_shipped_example_is_answered(tmp_path: Path) -> None:
    """The demonstration's questions get what holds now, and until when it was otherwise."""
    with Memory.open(tmp_path) as memory:
        report = memory.import_(EXAMPLE)
        assert report.problems == ()
        assert report.added > 150
        memory.ready()
        port = memory.recall_conversation(None, "what port does the staging database listen on?")
        assert "to port 5439" in port[0].text
        assert port[0].ts.date().isoformat() == "2026-03-19"
        assert "listens on port 5433" in port[0].previous[0].text
        old = next(hit for hit in port if hit.text == port[0].previous[0].text)
        assert old.older_than is not None
        assert old.older_than.text == port[0].text
        pilot = memory.recall_conversation(None, "when is the pilot with Harbour Lane?")
        assert "14 April now" in pilot[0].text
        why = memory.recall_conversation(None, "why did we move the queue away from redis?")
        assert any("lost jobs" in hit.text for hit in why)


@pytest.mark.promise("cli.interrupted")
@pytest.mark.parametrize(
    ("at", "module", "said"),
    [
        ("staging.jsonl", "imports", "Everything read so far is stored"),
        ("turns", "vectors", "Everything is stored"),
    ],
)
def test_an_interrupted_import_says_what_is_kept(
    at: str, module: str, said: str, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while reading or while embedding: exit 130, what is kept, and what does the rest."""
    home = tmp_path / "home"

    @contextmanager
    def pressing(
        doing: str, *, kept: str, quiet: bool = False
    ) -> Iterator[Callable[[str, int, int], None]]:
        assert not quiet

        def report(label: str, done: int, total: int) -> None:
            if label == at:
                raise KeyboardInterrupt

        with long_work(doing, kept=kept):
            yield report

    monkeypatch.setenv("ANAPHORA_EMBEDDER", "hashing")
    monkeypatch.setattr(f"anaphora.surfaces.cli.{module}.long_work", pressing)
    done = run_cli("conversation", "import", chat, home=home)
    assert done.exit_code == 130
    assert said in done.output.replace("\n", " ")
    assert "`anaphora reindex` computes" in done.output.replace("\n", " ")
    monkeypatch.undo()
    monkeypatch.setenv("ANAPHORA_EMBEDDER", "hashing")
    assert run_cli("reindex", home=home).exit_code == 0
    stats = json.loads(run_cli("stats", "--json", home=home).output)
    assert (stats["turns"], stats["vectors"], stats["pending"]) == (len(SMALL), len(SMALL), 0)


@pytest.mark.promise("cli.progress")
def test_long_work_in_a_log_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it does and how far it is; short work and a program's command show nothing."""
    monkeypatch.setattr("anaphora.surfaces.cli.progress.EVERY", 0.02)
    for quiet in (True, False):
        with long_work("Backing up", kept="Nothing was written.", quiet=quiet) as progress:
            progress("threads", 3, 4)
            while not quiet and "%" not in (shown := capsys.readouterr().err):
                sleep(0.01)
        assert quiet or "Backing up: threads, 75 % (3 of 4)" in shown
    monkeypatch.undo()
    with long_work("Backing up", kept="Nothing was written.") as progress:
        progress("threads", 3, 4)
    assert capsys.readouterr().err == ""


@pytest.mark.promise("cli.offers")
def test_nothing_needs_a_path_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports and transcripts are found and chosen by number; a backup has a name by itself."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANAPHORA_EMBEDDER", "hashing")
    monkeypatch.setenv("ANAPHORA_HOME", str(tmp_path / "home"))
    downloads = tmp_path / "Downloads"
    sessions = tmp_path / ".codex" / "sessions"
    for folder in (downloads, sessions):
        folder.mkdir(parents=True)
    shutil.copy(EXAMPLE, downloads / "data-2026.json")
    (downloads / "invoice.json").write_text('{"total": 5}')
    (sessions / "rollout-1.jsonl").write_text("{}\n")
    offers = find_offers()
    assert [(offer.what, offer.path.name) for offer in offers] == [
        ("1 transcript of codex", "sessions"),
        ("export of Claude.ai", "data-2026.json"),
    ]
    with pytest.raises(InvalidInput, match="no terminal"):
        choose_offers(offers)
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("anaphora.surfaces.cli.offers.sys", terminal)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "2")
    assert choose_offers(offers) == [downloads / "data-2026.json"]
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "3")
    with pytest.raises(InvalidInput, match="from 1 to 2"):
        choose_offers(offers)
    for word in ("remember tea", "backup", "backup"):
        assert run_cli(*word.split()).exit_code == 0
    backups = sorted(tmp_path.glob("anaphora-*.backup"))
    assert len(backups) == 2
    monkeypatch.setenv("ANAPHORA_HOME", str(tmp_path / "fresh"))
    assert [offer.path for offer in find_backups()] == sorted(
        backups, key=lambda path: path.stat().st_mtime, reverse=True
    )
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "1")
    assert run_cli("restore").exit_code == 0
    assert "tea" in run_cli("list").output


@pytest.mark.enable_socket
@pytest.mark.promise("cli.start")
def test_the_page_is_started_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one says where the first is, and takes no port of another program for it."""
    from anaphora.features.server import start

    monkeypatch.setenv("ANAPHORA_EMBEDDER", "hashing")
    words = ["--home", str(tmp_path / "home"), "start", "--no-browser"]
    with start._single_instance(tmp_path / "home") as state:
        assert state is not None
        state.write_text("7412")
        done = run_cli(*words)
        assert done.exit_code == 0
        assert "runs already, in another window, at http://127.0.0.1:7412" in done.output
    with (
        start._single_instance(tmp_path / "home") as state,
        Memory.open(tmp_path / "home") as memory,
    ):
        assert state is not None
        assert any("drag an export" in line for line in start._describe(memory, 2))
        memory.remember("Tea is at four.")
        assert "Your memory has 1 memory." in list(start._describe(memory, 0))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert free_port("127.0.0.1", [number]) == 0


@pytest.mark.promise("import.words_first")
def test_an_import_and_a_project_may_leave_their_vectors_to_questions(
    cli: Cli, chat: Path, tmp_path: Path
) -> None:
    """With --no-embed words answer and say what is lacking; without it the vectors are there."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.md").write_text("# Herons\n\nA heron stood in the river.\n")
    assert cli("import", chat, "--no-embed").code == 0
    assert cli("project", "index", project, "--no-embed").code == 0
    assert cli("stats", "--json").data["pending"] == len(SMALL)
    assert "listens on port 5433" in cli("recall", "which port is staging on?").out
    assert cli("import", chat).code == 0
    assert cli("project", "index", project).code == 0
    assert cli("stats", "--json").data["pending"] == 0
    assert "no vector yet" not in cli("project", "recall", "a heron in the river").err


@pytest.mark.promise("cli.interrupted")
def test_what_waits_for_vectors_names_the_command(cli: Cli, tmp_path: Path) -> None:
    """Wherever vectors are to come, the command that makes them is named, and makes all of them."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.md").write_text("# Herons\n\nA heron stood in the river.\n")
    with Memory.open(cli.home, embedder="hashing") as memory:
        memory.conversations.append_user("c", "A heron stood in the river.")
        memory.index_project(folder, embed=False)
    for command in (("stats",), ("doctor",)):
        assert "`anaphora reindex` makes the vectors now" in cli(*command).out
    assert cli("reindex").code == 0
    found = cli("stats", "--json").data
    assert (found["pending"], found["sections_pending"]) == (0, 0)
    for command in (("stats",), ("doctor",)):
        assert "reindex" not in cli(*command).out


@pytest.mark.promise("cli.json")
def test_notes_and_the_diary_are_read(cli: Cli) -> None:
    """What was noted and done is listed, the latest first, with short ids that `forget` takes."""
    begin_home(cli.home)
    assert "no notes yet" in cli("notes").out
    cli("observe", "Parsers are written with a table.", "--kind", "decision")
    cli("diary", "The parser was written.", "--subject", "parser")
    listed = cli("notes").out
    assert "decision" in listed
    assert "Parsers are written with a table." in listed
    assert "parser" in cli("diary").out
    assert [one["summary"] for one in cli("diary", "--json").data] == ["The parser was written."]
    (noted,) = cli("notes", "--json").data
    assert noted["id"][-8:] in listed
    assert cli("forget", noted["id"][-8:], "--yes").code == 0
    assert cli("notes", "--json").data == []
    assert cli("undo-forget", noted["id"]).code == 0
    assert [one["id"] for one in cli("notes", "--json").data] == [noted["id"]]


@pytest.mark.promise("cli.parts")
def test_a_command_is_the_same_without_the_parts_of_others() -> None:
    """Each command comes with few others, and takes what it takes among all of them."""
    whole = get_command(app).commands  # type: ignore[attr-defined]
    for name, command in whole.items():
        part = get_command(program(name)).commands  # type: ignore[attr-defined]
        assert [one.name for one in part[name].params] == [one.name for one in command.params]
        assert part.keys() < whole.keys()
    assert get_command(program("recal")).commands.keys() == whole.keys()  # type: ignore[attr-defined]


@pytest.mark.promise("cli.errors")
def test_the_help_begins_with_what_most_people_need() -> None:
    """Twelve commands in sections by what one wants; the others, too, for who asks for all."""
    sections = [
        "Options",
        "Recall",
        "Remember",
        "Bring in",
        "Projects",
        "Devices",
        "Agents and server",
        "Care",
    ]
    whole = get_command(app).commands  # type: ignore[attr-defined]
    shown = {name for name, command in whole.items() if not command.hidden}

    def listed(*words: str) -> tuple[list[str], list[str]]:
        lines = run_cli(*words, env={"COLUMNS": "200"}).stdout.splitlines()
        titles = [line.strip("╭─╮ ") for line in lines if line.startswith("╭")]
        return titles, [w[1] for w in map(str.split, lines) if len(w) > 2 and w[1] in shown]

    for words in ("", "--help", "help"):
        titles, names = listed(*words.split())
        assert (titles, len(names)) == (sections, 12)
    for words in ("--help --all", "--all --help", "help all"):
        titles, names = listed(*words.split())
        assert (titles, sorted(names)) == (sections, sorted(shown))
    assert run_cli("help", "sync", "pair").stdout == run_cli("sync", "pair", "--help").stdout


@pytest.mark.promise("cli.parts")
def test_a_question_does_not_load_the_other_commands(cli: Cli) -> None:
    """Neither the modules of other commands nor typer is imported for it, whatever its options."""
    begin_home(cli.home)
    options = [word for option in recall.OPTIONS for word in valid_words(option)]
    words = ["anaphora", "--home", str(cli.home), "recall", *options]
    code = (
        "import sys; from anaphora.surfaces.cli import main\n"
        f"sys.argv = {words!r}\n"
        "try: main()\nexcept SystemExit: pass\n"
        "own = sorted(m for m in sys.modules if m.startswith(('anaphora.surfaces', 'typer')))\n"
        "print(own, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={
            "ANAPHORA_EMBEDDER": "hashing", "ANAPHORA_READER": "off",
            "PATH": "", "HOME": str(cli.home),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        },
    )  # fmt: skip
    loaded = done.stderr.splitlines()[-1]
    assert "anaphora.surfaces.cli.found" in loaded
    others = ("cli.memories", "cli.deep", "cli.sync", "cli.serve", "cli.program", "typer")
    assert not any(other in loaded for other in others)


@pytest.mark.promise("cli.parts")
def test_a_plain_question_is_answered_as_one_with_options(cli: Cli, chat: Path) -> None:
    """A question by itself is asked without what reads options, and its answer is the same."""
    assert cli("conversation", "import", chat).code == 0
    question = "which port is staging on?"
    plain = cli("recall", question)
    assert "5433" in plain.out
    assert plain == cli("recall", question, "--top-k", "8")
    (found, *_) = cli("recall", question, "--json").data["hits"]
    assert found["text"] in {line["content"] for line in SMALL}
    none = cli("--namespace", "none", "recall", question)
    assert (none.code, none.out) == (3, "")
    assert none == cli("--namespace", "none", "recall", question, "--top-k", "8")


def valid_words(option: Option) -> list[str]:
    """The words of a valid option, or of an argument."""
    if option.is_argument:
        return ["what?"]
    name = option.typed_names()[-1]
    days = {"since": "2026-01-01", "until": "2026-12-31"}
    text = days.get(option.parameter, "memory") if option.kind is str else "1"
    return [name] if option.kind is bool else [name, text]


def read_by_typer(name: str, words: list[str]) -> dict[str, Any] | None:
    """The values that typer reads; None if it refuses the words or shows the help."""
    command = get_command(program(name)).commands[name]  # type: ignore[attr-defined]
    try:
        with redirect_stdout(io.StringIO()):
            params = command.make_context(name, list(words)).params
    except Exception as refusal:
        if not isinstance(refusal, typer.Exit) and not hasattr(refusal, "exit_code"):
            raise
        return None
    # A command gets None for an option that may be repeated and is not there.
    return {parameter: None if value == () else value for parameter, value in params.items()}


@pytest.mark.promise("cli.parts")
@pytest.mark.parametrize("module", [recall, mcp], ids=["recall", "mcp"])
def test_a_table_is_read_as_typer_reads_it(module: ModuleType) -> None:
    """Without typer, words have typer's meaning or none; valid options always have one."""
    name = module.__name__.rpartition(".")[2]
    texts = [word for o in module.OPTIONS if o.is_argument for word in valid_words(o)]
    for option in module.OPTIONS:
        words = valid_words(option) + ([] if option.is_argument else texts)
        assert (values := read_command(words, module.OPTIONS)) is not None, words
        assert values == read_by_typer(name, words), words
    names = [typed for o in module.OPTIONS if not o.is_argument for typed in o.typed_names()]
    pool = [
        *names, *(f"{typed}={text}" for typed in names for text in ("", "1", "x")),
        "a", "", "0", "1", "3.5", ".5", "1.", ".", "-1", "1_0", "+2", "٣", "²", "1e1", "nan",
        "-", "--", "--nope", "--top", "-k1", "-5 degrees", "--help", "--version", "9" * 20,
    ]  # fmt: skip
    chance = Random(40)
    taken = 0
    for _ in range(2_000):
        words = chance.choices(pool, k=chance.randint(0, 4))
        words.insert(chance.randint(0, len(words)), "a")
        values = read_command(words, module.OPTIONS)
        assert values is None or values == read_by_typer(name, words), words
        taken += values is not None
    assert taken > 20
