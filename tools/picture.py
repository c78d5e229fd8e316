"""Draws docs/images/recall.svg: what a terminal shows for a real recall over the shipped example.

In: the example conversation. Out: one SVG, made from the very output of the command line. Run it
as `python -m tools.picture` when the output changes.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from anaphora import Memory
from anaphora.surfaces.cli import output

ROOT = Path(__file__).resolve().parents[1]
QUESTION = "why did we move the queue away from redis?"
# The drawing library asks a public server for its font: a picture must make no request.
_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def main() -> None:
    """Recall from the example and save what is shown."""
    console = Console(record=True, width=110, highlight=False, emoji=False, force_terminal=True)
    console.print(Text(f"$ anaphora conversation recall {QUESTION!r} --top-k 3 --why", "bold"))
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        memory.import_(ROOT / "examples" / "conversation.json")
        memory.ready()
        found = memory.recall_conversation(None, QUESTION, top_k=3)
        output.show_hits(found, why=True, out=console)
    svg = console.export_svg(title="anaphora")
    place = ROOT / "docs" / "images" / "recall.svg"
    place.parent.mkdir(exist_ok=True)
    svg = _FONTS.sub("", svg).replace("Fira Code", "DejaVu Sans Mono")
    # Not every viewer knows the style sheet's way to keep leading spaces.
    place.write_text(svg.replace("<text ", '<text xml:space="preserve" '))


if __name__ == "__main__":
    main()
