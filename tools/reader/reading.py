"""A reader of a run or a folder: an ONNX file in, logits out. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tools.reader.examples import CHANGES

from anaphora.embed.minilm import MINILM, check_digest
from anaphora.embed.word_table import read_table
from anaphora.errors import AnaphoraError
from anaphora.reading.inputs import TOKENIZER, Inputs, Pieces
from anaphora.reading.model import ANSWERS, MANIFEST_FILE, Logits, ReaderNetwork


class OnnxReader:
    """A reader of a file, or of a folder that `train` or `build` wrote.

    Raises SystemExit where there is none, or where it reads another tokenizer's pieces or another
    word table.
    """

    def __init__(self, place: Path) -> None:
        model = model_of(place)
        manifest = model.with_name(MANIFEST_FILE)
        self.name, table = model.parent.name, None
        if manifest.is_file():
            said = json.loads(manifest.read_text("utf-8"))
            self.name = str(said["name"])
            digests = {name: part["sha256"] for name, part in said.get("table", {}).items()}
            try:
                check_digest(TOKENIZER, said["tokenizer"]["sha256"])
                table = read_table(MINILM / "model.onnx", digests) if digests else None
            except (AnaphoraError, OSError) as error:
                raise SystemExit(f"{manifest} is of another embedder's reader: {error}") from error
        self._inputs = Inputs()
        self._network = ReaderNetwork(model, table, threads=1)

    def answers(self, question: str, statements: Sequence[str]) -> Logits:
        """Whether each statement answers: logits of answers, about, not; shape (statements, 3)."""
        return self.logits([self._inputs.answer(question, text) for text in statements], ANSWERS)

    def changes(self, pairs: Sequence[tuple[str, str, str]]) -> Logits:
        """Of (question, older, newer): logits of replaces, holds, other; shape (pairs, 3)."""
        return self.logits([self._inputs.change(*pair) for pair in pairs], CHANGES)

    def logits(self, inputs: Sequence[Pieces], head: str) -> Logits:
        """The logits of a judgement in the inputs' order."""
        return self._network.logits(inputs, head)


def model_of(place: Path) -> Path:
    """The ONNX file of a run (`float/`), of a folder, or the file itself."""
    for model in (place, place / "model.onnx", place / "float" / "model.onnx"):
        if model.is_file():
            return model
    raise SystemExit(f"{place}: no model.onnx, and no float/model.onnx of a run")
