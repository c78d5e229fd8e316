"""A home in a script that the bundled embedder hardly reads: its user is told so, once."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.commands import run_command
from tests.hooks.hook_desk import Agent, environment, write_transcript
from tests.mcp_client import connected
from tests.surfaces.rest_desk import BASE

from anaphora import Memory
from anaphora.testing import server_app

GREEK = (
    "Το ενοίκιο φεύγει από τον λογαριασμό στις τρεις του μήνα.",
    "Ο σκύλος φοβάται τις βροντές.",
    "Το εφεδρικό κλειδί είναι στους γείτονες του δευτέρου.",
    "Τον Αύγουστο πάμε δύο εβδομάδες στη θάλασσα.",
    "Ο φούρνος της γωνίας είναι κλειστός την Τρίτη.",
    "Ο κωδικός του ασύρματου είναι κολλημένος κάτω από το μηχάνημα.",
)
HINDI = (
    "किराया हर महीने की तीन तारीख को जाता है।",
    "कुत्ता बिजली कड़कने से डरता है।",
    "दूसरी चाबी पड़ोसियों के पास है।",
    "अगस्त में हम दो हफ्ते समुद्र पर जाएँगे।",
    "कोने की बेकरी मंगलवार को बंद रहती है।",
    "हमारी गाड़ी डीज़ल से चलती है।",
)
ENGLISH = (
    "The rent leaves the account on the third.",
    "The dog is afraid of thunder.",
    "The spare key is with the neighbours on the second floor.",
    "In August we go to the sea for two weeks.",
    "The bakery on the corner is shut on Tuesdays.",
    'The sign on the door says "Vorsicht vor dem Hund", and the postman laughs.',
)
SCRIPTS = {
    "Greek": (GREEK, "Πότε φεύγει το ενοίκιο από τον λογαριασμό;"),
    "Hindi": (HINDI, "किराया कब जाता है?"),
}
QUESTION = SCRIPTS["Greek"][1]
NAMED = "other languages"
COMMAND = "reindex --embedder ollama:MODEL"
GERMAN = (
    "Die Miete geht immer am Dritten vom Konto ab.",
    "Der Hund hat Angst vor dem Gewitter.",
    "うちの犬は雷が怖い。",
    "合鍵は隣の田中さんに預けてある。",
    "Собака боится грозы.",
    "Запасной ключ лежит у соседей.",
)


def tell_turns(memory: Memory, lines: Sequence[str]) -> None:
    for number, line in enumerate(lines):
        memory.conversations.append_user(f"chat {number}", line)


ASKED: dict[str, Callable[[Memory, str], tuple[str, ...]]] = {
    "memories": lambda memory, question: memory.recall(question).notices,
    "turns": lambda memory, question: memory.recall_conversation(None, question).notices,
    "everything": lambda memory, question: memory.search(question).notices,
}


@pytest.mark.promise("recall.language_told")
@pytest.mark.parametrize("script", SCRIPTS)
def test_who_remembers_is_told_once(tmp_path: Path, script: str) -> None:
    """The fifth memory in the language brings the notice with its command; nothing after it does,
    whichever lane and process asks. The doctor says it whenever it is asked."""
    lines, question = SCRIPTS[script]
    with Memory.open(tmp_path / "home") as memory:
        told = [memory.remember(line).notices for line in lines]
        assert [len(one) for one in told] == [0, 0, 0, 0, 1, 0]
        assert NAMED in told[4][0]
        assert COMMAND in told[4][0]
        assert str(tmp_path / "home") in told[4][0]
        tell_turns(memory, lines)
        assert [ask(memory, question) for ask in ASKED.values()] == [()] * 3
    with Memory.open(tmp_path / "home") as memory:
        assert memory.remember_many([f"{lines[0]} {lines[1]}"])[0].notices == ()
        assert [ask(memory, question) for ask in ASKED.values()] == [()] * 3
        found = {check.name: check.detail for check in memory.doctor()}
        assert COMMAND in found["language"]


@pytest.mark.promise("recall.language_told")
@pytest.mark.parametrize("lane", ["turns", "everything"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_who_asks_is_told_once(tmp_path: Path, script: str, lane: str) -> None:
    """What was only said brings the notice with the first question in that language."""
    lines, question = SCRIPTS[script]
    with Memory.open(tmp_path / "home") as memory:
        tell_turns(memory, lines)
        (notice,) = ASKED[lane](memory, question)
        assert (NAMED in notice, COMMAND in notice) == (True, True)
    with Memory.open(tmp_path / "home") as memory:
        assert ASKED[lane](memory, question) == ()


@pytest.mark.promise("recall.language_told")
def test_many_at_once_and_an_import_tell(tmp_path: Path) -> None:
    """The last of many memories has the notice, and so has the report of an import."""
    with Memory.open(tmp_path / "many") as memory:
        done = memory.remember_many(list(GREEK))
        assert [len(one.notices) for one in done] == [0, 0, 0, 0, 0, 1]
        memory.export(tmp_path / "export.jsonl")
    with Memory.open(tmp_path / "said") as memory:
        tell_turns(memory, HINDI)
        memory.export(tmp_path / "said.jsonl")
    for name in ("export", "said"):
        with Memory.open(tmp_path / f"{name} into") as memory:
            assert len(memory.import_(tmp_path / f"{name}.jsonl").notices) == 1
            assert memory.import_(tmp_path / f"{name}.jsonl").notices == ()


@pytest.mark.promise("recall.language_told")
def test_a_home_that_is_read_is_told_nothing(tmp_path: Path) -> None:
    """Twelve languages are read; a few texts in another script make no such home."""
    with Memory.open(tmp_path / "home") as memory:
        told = [one.notices for one in memory.remember_many([*ENGLISH, *GERMAN])]
        boxes = [f"The {number}th box is in the attic." for number in range(40)]
        told += [one.notices for one in memory.remember_many(boxes)]
        tell_turns(memory, [*ENGLISH, *GERMAN])
        told += [memory.remember(line).notices for line in GREEK[:5]]
        for ask in ASKED.values():
            told.append(ask(memory, QUESTION))
            told.append(ask(memory, "Wovor hat der Hund Angst?"))
        assert set(told) == {()}
        assert COMMAND not in str(memory.doctor())


@pytest.mark.promise("recall.language_told")
def test_questions_in_another_script_tell_in_time(tmp_path: Path) -> None:
    """Who asks an English home in Greek again and again is told, in whichever process."""
    told = []
    for number in range(6):
        with Memory.open(tmp_path / "home") as memory:
            memory.remember_many(list(ENGLISH))
            told.append(memory.recall(f"{QUESTION} {number}").notices)
    assert [len(one) for one in told] == [0, 0, 0, 0, 1, 0]
    assert NAMED in told[4][0]


@pytest.mark.promise("recall.language_told")
def test_an_embedder_that_reads_it_tells_nothing(tmp_path: Path) -> None:
    """Who has another embedder is told nothing, by the doctor neither."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        told = [memory.remember(line).notices for line in GREEK]
        tell_turns(memory, GREEK)
        told += [ask(memory, QUESTION) for ask in ASKED.values()]
        assert set(told) == {()}
        assert COMMAND not in str(memory.doctor())


