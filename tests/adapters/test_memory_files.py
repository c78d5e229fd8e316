"""Claude's memory tool: what its documentation says, and what files gain by being memories."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import python

from anaphora import Memory, NewMemory
from anaphora.adapters.memory_files import CATEGORY, SECTION_CATEGORY, MemoryFiles
from anaphora.errors import CommandRefused, Conflict, InvalidInput


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        opened.ready()
        yield opened


@pytest.fixture
def files(memory: Memory) -> MemoryFiles:
    return MemoryFiles(memory)


def create(files: MemoryFiles, path: str, text: str) -> str:
    return files.handle({"command": "create", "path": path, "file_text": text})


def view(files: MemoryFiles, path: str, *lines: int) -> str:
    more: dict[str, Any] = {"view_range": list(lines)} if lines else {}
    return files.handle({"command": "view", "path": path, **more})


def replace(files: MemoryFiles, path: str, old: str, new: str) -> str:
    return files.handle({"command": "str_replace", "path": path, "old_str": old, "new_str": new})


def insert(files: MemoryFiles, path: str, line: int, text: str) -> str:
    command = {"command": "insert", "path": path, "insert_line": line, "insert_text": text}
    return files.handle(command)


def delete(files: MemoryFiles, path: str) -> str:
    return files.handle({"command": "delete", "path": path})


def rename(files: MemoryFiles, old: str, new: str) -> str:
    return files.handle({"command": "rename", "old_path": old, "new_path": new})


def content(files: MemoryFiles, path: str) -> str:
    """The content of a file, out of its numbered lines."""
    shown = view(files, path)
    assert shown.startswith(f"Here's the content of {path} with line numbers:\n"), shown
    return "\n".join(line[7:] for line in shown.split("\n")[1:])


LISTING = (
    "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and"
    " node_modules:\n"
)


@pytest.mark.promise("adapters.memory_tool")
def test_a_file_is_created_once_and_viewed(files: MemoryFiles) -> None:
    """`create` never overwrites; `view` numbers lines in six characters and a tab, from 1."""
    assert view(files, "/memories") == LISTING.format("/memories") + "0B\t/memories"
    path = "/memories/notes.txt"
    assert view(files, path) == f"The path {path} does not exist. Please provide a valid path."
    text = "\n".join(["Hello World", "This is line two", *"345678", "", "Line ten"])
    assert create(files, path, text) == f"File created successfully at: {path}"
    assert create(files, path, "other") == f"Error: File {path} already exists"
    shown = view(files, path).split("\n")
    assert shown[0] == f"Here's the content of {path} with line numbers:"
    assert shown[1] == "     1\tHello World"
    assert shown[-1] == "    10\tLine ten"
    assert view(files, path, 2, 3).split("\n")[1:] == ["     2\tThis is line two", "     3\t3"]
    assert view(files, path, 9, -1).split("\n")[1:] == ["     9\t", "    10\tLine ten"]
    assert "within [1, 10]" in view(files, path, 11, 12)
    assert "within [1, 10]" in view(files, path, 3, 2)


@pytest.mark.promise("adapters.memory_tool")
def test_a_directory_is_listed_two_levels_deep(files: MemoryFiles) -> None:
    """Sizes as people write them, a tab, the path; hidden items and node_modules are left out."""
    create(files, "/memories/b.md", "x" * 2048)
    create(files, "/memories/a/one.md", "y" * 512)
    create(files, "/memories/a/deep/er/two.md", "z" * 1126)
    for hidden in ("/memories/.git/config", "/memories/a/.env.md", "/memories/node_modules/m.js"):
        create(files, hidden, "hidden")
    assert view(files, "/memories") == LISTING.format("/memories") + "\n".join(
        [
            "3.6K\t/memories",
            "1.6K\t/memories/a/",
            "1.1K\t/memories/a/deep/",
            "512B\t/memories/a/one.md",
            "2K\t/memories/b.md",
        ]
    )
    assert view(files, "/memories/a/deep").split("\n")[1:] == [
        "1.1K\t/memories/a/deep",
        "1.1K\t/memories/a/deep/er/",
        "1.1K\t/memories/a/deep/er/two.md",
    ]
    assert "hidden" in view(files, "/memories/a/.env.md")


@pytest.mark.promise("adapters.memory_tool")
def test_a_text_is_replaced_where_it_stands_once(files: MemoryFiles) -> None:
    """The answer shows the change; a text that is not there, or not once, changes nothing."""
    path = "/memories/preferences.txt"
    create(files, path, "one\ntwo\nFavorite color: blue\nfour\nblue whales\nsix")
    assert replace(files, path, "color: blue", "color: green") == (
        "The memory file has been edited. Here is the snippet showing the change (with line"
        " numbers):\n     1\tone\n     2\ttwo\n     3\tFavorite color: green\n     4\tfour"
        "\n     5\tblue whales"
    )
    assert replace(files, path, "color: red", "x") == (
        f"No replacement was performed, old_str `color: red` did not appear verbatim in {path}."
    )
    assert replace(files, path, "", "x").startswith("No replacement was performed, old_str ``")
    replace(files, path, "six", "blue\nblue")
    assert replace(files, path, "blue", "x") == (
        "No replacement was performed. Multiple occurrences of old_str `blue` in lines: 5, 6, 7."
        " Please ensure it is unique"
    )
    missing = "Error: The path /memories/no.txt does not exist. Please provide a valid path."
    assert replace(files, "/memories/no.txt", "a", "b") == missing
    create(files, "/memories/dir/file", "a")
    assert "does not exist" in replace(files, "/memories/dir", "a", "b")
    assert content(files, path) == "one\ntwo\nFavorite color: green\nfour\nblue whales\nblue\nblue"
    del_command = {"command": "str_replace", "path": path, "old_str": "one\n"}
    assert "edited" in files.handle(del_command)
    assert content(files, path).startswith("two\n")


@pytest.mark.promise("adapters.memory_tool")
@pytest.mark.parametrize(
    ("text", "line", "inserted", "expected"),
    [
        ("Line 1\nLine 2", 1, "Inserted", "Line 1\nInserted\nLine 2\n"),
        ("Line 1\nLine 2", 0, "First\n", "First\nLine 1\nLine 2\n"),
        ("Line 1\nLine 2\n", 2, "Last\n", "Line 1\nLine 2\nLast\n"),
        ("Line 1\n", 1, "a\n\n", "Line 1\na\n\n"),
        ("", 0, "a", "a\n"),
        ("a\r\nb\r\n", 1, "c", "a\r\nc\nb\r\n"),
    ],
)
def test_lines_are_inserted(
    files: MemoryFiles, text: str, line: int, inserted: str, expected: str
) -> None:
    """`insert_line` is the line behind which they come; the file then ends with a line break."""
    path = "/memories/todo.txt"
    create(files, path, text)
    assert insert(files, path, line, inserted) == f"The file {path} has been edited."
    assert content(files, path) == expected


@pytest.mark.promise("adapters.memory_tool")
def test_where_nothing_can_be_inserted(files: MemoryFiles) -> None:
    """A line that there is not, and a file that there is not, are said as documented."""
    path = "/memories/todo.txt"
    assert insert(files, path, 0, "x") == f"Error: The path {path} does not exist"
    create(files, path, "a\nb\n")
    for line in (-1, 3):
        assert insert(files, path, line, "x") == (
            f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of"
            " lines of the file: [0, 2]"
        )


@pytest.mark.promise("adapters.memory_tool")
def test_files_and_directories_are_deleted(files: MemoryFiles) -> None:
    """A directory goes with all that is in it; the memory directory itself stays."""
    for path in ("/memories/a/1", "/memories/a/b/2", "/memories/ab"):
        create(files, path, "text")
    assert delete(files, "/memories/a") == "Successfully deleted /memories/a"
    assert delete(files, "/memories/a") == "Error: The path /memories/a does not exist"
    assert "Cannot delete the /memories directory itself" in delete(files, "/memories/")
    assert view(files, "/memories").split("\n")[2:] == ["4B\t/memories/ab"]
    assert files.clear() == "All memory cleared"
    assert view(files, "/memories").split("\n")[1:] == ["0B\t/memories"]


@pytest.mark.promise("adapters.memory_tool")
def test_files_and_directories_are_renamed(files: MemoryFiles) -> None:
    """All of a directory moves or nothing, and nothing is overwritten."""
    for path in ("/memories/a/1", "/memories/a/b/2", "/memories/c"):
        create(files, path, path)
    done = rename(files, "/memories/a", "/memories/x/y")
    assert done == "Successfully renamed /memories/a to /memories/x/y"
    assert content(files, "/memories/x/y/b/2") == "/memories/a/b/2"
    assert (
        rename(files, "/memories/a", "/memories/q") == "Error: The path /memories/a does not exist"
    )
    for there in ("/memories/c", "/memories/x", "/memories"):
        expected = f"Error: The destination {there} already exists"
        assert rename(files, "/memories/x/y/1", there) == expected
    assert "into itself" in rename(files, "/memories/x", "/memories/x/z")
    assert "is a file, not a directory" in rename(files, "/memories/x", "/memories/c/x")
    assert "is a file, not a directory" in create(files, "/memories/c/d/e", "text")
    assert "Cannot rename" in rename(files, "/memories", "/memories/y")


@pytest.mark.promise("adapters.memory_tool")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ({}, "Unknown command None"),
        ({"command": "format"}, "one of view, create, str_replace, insert, delete, rename"),
        ({"command": ["view"]}, "Unknown command"),
        ({"command": "create", "path": "/memories/a"}, "`create` needs `file_text`"),
        ({"command": "view", "path": 3}, "`path` of `view` should be of type str"),
        ({"command": "view", "path": "/memories", "view_range": "1"}, "of type list"),
        (
            {"command": "insert", "path": "/memories/a", "insert_line": True, "insert_text": ""},
            "int",
        ),
    ],
)
def test_commands_that_are_none(files: MemoryFiles, command: dict[str, Any], said: str) -> None:
    """What a model gets wrong is said to it; `run` raises the same."""
    assert said in files.handle(command)
    with pytest.raises(CommandRefused):
        files.run(command)


@pytest.mark.promise("adapters.memory_tool")
def test_what_is_too_long_is_said(files: MemoryFiles) -> None:
    """A file that is too large is not written; one that is long is shown in parts."""
    assert "a file has at most 1,000,000" in create(files, "/memories/huge", "x" * 1_000_001)
    create(files, "/memories/long", "\n".join(["word " * 20] * 1_500))
    shown = view(files, "/memories/long")
    assert len(shown) < 120_000
    assert shown.endswith("to 1500 are not shown: use view_range [991, 1500].)")
    assert view(files, "/memories/long", 991, 1500).endswith("  1500\t" + "word " * 20)


OUTSIDE = [
    "/etc/passwd",
    "memories/a",
    "/memories_of_others/a",
    "/memories/../../secrets",
    "/memories/a/../../secrets",
    "/memories/..",
    "/memories/./a",
    "/memories/%2e%2e/%2e%2e/secrets",
    "/memories/%2E%2E%2Fsecrets",
    "/memories/%252e%252e%252fsecrets",
    "/memories/..%2fsecrets",
    "/memories/..\\..\\secrets",
    "/memories/%5c..%5csecrets",
    "/%6demories/../a",
    "/memories/a\0/b",
    "/memories/a%00b",
    "/memories/a\nb",
    "/memories/ a",
    "/memories/" + "x" * 1_100,
    "/memories/AKIAIOSFODNN7EXAMPLE.md",
]


@pytest.mark.promise("adapters.memory_tool_paths")
@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out(memory: Memory, files: MemoryFiles, path: str) -> None:
    """Every command refuses it, and nothing is kept under any name."""
    for said in (
        view(files, path),
        create(files, path, "text"),
        replace(files, path, "a", "b"),
        insert(files, path, 0, "a"),
        delete(files, path),
        rename(files, path, "/memories/here"),
        rename(files, "/memories/here", path),
    ):
        assert said.startswith("Error: ")
    assert len(memory.list()) == 0


@pytest.mark.promise("adapters.memory_tool_paths")
@given(path=st.text(alphabet="ab./\\%2eE5cfF \0", max_size=12).map("/memories/".__add__))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_path_that_is_taken_is_one_of_the_directory(memory: Memory, path: str) -> None:
    """What is kept stands under the directory, and every command finds it again as it was named."""
    files = MemoryFiles(memory)
    taken = create(files, path, "text").startswith("File created")
    kept = [record.path or "" for record in memory.list()]
    assert len(kept) == taken
    for place in kept:
        assert place.startswith("/memories/")
        assert not {"", ".", ".."} & set(place.split("/")[2:])
        assert content(files, path) == "text"
        assert "Successfully" in delete(files, path)


NAMES = ["/memories/a", "/memories/b.md", "/memories/d/a", "/memories/d/e/f", "/memories/d"]
TEXTS = st.sampled_from(["", " \n", "one\ntwo\n", "# A\n" + "long line\n" * 60, "nul \0 \ud800 é"])
COMMANDS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(NAMES), TEXTS),
    st.tuples(st.just("insert"), st.sampled_from(NAMES), TEXTS),
    st.tuples(st.just("delete"), st.sampled_from(NAMES)),
    st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
)


def plainly(there: dict[str, str], name: str, path: str, more: str = "") -> None:
    """The same on a dictionary."""
    below = [one for one in there if one == path or one.startswith(f"{path}/")]

    def is_taken(place: str) -> bool:
        above = any(place.startswith(f"{one}/") for one in there)
        return above or any(one == place or one.startswith(f"{place}/") for one in there)

    if name == "create" and not is_taken(path):
        there[path] = more
    elif name == "insert" and path in there:
        text = there[path]
        there[path] = more.removesuffix("\n") + "\n" + text
        if text and not text.endswith("\n"):
            there[path] += "\n"
    elif name == "delete":
        for one in below:
            del there[one]
    elif name == "rename" and below and not is_taken(more) and not more.startswith(f"{path}/"):
        for one in below:
            there[more + one[len(path) :]] = there.pop(one)


@pytest.mark.promise("adapters.memory_tool_model")
@given(commands=st.lists(COMMANDS, max_size=12))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_commands_leave_what_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, commands: list[tuple[str, ...]]
) -> None:
    """Contents to the character, and of sections those that the files have, no other."""
    there: dict[str, str] = {}
    with Memory.open(tmp_path_factory.mktemp("home"), embedder="hashing", warm=False) as memory:
        files = MemoryFiles(memory)
        for name, path, *more in commands:
            plainly(there, name, path, *more)
            if name == "create":
                create(files, path, more[0])
            elif name == "insert":
                insert(files, path, 0, more[0])
            elif name == "delete":
                delete(files, path)
            else:
                rename(files, path, more[0])
        found = {one.path: one for one in memory.list({"category": CATEGORY}, limit=500)}
        assert set(found) == set(there)
        for path, text in there.items():
            assert content(files, path) == text
        sections = memory.list({"category": SECTION_CATEGORY}, limit=500)
        owners = {(one.path or "").rpartition("#")[0] for one in sections}
        assert owners == {path for path, text in there.items() if len(text) > 400}
        for one in sections:
            # A piece stands behind its heading, which may be further above.
            lines = there[(one.path or "").rpartition("#")[0]].split("\n")
            assert set(one.text.split("\n")) <= set(lines)


CHILD = """
import sys
from anaphora import Memory
from anaphora.adapters.memory_files import MemoryFiles
with Memory.open(sys.argv[1], embedder="hashing") as memory:
    files = MemoryFiles(memory)
    for n in range(8):
        mine = f"{sys.argv[2]}{n}"
        command = {"path": "/memories/log.md", "old_str": "(end)", "new_str": f"{mine}\\n(end)"}
        files.run({"command": "str_replace", **command})
        print(files.handle({"command": "create", "path": f"/memories/{n}", "file_text": mine}))
