"""The map of a project: folders, files, and what really imports what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anaphora import Memory
from anaphora.errors import NotFound


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as one:
        yield one


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "parcels"
    files = {
        "README.md": "# Parcels\n",
        "track/__init__.py": "",
        "track/README.md": "# Tracking\n",
        "track/parcel.py": (
            "from store.rows import Row\nfrom store import names\nfrom track import place\n"
        ),
        "track/place.py": "import store.rows\n",
        "store/__init__.py": "",
        "store/rows.py": "import json\n",
        "store/names.py": "",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.mark.promise("page.map")
def test_imports_of_files_are_counted_up_to_their_folders(memory: Memory, project: Path) -> None:
    """Three imports from one folder into another are one link of three; none leads to itself."""
    memory.index_project(project, name="parcels")
    found = memory.project_map("parcels")
    assert {(node.path, node.files) for node in found.nodes} == {
        (".", 1),
        ("track", 4),
        ("store", 3),
    }
    assert {node.path: node.title for node in found.nodes}["track"] == "Tracking"
    assert [(one.subject, one.target, one.count) for one in found.links] == [("track", "store", 3)]
    assert found.degraded == ()


@pytest.mark.promise("page.map")
def test_the_files_of_a_folder_and_their_own_imports(memory: Memory, project: Path) -> None:
    """Within a folder its files are shown, and only imports among them."""
    memory.index_project(project, name="parcels")
    found = memory.project_map("parcels", within="track")
    assert {node.path for node in found.nodes} == {
        "track/__init__.py", "track/README.md", "track/parcel.py", "track/place.py",
    }  # fmt: skip
    assert ("track/parcel.py", "track/place.py") in {
        (one.subject, one.target) for one in found.links
    }
    with pytest.raises(NotFound):
        memory.project_map("parcels", within="nowhere")
    with pytest.raises(NotFound):
        memory.project_map("nothing")


@pytest.mark.promise("page.map")
def test_what_is_gone_is_not_on_the_map(memory: Memory, project: Path) -> None:
    """A file that was deleted leaves the map with its imports."""
    memory.index_project(project, name="parcels")
    (project / "track" / "parcel.py").unlink()
    memory.index_project(project, name="parcels")
    found = memory.project_map("parcels")
    assert [(one.subject, one.target, one.count) for one in found.links] == [("track", "store", 1)]
    assert {node.path: node.files for node in found.nodes}["track"] == 3


@pytest.mark.promise("page.map")
def test_a_large_project_shows_its_most_linked_folders(memory: Memory, tmp_path: Path) -> None:
    """More folders than can be told apart are cut to the most linked, and the map says so."""
    root = tmp_path / "many"
    for number in range(160):
        folder = root / f"part{number:03}"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "a.py").write_text("import part007.a\n" if number == 155 else "")
    memory.index_project(root, name="many", embed=False)
    found = memory.project_map("many")
    assert len(found.nodes) == 150
    assert [(one.subject, one.target) for one in found.links] == [("part155", "part007")]
    assert "150 most linked of 160" in found.degraded[0].reason
