"""The audit trail: what was done, by whom and when; one chain, without a word, and verified."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.as_json import as_json
from tests.commands import python, run_command
from tests.conftest import Clock
from tests.mcp_client import call, connected
from tests.sqlite_driver import dbapi2
from tests.surfaces.rest_desk import in_namespace, served

from anaphora import Memory, keys
from anaphora.errors import AnaphoraError, InvalidInput, StoreError

CHILD = """
import sys
from anaphora import Memory
with Memory.open(sys.argv[1], embedder="hashing", warm=False) as memory:
    for number in range(int(sys.argv[3])):
        done = memory.remember(f"{sys.argv[2]} says {number}")
        memory.conversations.append_user(f"chat-{sys.argv[2]}", f"turn {number}")
        print(done.id, flush=True)
"""


def opened(home: Path, **given: Any) -> Memory:
    return Memory.open(home, embedder="hashing", warm=False, **given)


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with opened(tmp_path / "home", clock=clock) as made:
        yield made


def done(memory: Memory) -> list[tuple[str, str, int]]:
    """What the trail says was done, the first first."""
    return [(e.action, e.lane, e.count) for e in reversed(memory.audit.show(limit=1_000))]


def change(home: Path, *statements: str) -> None:
    """Change the database of a home behind its back."""
    connection = dbapi2.connect(str(home / "anaphora.db"))
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def deeds(memory: Memory) -> dict[str, str]:
    """One of each; the ids that the trail must name."""
    first = memory.remember("Zorvath rides a quagga.", path="zorvath.mount").id
    second = memory.remember("Zorvath rides a tapir.", path="zorvath.mount").id
    other = memory.remember("Rafi owns the deploy script.").id
    memory.update(other, tags=["xylograph"])
    memory.pin(other)
    memory.conversations.append_user("quokka-talks", "Zorvath came by.")
    memory.conversations.redact("quokka-talks", 0)
    memory.recall("who rides the okapi?")
    memory.search("where is Zorvath?")
    memory.recall_conversation(None, "Zorvath")
    memory.warm_up()
    memory.get(other)
    memory.forget(other, undoable=True)
    memory.undo_forget(other)
    memory.forget(second)
    memory.conversations.delete("quokka-talks")
    return {"first": first, "second": second, "other": other}


@pytest.mark.promise("audit.off")
def test_nothing_is_kept_until_it_is_asked_for(memory: Memory) -> None:
    """Off by default; switched off it stays off, what is there stays, and it goes on."""
    deeds(memory)
    assert (memory.audit.status().on, memory.audit.show()) == (False, ())
    assert memory.audit.verify().problem is None
    assert memory.audit.on().on
    assert memory.audit.on().entries == 1
    memory.remember("One.")
    assert memory.audit.off().entries == 3
    deeds(memory)
    assert memory.audit.on().entries == 4
    assert memory.audit.verify().problem is None
    assert [one[0] for one in done(memory)] == [
        "switched_on", "remembered", "switched_off", "switched_on",
    ]  # fmt: skip
    # Each namespace has its own.
    assert memory.scoped("work").audit.status().entries == 0


@pytest.mark.promise("audit.told")
def test_everything_that_is_done_is_told(memory: Memory, clock: Clock) -> None:
    """In its order, with ids, counts, times; found by memory, conversation and question."""
    memory.audit.on()
    at = clock.advance(hours=1)
    ids = deeds(memory)
    assert done(memory)[1:] == [
        ("remembered", "memory", 1),
        ("remembered", "memory", 1),
        ("changed", "memory", 1),
        ("remembered", "memory", 1),
        ("changed", "memory", 1),
        ("changed", "memory", 1),
        ("remembered", "turn", 1),
        ("forgotten", "turn", 1),
        ("recalled", "memory", memory.audit.show(action="recalled")[-1].count),
        ("recalled", "everything", memory.audit.show(action="recalled")[-2].count),
        ("recalled", "turn", 0),
        ("recalled", "warm_up", memory.audit.show(action="recalled")[0].count),
        ("read", "memory", 1),
        ("hidden", "memory", 1),
        ("restored", "memory", 1),
        ("forgotten", "memory", 2),
        ("forgotten", "turn", 1),
    ]
    assert memory.audit.verify().problem is None
    forgotten = memory.audit.show(action="forgotten", about=ids["second"])
    assert [set(one.ids) for one in forgotten] == [{ids["first"], ids["second"]}]
    assert {one.at for one in forgotten} == {at}
    about = memory.audit.show(about="quokka-talks")
    # Of a session whose only turn was redacted the warm-up tells nothing.
    assert [one.action for one in about] == ["forgotten", "forgotten", "remembered"]
    (asked,) = memory.audit.show(question="who rides the okapi?")
    assert (asked.action, asked.lane) == ("recalled", "memory")
    assert memory.audit.show(question="who rides the okapi") == ()
    page = memory.audit.show(limit=2)
    assert memory.audit.show(limit=1, before=page[-1].number)[0].number == page[-1].number - 1
    with pytest.raises(InvalidInput):
        memory.audit.show(limit=0)


@pytest.mark.promise("audit.told", "audit.wordless")
def test_documents_are_told_as_a_whole(memory: Memory) -> None:
    """Kept, found and forgotten, by their ids; neither their names nor their sections."""
    memory.audit.on()
    kept = memory.add_document(b"# Heron\n\nThe heron waits.\n", name="birds/heron.md").document
    memory.search("heron")
    memory.forget(kept.id)
    assert [one[:2] for one in done(memory)[1:]] == [
        ("remembered", "document"), ("recalled", "everything"), ("forgotten", "document"),
    ]  # fmt: skip
    assert all(one.count == 1 for one in memory.audit.show(limit=3))
    assert "heron" not in str(memory.audit.show())
    assert memory.audit.verify().problem is None


@pytest.mark.promise("audit.wordless")
def test_no_word_is_in_it(memory: Memory) -> None:
    """Neither of memories nor of questions, nor names of conversations, nor paths, nor tags."""
    memory.audit.on()
    deeds(memory)
    memory.recall_context("where does Zorvath live?")
    memory.deep_recall("how often did Zorvath ride?")
    memory.export(memory.home / "all.jsonl")
    memory.backup(memory.home / "all.backup")
    assert {"export", "backup"} <= {lane for _, lane, _ in done(memory)}
    connection = dbapi2.connect(str(memory.home / "anaphora.db"))
    rows = connection.execute("SELECT * FROM audit_entry").fetchall()
    connection.close()
    text = str(rows).casefold() + str(memory.audit.show(limit=1_000)).casefold()
    assert len(rows) > 15
    for word in ("zorvath", "quagga", "tapir", "okapi", "quokka", "xylograph", "rafi", "mount"):
        assert word not in text
    exported = (memory.home / "all.jsonl").read_text("utf-8")
    assert "audit" not in exported


@pytest.mark.promise("audit.verified")
@pytest.mark.parametrize("sealed", [False, True])
def test_whoever_changes_it_is_found_out(tmp_path: Path, *, sealed: bool) -> None:
    """A changed, a missing and a last entry, each by its number; and one who cut it all the way."""
    home = tmp_path / "home"
    with opened(home, encrypt="file" if sealed else None) as memory:
        memory.audit.on()
        for number in range(8):
            memory.remember(f"Thing {number}")
        early = memory.audit.status().tip
        memory.remember("One more.")
        assert memory.audit.verify(early).problem is None
    whole = (home / "anaphora.db").read_bytes()

    def found(*statements: str, tip: str | None = None) -> tuple[str, int] | None:
        change(home, *statements)
        try:
            with opened(home) as memory:
                problem = memory.audit.verify(tip).problem
                checks = {check.name: check.ok for check in memory.doctor()}
                assert checks["audit"] is (problem is None or problem.fault == "other_tip")
                return None if problem is None else (problem.fault, problem.number)
        finally:
            for file in home.glob("anaphora.db*"):
                file.unlink()
            (home / "anaphora.db").write_bytes(whole)

    assert found() is None
    other = "(SELECT body FROM audit_entry WHERE number = 4)"
    assert found(f"UPDATE audit_entry SET body = {other} WHERE number = 5") == ("changed", 5)
    assert found("UPDATE audit_entry SET link = 'aa' WHERE number = 3") == ("changed", 3)
    assert found("DELETE FROM audit_entry WHERE number = 4") == ("missing", 4)
    assert found("DELETE FROM audit_entry WHERE number IN (1, 2)") == ("missing", 1)
    assert found("DELETE FROM audit_entry WHERE number > 8") == ("truncated", 9)
    assert found("DELETE FROM audit_entry") == ("truncated", 1)
    cut = (
        "UPDATE head SET audit = 'on 8 ' || (SELECT link FROM audit_entry WHERE number = 8)",
        "DELETE FROM audit_entry WHERE number > 8",
    )
    # What was verified last is vouched for by the key of a sealed home; for another a tip is.
    assert found(*cut) == (("truncated", 10) if sealed else None)
    assert found(*cut, tip=early) == (("truncated", 10) if sealed else ("other_tip", 9))
    with opened(home) as memory, pytest.raises(InvalidInput, match="tip"):
        memory.audit.verify("nonsense")


@pytest.mark.promise("audit.one_chain")
def test_many_processes_and_kills_keep_one_chain(tmp_path: Path) -> None:
    """Eight at once, half of them killed: what was acknowledged, and all that is kept, is told."""
    home = tmp_path / "home"
    with opened(home) as memory:
        memory.audit.on()
    children = [
        subprocess.Popen(
            [*python(), "-c", CHILD, str(home), f"p{n}", "1000" if n % 2 else "12"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(8)
    ]
    told: set[str] = set()
    for n, child in enumerate(children):
        assert child.stdout is not None
        if n % 2:
            told |= {child.stdout.readline().strip() for _ in range(6)}
            child.kill()
        told |= {line.strip() for line in child.stdout if len(line) == 37}
        child.stdout.close()
        assert child.wait() in (0, -9)
    with opened(home) as memory:
        report = memory.audit.verify()
        assert report.problem is None
        entries = memory.audit.show(limit=100_000)
        assert [one.number for one in entries] == [*range(report.entries, 0, -1)]
        kept = {one.id for one in memory.list(limit=10_000).items}
        remembered = [
            one for e in entries if (e.action, e.lane) == ("remembered", "memory") for one in e.ids
        ]
        assert told <= kept == set(remembered)
        assert len(remembered) == len(kept)
        for n in range(8):
            turns = memory.conversations.get(f"chat-p{n}")
            assert turns is not None
            said = sum(e.count for e in memory.audit.show(about=f"chat-p{n}", limit=100_000))
            # Of the one that was being written when the kill came nobody was told.
            assert len(turns.turns) - 1 <= said <= len(turns.turns)


@pytest.mark.promise("audit.verified")
def test_it_holds_on_a_server_and_in_a_restored_and_encrypted_home(
    tmp_path: Path, clock: Clock, new_database: Callable[[], str]
) -> None:
    """PostgreSQL keeps the same chain; a backup's goes on; encrypting changes none of it."""
    with opened(tmp_path / "server", clock=clock, database=new_database()) as memory:
        memory.audit.on()
        deeds(memory)
        assert ("remembered", "turn", 1) in done(memory)
        assert memory.audit.verify().problem is None
    with opened(tmp_path / "home", clock=clock) as memory:
        memory.audit.on()
        deeds(memory)
        tip = memory.audit.status().tip
        expected = as_json(memory.audit.show(limit=1_000))
        memory.backup(tmp_path / "all.backup")
    Memory.restore(tmp_path / "all.backup", tmp_path / "restored")
    keys.encrypt(tmp_path / "restored", kept="file")
    raw = b"".join(one.read_bytes() for one in (tmp_path / "restored").glob("anaphora.db*"))
    assert b"switched_on" not in raw
    with opened(tmp_path / "restored", clock=clock) as memory:
        assert as_json(memory.audit.show(limit=1_000))[-len(expected) :] == expected
        memory.remember("It goes on.")
        assert memory.audit.verify(tip).problem is None
    keys.decrypt(tmp_path / "restored")
    with opened(tmp_path / "restored", clock=clock) as memory:
        assert memory.audit.verify(tip).problem is None


