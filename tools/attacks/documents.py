"""Attacks by documents and imports: files that are made to take all memory or time."""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tools.attacks import attack
from tools.attacks._helpers import command, environ, most_memory, opened

from anaphora.errors import UnreadableDocument


@attack("F3", "high", "a PDF whose 5,000 pages share one long stream ends", pace="long")
def shared_stream(folder: Path) -> None:
    """Pages that say nothing, each as long to read as the last."""
    stream = b"BT /F1 9 Tf 1 0 0 1 0 0 Tm ( ) Tj ET\n" * 20_000
    kids = b" ".join(b"%d 0 R" % (4 + n) for n in range(5_000))
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count 5000 >>" % kids,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        *[
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 3 0 R /Resources << /Font "
            b"<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        ]
        * 5_000,
    ]
    data = b"%PDF-1.7\n"
    offsets = []
    for number, part in enumerate(parts, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    data += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(parts) + 1, table)
    start = data.rindex(b"xref\n0")
    data += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n" % (len(parts) + 1, start)
    began = time.monotonic()
    with opened(folder / "home") as memory, suppress(UnreadableDocument):
        memory.add_document(data + b"%%EOF\n", name="a.pdf")
    assert time.monotonic() - began < 280
    assert most_memory() < 1_500, f"{most_memory()} MB were taken"


@attack(
    "F12",
    "medium",
    "the command line takes time in proportion to the number of files",
    pace="timed",
)
def many_files(folder: Path) -> None:
    """Twice as many notes may take three times as long, not four."""
    seconds = []
    for count in (250, 1_000):
        notes = folder / f"notes{count}"
        notes.mkdir()
        for number in range(count):
            (notes / f"{number}.md").write_text(f"# N {number}\n\nfact {number}\n")
        words = command(folder / f"home{count}", "import", "--no-embed", str(notes))
        began = time.monotonic()
        subprocess.run(words, check=True, capture_output=True, env=environ())
        seconds.append(time.monotonic() - began)
    assert seconds[1] < 6 * seconds[0], (
        f"250 notes take {seconds[0]:.0f} s, 1,000 {seconds[1]:.0f} s"
    )
