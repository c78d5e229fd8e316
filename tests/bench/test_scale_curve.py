"""The curve from a thousand memories to a million: its homes, and its pictures."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from bench.scale.bulk import write_home
from bench.scale.curve_pictures import draw

from anaphora import Memory
from anaphora.embed.hashing import WordHashingEmbedder


def test_a_home_written_in_bulk_is_a_home(tmp_path: Path) -> None:
    """It is sound, answers by meaning, words and filters, takes more, and forgets for good."""
    texts = [f"The heron number {n} stood in pond {n % 7} all morning." for n in range(40)]
    write_home(tmp_path / "home", texts, WordHashingEmbedder())
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        assert memory.stats().memories == len(texts)
        assert all(check.ok for check in memory.doctor())
        (first, *_) = memory.recall("heron number 17", filters={"category": "c17"}).hits
        assert (first.text, first.tags) == (texts[17], ("t3",))
        # What is said again is known: identities are those of memories that were remembered.
        assert memory.remember(texts[17]).id == first.id
        memory.forget(first.id)
        assert memory.stats().memories == len(texts) - 1


def test_a_picture_comes_for_light_pages_and_for_dark_ones(tmp_path: Path) -> None:
    """What was measured is drawn, in the colours of both; what was not has no picture."""
    keys = ("question_p50_ms", "question_p99_ms", "disk_mb")
    sizes = {str(10**n): dict.fromkeys(keys, 10.0 ** (n - 2)) for n in (3, 4, 5, 6)}
    (tmp_path / "curve.json").write_text(json.dumps({"sizes": sizes}))
    made = draw(tmp_path, tmp_path / "images")
    assert len({place.name for place in made}) == len(made) == 4
    for light, dark in zip(made[::2], made[1::2], strict=True):
        assert dark.name == light.name.replace(".svg", "-dark.svg")
        for place, behind in ((light, "#ffffff"), (dark, "#0d1117")):
            assert ElementTree.parse(place).getroot().tag.endswith("svg")
            assert behind in place.read_text()
    assert not draw(tmp_path / "nothing", tmp_path / "images")