@pytest.mark.promise("audit.by_whom")
def test_over_http_it_is_read_by_those_who_may(tmp_path: Path) -> None:
    """Each request is told with its token's name; only who opens all namespaces reads the trail."""
    with served(tmp_path / "home") as (client, memory):
        memory.audit.on()
        all_of = memory.tokens.create("ops", namespaces=["*"], read_only=True).secret
        one_of = memory.tokens.create("app", namespaces=["default"]).secret
        app, ops = in_namespace("default", one_of), in_namespace("default", all_of)
        made = client.post("/v1/memories", json={"text": "Tea."}, headers=app)
        client.post("/v1/recall", json={"query": "what to drink?"}, headers=ops)
        for path in ("/v1/audit", "/v1/audit/status", "/v1/audit/verify"):
            assert client.get(path, headers=app).status_code == 403
            assert client.get(path, headers=ops).status_code == 200
        found = client.get("/v1/audit", params={"limit": 2}, headers=ops).json()
        assert [(one["action"], one["surface"], one["token"]) for one in found] == [
            ("recalled", "http", "ops"), ("remembered", "http", "app"),
        ]  # fmt: skip
        assert found[1]["ids"] == [made.json()["id"]]
        assert client.get("/v1/audit/status", headers=ops).json() == as_json(memory.audit.status())
        report = client.get("/v1/audit/verify", headers=ops).json()
        assert report == as_json(memory.audit.verify())
        assert client.get("/v1/audit/verify?tip=x", headers=ops).status_code == 422