"""


@pytest.mark.promise("adapters.memory_tool_races")
def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    """Every edit of both is in the file, once; of two creations of a path one is refused."""
    home = tmp_path / "home"
    with Memory.open(home, embedder="hashing") as memory:
        files = MemoryFiles(memory)
        create(files, "/memories/log.md", "# Log\n(end)")
        both = [
            subprocess.Popen(
                [*python(), "-c", CHILD, str(home), who], stdout=subprocess.PIPE, text=True
            )
            for who in "AB"
        ]
        said = [line for one in both for line in one.communicate(timeout=100)[0].splitlines()]
        assert [one.returncode for one in both] == [0, 0]
        written = content(files, "/memories/log.md").split("\n")
        assert sorted(written[1:-1]) == sorted(f"{who}{n}" for who in "AB" for n in range(8))
        assert len([line for line in said if line.startswith("File created")]) == 8
        assert len([line for line in said if line.endswith("already exists")]) == 8
        for n in range(8):
            assert len(memory.history(f"/memories/{n}")) == 1
        assert len(memory.history("/memories/log.md")) == 17


@pytest.mark.promise("remember.guarded")
def test_a_guarded_memory_is_refused_where_another_came_first(memory: Memory) -> None:
    """What it supersedes must stand, its path must be free, or nothing of the batch is kept."""
    first = memory.remember("port 5433", path="port").id
    with pytest.raises(Conflict) as taken:
        memory.remember_many([NewMemory("other"), NewMemory("x", path="port", guarded=True)])
    assert taken.value.what == "path"
    second = memory.remember("port 5434", path="port").id
    with pytest.raises(Conflict) as late:
        memory.remember_many([NewMemory("x", path="port", supersedes=first, guarded=True)])
    assert late.value.what == "supersedes"
    assert [one.id for one in memory.list()] == [second]
    done = memory.remember_many([NewMemory("x", path="port", supersedes=second, guarded=True)])
    assert [one.action for one in done] == ["superseded"]
    memory.forget(done[0].id, soft=True)
    assert memory.remember_many([NewMemory("y", path="port", guarded=True)])[0].action == "added"


@pytest.mark.promise("adapters.memory_tool_history")
def test_edits_keep_what_was_there_and_deletions_are_taken_back(memory: Memory) -> None:
    """Every version is in the history; a deleted file comes back with its sections."""
    files = MemoryFiles(memory)
    path = "/memories/ports.md"
    create(files, path, "staging: 5433")
    replace(files, path, "5433", "5434")
    assert [one.text for one in memory.history(path)] == ["staging: 5433", "staging: 5434"]
    insert(files, path, 1, "filler words\n" * 60)
    delete(files, path)
    assert [hit.path for hit in memory.recall("staging port", top_k=5, min_score=0)] == []
    assert files.restore(path)
    assert not files.restore(path)
    assert "staging: 5434" in content(files, path)
    assert {one.category for one in memory.list()} == {CATEGORY, SECTION_CATEGORY}
    delete(files, path)
    create(files, path, "begun anew")
    assert not files.restore(path)
    assert content(files, path) == "begun anew"


@pytest.mark.promise("adapters.memory_tool_history")
def test_an_erased_file_is_in_no_file(memory: Memory, tmp_path: Path) -> None:
    """With `on_delete="erase"` neither a version nor a section of it is left in the home."""
    files = MemoryFiles(memory, on_delete="erase")
    path = "/memories/q.md"
    create(files, path, "quetzalcoatl one\n" * 40)
    replace(files, path, "quetzalcoatl one\n" * 40, "quetzalcoatl two\n" * 50)
    replace(files, path, "quetzalcoatl two\n" * 50, "quetzalcoatl three\n")
    delete(files, path)
    assert memory.history(path) == ()
    inside = [one for one in (tmp_path / "home").rglob("*") if one.is_file()]
    assert not [one for one in inside if b"quetzalcoatl" in one.read_bytes()]
    with pytest.raises(InvalidInput, match="on_delete"):
        MemoryFiles(memory, on_delete="never")  # type: ignore[arg-type]


@pytest.mark.promise("adapters.memory_tool_recall")
def test_secrets_are_taken_out_and_it_is_said(files: MemoryFiles) -> None:
    """A key in a file is not kept, and the model learns it."""
    said = create(files, "/memories/k.md", "aws AKIAIOSFODNN7EXAMPLE")
    assert "Not kept: secrets in the text (aws-access-key)" in said
    assert content(files, "/memories/k.md") == "aws [redacted:aws-access-key]"
    long = "filler words\n" * 60
    create(files, "/memories/l.md", long)
    said = insert(files, "/memories/l.md", 0, "aws AKIAIOSFODNN7EXAMPLE")
    assert "Not kept" in said
    assert content(files, "/memories/l.md") == "aws [redacted:aws-access-key]\n" + long


@pytest.mark.promise("adapters.memory_tool_recall")
def test_files_are_recalled_with_everything_else(memory: Memory) -> None:
    """A line amid thousands of words is found by its section, and by what it says since an edit."""
    files = MemoryFiles(memory)
    filler = [
        f"## Day {n}\n\nWe walked to the {n}th lighthouse, past dunes and gulls, and had soup.\n"
        for n in range(300)
    ]
    filler[150] += "\nThe depot door opens with badge 7718.\n"
    create(files, "/memories/journal.md", "\n".join(filler))
    memory.remember("The kitchen door sticks.")
    hit = memory.recall("which badge opens the depot door?").hits[0]
    assert (hit.path or "").startswith("/memories/journal.md#")
    assert len(hit.text) < 500
    before = {one.id for one in memory.list({"category": SECTION_CATEGORY}, limit=500)}
    replace(files, "/memories/journal.md", "badge 7718", "badge 9001")
    after = {one.id for one in memory.list({"category": SECTION_CATEGORY}, limit=500)}
    assert len(after - before) == 1
    hits = memory.search("which badge opens the depot door?").hits
    assert "badge 9001" in hits[0].snippet
    assert not [one for one in hits if "7718" in one.text]
    other = memory.scoped("other")
    assert (
        MemoryFiles(other)
        .handle({"command": "view", "path": "/memories"})
        .endswith("0B\t/memories")
    )


LONG = "\n\n".join(
    f"# Part {n}\n" + f"The walrus of part {n} lives far away. " * 12 for n in range(6)
)


def sections(memory: Memory) -> dict[str, int]:
    """How many sections each file has, by the file's path."""
    files = {one.id: one.path for one in memory.list({"category": CATEGORY}, limit=100)}
    counts: dict[str, int] = {}
    for one in memory.list({"category": SECTION_CATEGORY}, limit=200):
        path = str(files[str(one.parent)])
        counts[path] = counts.get(path, 0) + 1
    return counts