@pytest.mark.promise("recall.language_told")
def test_a_hook_takes_the_notice_from_nobody(tmp_path: Path) -> None:
    """What a hook asks and imports goes to a model: the user is told with the next question."""
    session = "11111111-aaaa-4bbb-8ccc-000000000001"
    transcript = tmp_path / "transcripts" / f"{session}.jsonl"
    agent = Agent("claude-code", session, tmp_path, transcript, environment(tmp_path))
    write_transcript("claude-code", transcript, session, tmp_path, list(GREEK))
    agent.start()
    agent.tell("end", {})
    later = Agent("claude-code", "2", tmp_path, transcript.with_name("2.jsonl"), agent.environ)
    assert COMMAND not in later.start() + later.prompt(QUESTION)
    with Memory.open(tmp_path / "memory") as memory:
        assert len(memory.search(QUESTION).notices) == 1


@pytest.mark.promise("recall.language_told")
def test_another_machine_is_told_no_paths(tmp_path: Path) -> None:
    """A caller over HTTP gets the command in `notices`, once, and no path of the server."""
    with Memory.open(tmp_path / "home") as memory:
        app = server_app(memory, page=None)
        with TestClient(app, base_url=BASE) as client:
            kept = [client.post("/v1/memories", json={"text": text}).json() for text in GREEK]
            asked = client.post("/v1/recall", json={"query": QUESTION}).json()
        assert [len(one.get("notices", ())) for one in (*kept, asked)] == [0, 0, 0, 0, 1, 0, 0]
    assert COMMAND in kept[4]["notices"][0]
    assert str(tmp_path) not in kept[4]["notices"][0]


def test_the_command_line_tells_once(tmp_path: Path) -> None:
    """`remember`, `import` and `recall` say it on standard error, and one of them alone."""

    def anaphora(*words: str | Path) -> subprocess.CompletedProcess[str]:
        environ = {"ANAPHORA_READER": "off", "PATH": "", "HOME": str(tmp_path)}
        return run_command("--home", tmp_path / "home", *words, environ=environ)

    said = [anaphora("remember", line).stderr for line in GREEK]
    assert [COMMAND in one for one in said] == [False, False, False, False, True, False]
    export = tmp_path / "export.jsonl"
    assert anaphora("export", export).returncode == 0
    assert COMMAND not in anaphora("recall", QUESTION).stderr
    assert COMMAND in anaphora("doctor").stdout
    anew = run_command(
        "--home", tmp_path / "new", "import", export, "--no-embed",
        environ={"ANAPHORA_READER": "off", "PATH": "", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert COMMAND in anew.stderr


def test_an_agent_is_told_once(tmp_path: Path) -> None:
    """`store_memory` has the notice in both of its forms, for the agent to hand on."""

    async def scenario() -> None:
        async with connected(tmp_path / "home", embedder="minilm") as session:
            told = []
            for line in GREEK:
                done = await session.call_tool("store_memory", {"content": line})
                assert done.structured_content is not None
                shown = (str(done.content), json.dumps(done.structured_content))
                told.append([COMMAND in one for one in shown])
            assert told == [[False, False]] * 4 + [[True, True], [False, False]]
            asked = await session.call_tool("recall", {"question": QUESTION})
            assert COMMAND not in str(asked)

    asyncio.run(scenario())