@pytest.mark.promise("audit.by_whom")
def test_each_surface_says_that_it_was_it(tmp_path: Path) -> None:
    """The command line, an MCP client by its name, the hook of an agent; commands show it all."""
    home = tmp_path / "home"
    environ = {
        "ANAPHORA_EMBEDDER": "hashing",
        "ANAPHORA_READER": "off",
        "ANAPHORA_RESIDENT": "0",
        "HOME": str(tmp_path),
    }

    def run(*words: str, told: str = "") -> subprocess.CompletedProcess[str]:
        return run_command("--home", home, *words, environ=environ, text=told)

    assert "on, 1 entry" in run("audit", "on").stdout
    assert run("remember", "Never push to main.").returncode == 0
    event = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(tmp_path)}
    assert "Never push" in run("hook", "claude-code", told=json.dumps(event)).stdout

    async def by_mcp() -> None:
        async with connected(home) as session:
            await call(session, "recall_memory", question="what not to push?")

    anyio.run(by_mcp)
    found = json.loads(run("audit", "show", "--json").stdout)
    who = [(one["action"], one["surface"], one["agent"]) for one in found]
    assert ("recalled", "mcp", "mcp") in who
    assert ("recalled", "hook", "claude-code") in who
    assert who[-2:] == [("remembered", "command line", ""), ("switched_on", "command line", "")]
    assert "hook claude-code: recalled warm_up" in run("audit", "show").stdout
    verified = run("audit", "verify")
    assert (verified.returncode, "each follows from the last" in verified.stdout) == (0, True)
    change(home, "DELETE FROM audit_entry WHERE number = 2")
    broken = run("audit", "verify")
    assert (broken.returncode, "missing from entry 2 on" in broken.stdout) == (1, True)
    assert "BAD  audit" in run("doctor").stdout