@pytest.mark.promise("adapters.memory_tool")
@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("c#", "c"), ("notes#2", "notes"), ("c", "c#1"), ("c", "c#2"), ("c#1", "c#1#1"),
        ("c##", "c#"), ("a/c#1", "a/c"), ("c", "c%23"), ("#", "##"),
    ],
)  # fmt: skip
def test_no_name_of_a_file_takes_the_sections_of_another(
    memory: Memory, files: MemoryFiles, long: str, short: str
) -> None:
    """Names that begin alike, or look like a section's, are files of their own."""
    assert create(files, f"/memories/{long}", LONG).startswith("File created")
    assert sections(memory) == {f"/memories/{long}": 6}
    assert create(files, f"/memories/{short}", "x").startswith("File created")
    assert "edited" in replace(files, f"/memories/{short}", "x", "y")
    assert sections(memory) == {f"/memories/{long}": 6}
    assert content(files, f"/memories/{short}") == "y"
    assert "renamed" in rename(files, f"/memories/{short}", "/memories/elsewhere")
    assert "deleted" in delete(files, "/memories/elsewhere")
    assert sections(memory) == {f"/memories/{long}": 6}
    assert "walrus" in memory.recall("where does the walrus of part 4 live?")[0].text


@pytest.mark.promise("adapters.memory_tool")
@pytest.mark.parametrize(
    "ending", ["#abc", "#", "#²", "#" + "9" * 300, "#//abc", "#//1", "#//" + "9" * 300]
)
def test_a_planted_path_of_a_section_ends_no_edit(
    memory: Memory, files: MemoryFiles, ending: str
) -> None:
    """Neither one that is no number, nor one of another category where a section would come."""
    memory.remember("Planted.", path=f"/memories/c{ending}", category=SECTION_CATEGORY)
    memory.remember("Planted too.", path=f"/memories/d{ending}")
    for name in ("c", "d"):
        assert create(files, f"/memories/{name}", LONG).startswith("File created")
        assert "edited" in insert(files, f"/memories/{name}", 0, "# First")
    texts = [one.text for one in memory.list({"category": SECTION_CATEGORY}, limit=100)]
    assert sum("walrus" in text for text in texts) == 12
    assert memory.list({"path": f"/memories/d{ending}"}).items[0].text == "Planted too."


@pytest.mark.promise("adapters.memory_tool")
def test_a_rename_stops_where_another_memory_stands(memory: Memory, files: MemoryFiles) -> None:
    """A path may belong to a memory that is no file; nothing is moved there."""
    memory.remember("Planted.", path="/memories/new/b")
    create(files, "/memories/old/a", "a")
    create(files, "/memories/old/b", "b")
    assert "already exists" in rename(files, "/memories/old", "/memories/new")
    assert content(files, "/memories/old/b") == "b"


@pytest.mark.promise("adapters.memory_tool")
@pytest.mark.parametrize("path", ["%" + "25" * 50_000, "/memories/" + "%25" * 50_000 + "41"])
def test_layers_of_escapes_are_bounded(files: MemoryFiles, path: str) -> None:
    """A path that is far too long is refused before it is decoded, and quoted in part."""
    said = view(files, path)
    assert "Invalid path" in said
    assert len(said) < 2_000