@pytest.mark.promise("audit.verified")
@pytest.mark.parametrize(
    ("off", "on", "problem"),
    [
        # Off, and on again as it was.
        (("UPDATE head SET audit = 'off' || substr(audit, 3)",), None, ("changed", 1)),
        (("UPDATE head SET audit = NULL",), None, ("changed", 1)),
        # As if there had never been one; put back, or begun anew.
        (
            ("UPDATE head SET audit = NULL", "DELETE FROM audit_entry", "DELETE FROM audit_state"),
            None,
            ("changed", 1),
        ),
        (
            ("UPDATE head SET audit = NULL", "DELETE FROM audit_entry", "DELETE FROM audit_state"),
            "",
            ("changed", 1),
        ),
        # The head of an earlier, true end.
        (("UPDATE head SET audit = (SELECT text FROM earlier)",), None, ("changed", 4)),
    ],
)
@pytest.mark.parametrize("call", ["remember", "recall"])
def test_a_sealed_home_notices_that_it_was_off(
    tmp_path: Path, off: tuple[str, ...], on: str | None, problem: tuple[str, int], call: str
) -> None:
    """Whoever writes the database without the key can end no trail unseen: meanwhile calls fail,
    and `verify` says so afterwards, until the owner switches it on anew."""
    home = tmp_path / "home"
    with opened(home, encrypt="file") as memory:
        memory.audit.on()
        memory.remember("One.")
        if "earlier" in off[0]:
            memory.audit.off()
            change(home, "CREATE TABLE earlier AS SELECT audit AS text FROM head WHERE seq > 0")
            memory.audit.on()
        memory.remember("Two.")
        entries = memory.audit.status().entries
        saved = {"e": "audit_entry", "s": "audit_state", "h": "head"}
        change(home, *(f"CREATE TABLE {a} AS SELECT * FROM {b}" for a, b in saved.items()))
        change(home, *off)
    with opened(home) as memory, pytest.raises(StoreError, match="audit"):
        memory.remember("Untold.") if call == "remember" else memory.recall("one?")
    change(home, "DELETE FROM audit_entry", "DELETE FROM audit_state")
    if on is None:
        head = "SELECT audit FROM h WHERE h.namespace = head.namespace"
        change(
            home,
            "INSERT INTO audit_entry SELECT * FROM e",
            "INSERT INTO audit_state SELECT * FROM s",
            f"UPDATE head SET audit = ({head})",
        )
    with opened(home) as memory:
        if on is not None:
            memory.audit.on()
        found = memory.audit.verify().problem
        assert found is not None
        assert (found.fault, found.number) == problem
        assert not sound(memory)
        if on is None:
            assert memory.audit.status().entries == entries
            memory.audit.on()
            assert [one[0] for one in done(memory)][-2:] == ["recovered", "switched_on"]
            assert memory.audit.verify().problem is None
            memory.remember("Three.")
            assert sound(memory)
    keys.rotate_key(home, deep=True)
    with opened(home) as memory:
        assert (memory.audit.verify().problem is None) is (on is None)


@pytest.mark.promise("audit.verified")
def test_a_trail_from_before_the_encryption_is_vouched_for(tmp_path: Path) -> None:
    """From its next entry on, as that of an older build."""
    home = tmp_path / "home"
    with opened(home) as memory:
        begun(memory)
    keys.encrypt(home, kept="file")
    with opened(home) as memory:
        memory.recall("thing")
    change(
        home, "DELETE FROM audit_entry", "DELETE FROM audit_state", "UPDATE head SET audit = NULL"
    )
    with opened(home) as memory:
        memory.audit.on()
        found = memory.audit.verify().problem
        assert found is not None
        assert (found.fault, found.number) == ("truncated", 5)


@pytest.mark.promise("audit.verified")
def test_a_deleted_namespace_is_vouched_for_no_more(tmp_path: Path) -> None:
    """One of the same name begins anew, and keeps no trail until it is asked to."""
    with opened(tmp_path / "home", encrypt="file") as memory:
        begun(memory.scoped("work"))
        memory.delete_namespace("work")
        memory.scoped("work").remember("Anew.")
        assert memory.scoped("work").audit.on().entries == 1
        assert memory.scoped("work").audit.verify().problem is None


LINK = "ab" * 32
HEADS = [
    "garbage", "", "on", "on x y", "ongarbage", "on 3", f"on three {LINK}", f"On 3 {LINK}",
    f"on -1 {LINK}", f"on {'9' * 5_000} {LINK}", f"on ٣ {LINK}", f"on 3 {LINK} more",
    f"on 3 {LINK}\n", "on 3 zz", "off 3 é",
]  # fmt: skip


def begun(memory: Memory) -> Memory:
    """The memory, its trail switched on, and five entries in it."""
    memory.audit.on()
    for number in range(4):
        memory.remember(f"Thing {number}")
    return memory


def sound(memory: Memory) -> bool:
    """What doctor says of the trail."""
    return {check.name: check.ok for check in memory.doctor()}["audit"]


@pytest.mark.promise("audit.damaged")
def test_a_damaged_head_is_reported_and_lets_nothing_go_untold(memory: Memory) -> None:
    """Every call that the trail is told of fails in words until the trail is switched on anew."""
    begun(memory)
    (kept, *_) = memory.list().items
    calls: tuple[Callable[[], object], ...] = (
        memory.audit.status,
        lambda: memory.remember("Untold."),
        lambda: memory.recall("thing"),
        lambda: memory.get(kept.id),
        lambda: memory.conversations.append_user("chat", "Untold."),
        lambda: memory.forget(kept.id),
    )
    for head in HEADS:
        entries = memory.audit.status().entries
        change(memory.home, f"UPDATE head SET audit = '{head}'")
        report = memory.audit.verify()
        assert report.entries == entries
        assert report.problem is not None
        assert (report.problem.fault, report.problem.number) == ("changed", entries)
        for refused in calls:
            with pytest.raises(StoreError, match="audit"):
                refused()
        assert memory.audit.on().entries == entries + 2
        assert [one[0] for one in done(memory)][-2:] == ["recovered", "switched_on"]
        assert memory.audit.verify().problem is None
    assert {one.text for one in memory.list()} == {f"Thing {n}" for n in range(4)}
    change(memory.home, "UPDATE head SET audit = 'garbage'")
    assert not sound(memory)


@pytest.mark.promise("audit.damaged")
@pytest.mark.parametrize("sealed", [False, True])
def test_what_is_damaged_is_reported(tmp_path: Path, *, sealed: bool) -> None:
    """Head, key, links and numbers: `verify` names it, no error of Python comes, and what cannot
    be told fails in words until the trail is switched on anew. What is missing stays reported."""
    entries = "UPDATE audit_entry SET"
    cases: list[tuple[str, str, tuple[str, int], bool]] = [
        ("UPDATE head SET audit = NULL", "", ("changed", 5), True),
        ("UPDATE head SET audit = 'off' || substr(audit, 3)", "", ("changed", 5), True),
        ("UPDATE head SET audit = replace(audit, 'on 5', 'on 2')", "", ("changed", 5), False),
        ("UPDATE head SET audit = replace(audit, 'on 5', 'on 9')", "", ("truncated", 6), True),
        ("DELETE FROM audit_state", "", ("changed", 1), False),
        ("UPDATE audit_state SET value = 'no hex'", "", ("changed", 1), False),
        (f"{entries} link = 'é'", "AND number = 2", ("changed", 2), True),
        (f"{entries} link = ''", "AND number = 5", ("changed", 5), True),
        (f"{entries} number = 'abc'", "AND number = 3", ("missing", 3), True),
        (f"{entries} number = 'abc'", "AND number = 5", ("missing", 5), True),
        ("DELETE FROM audit_entry", "AND number > 3", ("truncated", 4), True),
    ]
    home = tmp_path / "home"
    with opened(home, encrypt="file" if sealed else None) as whole:
        for number, (statement, more, problem, writes) in enumerate(cases):
            memory = begun(whole.scoped(f"n{number}"))
            change(home, f"{statement} WHERE namespace = 'n{number}' {more}")
            found = memory.audit.verify().problem
            assert found is not None, statement
            assert (found.fault, found.number) == problem, statement
            if number < 2:
                assert not sound(memory)
            if not writes:
                with pytest.raises(AnaphoraError):
                    memory.remember("Untold.")
            memory.audit.off()
            before = memory.audit.on().entries
            memory.remember("One more.")
            memory.recall("thing")
            assert memory.audit.status().entries == before + 2
            if "audit_entry" in statement or "audit_state" in statement:
                still = memory.audit.verify().problem
                assert still is not None
                assert (still.fault.replace("missing", "truncated"), still.number) == (
                    problem[0].replace("missing", "truncated"),
                    problem[1],
                )


@pytest.mark.promise("audit.damaged")
def test_a_damaged_entry_is_a_typed_error(memory: Memory) -> None:
    """`show` says which one cannot be read; `verify` names it."""
    begun(memory)
    bodies = [
        "[]", "[" * 100_000, '{"at":1e400}', '{"at":99999999999999999999}', "{}", "null",
        '{"at":1,"x":2}', '{"at":null}',
    ]  # fmt: skip
    for body in bodies:
        change(memory.home, f"UPDATE audit_entry SET body = '{body}' WHERE number = 5")
        with pytest.raises(StoreError, match="entry 5"):
            memory.audit.show()
        assert len(memory.audit.show(before=5)) == 4
        found = memory.audit.verify().problem
        assert found is not None
        assert found.number == 5
    with pytest.raises(InvalidInput, match="tip"):
        memory.audit.verify(f"{'9' * 5_000}:{LINK}")
